"""What the modules of several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.evaluation.policy import PassPolicy

if TYPE_CHECKING:
    import argparse

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LONG = ("pulling", "fetching", "warming", "set-up")
"""How steps begin that are always told, as they may take minutes."""


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pass-policy",
        choices=[policy.value for policy in PassPolicy],
        default=PassPolicy.ALL_CASES.value,
        metavar="POLICY",
        help=f"what counts as passed: {', '.join(PassPolicy)} (default: all-cases)",
    )
