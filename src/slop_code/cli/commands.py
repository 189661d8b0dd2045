"""What the modules of several commands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, Policy, parse_policy

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LONG = ("pulling", "fetching", "warming", "set-up")
"""How steps begin that are always told, as they may take minutes."""


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pass-policy",
        type=_policy,
        default=PassPolicy.ALL_CASES,
        metavar="POLICY",
        help=f"what counts as passed: {', '.join(PassPolicy)}, "
        "or an expression such as 'core == 1 and regression >= 95%%' (default: all-cases)",
    )


def _policy(text: str) -> Policy:
    try:
        return parse_policy(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
