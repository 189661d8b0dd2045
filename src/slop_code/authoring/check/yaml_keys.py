"""Lines of keys in config.yaml."""

from __future__ import annotations

from pathlib import Path

import yaml

from slop_code._yaml_parser import compose_yaml, line_of
from slop_code.errors import ConfigError
from slop_code.evaluation.problem.problem_lookup import CONFIG


def line_of_key(text: str, *keys: str | int) -> int | None:
    """The line of a key or list entry, after its parents; where it is missing, the line of the closest one above it."""
    try:
        return line_of(keys, compose_yaml(text, Path(CONFIG)))
    except (ConfigError, yaml.YAMLError, ValueError):
        return None
