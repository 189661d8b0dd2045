"""Trees of files: as tar streams, written from archives, and recognised by checksums or signatures."""
