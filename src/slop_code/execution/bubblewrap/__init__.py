"""Sandbox with bubblewrap: two boxes, unprivileged, without a daemon."""
