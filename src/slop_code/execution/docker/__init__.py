"""Sandbox with containers: Docker, podman or nerdctl through their command line."""
