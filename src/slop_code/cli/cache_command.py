"""`slop-code cache`: fill, show and prune the cache."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.command_parser import add_commands
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import print_json, print_progress
from slop_code.cli.shared_options import add_json
from slop_code.reporting.text import file_safe, format_size

if TYPE_CHECKING:
    from slop_code.cli.shared_options import Commands


def add_to(commands: Commands) -> None:
    group = commands.add_parser(
        "cache",
        help="fill, show and prune the cache",
        description="Fill, show and prune the cache: test tools, rosters, results.",
        examples=["slop-code cache info", "slop-code cache prune --results-limit 500M"],
    )
    actions = add_commands(group)
    _add_warm(actions)
    _add_info(actions)
    _add_prune(actions)


def _add_warm(actions: Commands) -> None:
    warm = actions.add_parser(
        "warm",
        help="download the locked test tools now",
        description="Download the locked test tools now, so that evaluations need no network for them.",
        examples=["slop-code cache warm", "slop-code cache warm problems/larder -e docker-python3.12-uv"],
    )
    option = warm.add_argument
    option("problems", nargs="*", type=Path, metavar="PROBLEM", help="folder of a problem, for its test dependencies")
    option("-e", "--environment", default="local", help="name or path of the environment (default: local)")
    add_json(warm, "print the packages as JSON")
    warm.set_defaults(run=run_warm)


def _add_info(actions: Commands) -> None:
    info = actions.add_parser(
        "info",
        aliases=["ls", "list"],
        help="show what the cache holds, and its size",
        description="Show what the cache holds, its size, and the limit of the stored results.",
        examples=["slop-code cache info", "slop-code cache info --json"],
    )
    add_json(info, "print JSON, with sizes in bytes")
    info.set_defaults(run=run_info)


def _add_prune(actions: Commands) -> None:
    prune = actions.add_parser(
        "prune",
        help="remove leftovers of killed evaluations, or the whole cache",
        description="Remove what killed evaluations left behind: folders, containers, volumes, images.",
        examples=["slop-code cache prune", "slop-code cache prune --all"],
    )
    option = prune.add_argument
    option("--all", action="store_true", help="remove the whole cache, too; the next evaluation builds it again")
    option(
        "--results-limit",
        type=_limit,
        metavar="SIZE",
        help="shrink the stored results to SIZE, such as 500M; the most recently used stay; 0 removes all",
    )
    option("--docker", default="docker", metavar="BINARY", help="command of the container engine (default: docker)")
    add_json(prune, "print what was removed as JSON, with sizes in bytes")
    prune.set_defaults(run=run_prune)


def run_warm(arguments: argparse.Namespace) -> int:
    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.context import tools_for
    from slop_code.evaluation.problem.dependency_lock import read_test_lock
    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import load_environment
    from slop_code.execution.sandbox import sandbox_for

    cache = Cache.default()
    problems = [ProblemConfig.from_yaml(path) for path in arguments.problems]
    ready: list[dict[str, object]] = []
    with cache.shared_lock():
        sandbox = sandbox_for(load_environment(arguments.environment), cache, print_progress)
        for problem in (None, *problems):
            tools = tools_for(sandbox, problem, read_test_lock(problem) if problem else None)
            ready.append({"problem": problem and file_safe(problem.name), "packages": tools.versions})
            if not arguments.json:
                print(f"ready: {len(tools.versions)} packages, pytest {tools.versions['pytest']}", flush=True)
    if arguments.json:
        print_json({"ready": ready})
    return Exit.PASSED


def run_info(arguments: argparse.Namespace) -> int:
    from slop_code.evaluation.result_files.last_result import date_text
    from slop_code.execution.cache import Cache
    from slop_code.execution.cache_pruning import KINDS, RESULTS, folder_size
    from slop_code.runs.result_cache import ResultCache

    cache = Cache.default()
    result_cache = ResultCache(cache)
    kinds = {kind: folder_size(cache.root / kind) for kind in KINDS if kind != RESULTS}
    results = result_cache.info()
    if arguments.json:
        stored = {"folder": str(result_cache.root), **asdict(results), "limit": result_cache.limit}
        about = {"folder": str(cache.root), "kinds": {kind: asdict(size) for kind, size in kinds.items()}}
        print_json({**about, "results": stored})
        return Exit.PASSED
    print(f"cache: {cache.root}")
    for kind, size in kinds.items():
        print(f"  {kind:10} {_count(size.entries)}, {format_size(size.bytes)}")
    print(f"results: {result_cache.root}")
    print(f"  {_count(results.entries)}, {format_size(results.bytes)} of at most {format_size(result_cache.limit)}")
    if results.oldest_use is not None and results.newest_use is not None:
        print(f"  used: first {date_text(results.oldest_use)}, last {date_text(results.newest_use)}")
    return Exit.PASSED


def run_prune(arguments: argparse.Namespace) -> int:
    from slop_code.execution.cache import Cache
    from slop_code.execution.cache_pruning import PruneAction, prune_cache
    from slop_code.runs.result_cache import ResultCache

    cache = Cache.default()
    actions: list[PruneAction] = []
    for action in prune_cache(cache, arguments.docker, everything=arguments.all):
        actions.append(action)
        if not arguments.json:
            print(action)
    trimmed = None
    if arguments.results_limit is not None:
        result_cache = ResultCache(cache, arguments.results_limit)
        removed, freed = result_cache.trim()
        trimmed = {"folder": str(result_cache.root), "removed": removed, "bytes": freed}
        if not arguments.json:
            print(f"{result_cache.root}: {_count(removed)} removed, {format_size(freed)}")
    if arguments.json:
        print_json({"actions": [asdict(action) for action in actions], "results": trimmed})
    return Exit.PASSED


def _limit(text: str) -> int:
    from slop_code.runs.result_cache import parse_limit

    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected {error}, or 0") from None


def _count(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"
