"""Problems: the folders in which they are, and the files next to their tests."""
