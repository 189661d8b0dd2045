"""slop-code: the evaluation system of SCBench."""

from importlib.metadata import version

__version__ = version("slop-code")
