"""Test code: the files of a tests folder that decide a verdict."""
