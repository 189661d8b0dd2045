"""Step `layout`: rules about a problem's files, none of which is run."""
