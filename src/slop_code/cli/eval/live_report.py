"""Report of `eval --report`, which is kept current while the evaluation goes on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from slop_code.cli.messages import print_step
from slop_code.cli.shared_options import selection_words
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from slop_code.reporting.html.live_page import ReadResults


def check_report(arguments: argparse.Namespace) -> None:
    if arguments.report is None:
        return
    from slop_code.reporting.html.run_page import check_page

    if arguments.dry_run or selection_words(arguments):
        raise UsageError("--report cannot be used with --dry-run or a selection of tests; leave one of them out")
    check_page(arguments.report, "--report")


def kept_report(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[Callable[[ReadResults], None]]:
    """A function that names the results to show on the page of --report; without that option, it does nothing."""
    if arguments.report is None:
        return contextlib.nullcontext(lambda _: None)
    from slop_code.reporting.html.live_page import live_page

    def announce() -> None:
        if not arguments.quiet:
            print_step(f"written, and kept current until the end: {arguments.report.absolute().as_uri()}")

    return live_page(arguments.report, arguments.pass_policy, lambda text: print_step(f"warning: {text}"), announce)
