"""Results as an HTML file that opens from disk: no server, no request to anywhere."""
