"""A bookshop."""
