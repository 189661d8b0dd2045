"""Dependencies of a submission: the files of its package managers, and what is installed from them."""
