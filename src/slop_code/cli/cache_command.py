"""`slop-code cache`: what is built once and kept. The layer of runs is loaded late: most commands need none of it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.shared_options import print_progress
from slop_code.evaluation.command import LOCK, TOOL, TOOLS
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.cache import Cache
from slop_code.execution.environment import load_environment
from slop_code.execution.prune import KINDS, RESULTS, prune, size_of
from slop_code.execution.sandbox import sandbox_for
from slop_code.execution.tool_environment import warm_tools

if TYPE_CHECKING:
    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("cache", allow_abbrev=False, help="what is built once and kept")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    warm = actions.add_parser(
        "warm",
        allow_abbrev=False,
        help="fetch the locked test environment now",
        description="Fetch the locked test environment now, so that evaluations need no network for it.",
    )
    option = warm.add_argument
    option("problems", nargs="*", type=Path, metavar="PROBLEM", help="problems whose test dependencies are wanted")
    option("-e", "--environment", default="local", help="name or path of the environment (default: local)")
    warm.set_defaults(run=run_warm)
    info = actions.add_parser(
        "info",
        allow_abbrev=False,
        help="say what is kept, and how large it is",
        description="Say what is kept where, how large it is, and what the result store may take.",
    )
    info.add_argument("--json", action="store_true", help="print it as JSON, with sizes in bytes")
    info.set_defaults(run=run_info)
    clear = actions.add_parser(
        "prune",
        allow_abbrev=False,
        help="remove what killed evaluators left behind",
        description="Remove what killed evaluators left behind: folders, containers, volumes, images.",
    )
    option = clear.add_argument
    option("--all", action="store_true", help="also everything that is kept; the next evaluation builds it anew")
    option(
        "--results-limit",
        type=_limit,
        metavar="SIZE",
        help="shrink the result store to this size, such as 500M; what was used last stays; 0 empties it",
    )
    option("--docker", default="docker", metavar="BINARY", help="the container engine's command (default: docker)")
    clear.set_defaults(run=run_prune)


def run_warm(arguments: argparse.Namespace) -> int:
    store = Cache.default()
    wanted = [(), *[tuple(ProblemConfig.from_yaml(path).test_dependencies) for path in arguments.problems]]
    with store.in_use():
        sandbox = sandbox_for(load_environment(arguments.environment), store, print_progress)
        for extra in dict.fromkeys(wanted):
            tools = warm_tools(sandbox, TOOL, TOOLS, extra, LOCK, store, print_progress)
            print(f"ready: {len(tools.versions)} packages, pytest {tools.versions['pytest']}")
    return Exit.PASSED


def run_info(arguments: argparse.Namespace) -> int:
    from slop_code.runs.result_cache import Store

    cache = Cache.default()
    store = Store(cache)
    kinds = {kind: size_of(cache.root / kind) for kind in KINDS if kind != RESULTS}
    results = store.info()
    if arguments.json:
        told = {"folder": str(store.root), **asdict(results), "limit": store.limit}
        about = {"folder": str(cache.root), "kinds": {kind: asdict(size) for kind, size in kinds.items()}}
        print(json.dumps({**about, "results": told}, indent=2))
        return Exit.PASSED
    print(f"cache: {cache.root}")
    for kind, size in kinds.items():
        print(f"  {kind:10} {_count(size.entries)}, {_readable(size.bytes)}")
    print(f"results: {store.root}")
    print(f"  {_count(results.entries)}, {_readable(results.bytes)} of at most {_readable(store.limit)}")
    if results.oldest_use is not None and results.newest_use is not None:
        print(f"  used: first {_moment(results.oldest_use)}, last {_moment(results.newest_use)}")
    return Exit.PASSED


def run_prune(arguments: argparse.Namespace) -> int:
    cache = Cache.default()
    for line in prune(cache, arguments.docker, everything=arguments.all):
        print(line)
    if arguments.results_limit is not None:
        from slop_code.runs.result_cache import Store

        store = Store(cache, arguments.results_limit)
        removed, freed = store.trim()
        print(f"{store.root}: {_count(removed)} removed, {_readable(freed)}")
    return Exit.PASSED


def _limit(text: str) -> int:
    from slop_code.runs.result_cache import parse_limit

    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected {error}, or 0") from None


def _count(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _readable(size: int) -> str:
    power = max(0, min(4, (size.bit_length() - 1) // 10))
    return f"{size / 1024**power:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
