"""Results as one HTML file that opens from disk: no server, no request to anywhere."""
