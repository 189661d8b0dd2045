"""slop-code: the evaluation system of SCBench."""

__version__ = "0.1.0"
