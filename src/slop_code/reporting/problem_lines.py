"""Output of `problems new`, `ls` and `show`: lines, and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from slop_code._safe_text import decoded_name
from slop_code.authoring.problem_overview import MAX_SLOWEST, UnloadableProblem
from slop_code.reporting.check_lines import shown_path
from slop_code.reporting.text import first_line, one_line, plural, shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.authoring.problem_overview import AssetOverview, CheckpointOverview, ProblemOverview
    from slop_code.reporting.terminal import StyledLine


def next_commands(folder: Path, named: bool) -> dict[str, str]:
    """Commands for a new problem by their purpose. With `named`, its name alone is enough to find it."""
    word = shell_word(decoded_name(folder.name if named else str(folder)))
    return {
        "try": f"slop-code problems run {word} -c 1",
        "check": f"slop-code problems check {word}",
        "use": f"slop-code eval-snapshot SUBMISSION -p {word} -c 1",
    }


def listed_line(problem: ProblemOverview | UnloadableProblem) -> str:
    """Includes the folder if it has another name, as in a copy of a problem."""
    if isinstance(problem, UnloadableProblem):
        return one_line(f"{problem.name}: broken: {first_line(problem.reason)}")
    config = problem.config
    checkpoints = plural(len(problem.checkpoints), "checkpoint")
    facts = [f"version {config.version}", config.difficulty, checkpoints, problem.state]
    last = problem.checkpoints[-1]
    if last.error:
        facts.append(f"tests not listed: {first_line(last.error)}")
    elif last.tests is not None:
        facts.append(f"{plural(sum(last.tests.values()), 'test')} ({_groups(last.tests)})")
    folder = "" if config.path.name == problem.name else f" in {decoded_name(shown_path(config.path))}"
    return one_line(f"{problem.name}{folder}: {', '.join(fact for fact in facts if fact)}")


def problem_lines(problem: ProblemOverview) -> Iterator[StyledLine]:
    config = problem.config
    yield one_line(f"{config.name}, version {config.version}: {config.description}"), "bold"
    yield f"folder: {one_line(decoded_name(str(config.path)))}", "dim"
    facts = [config.difficulty, config.author and f"by {config.author}"]
    facts.append(f"{problem.entry_file} in the environment {problem.environment.name}")
    yield one_line(", ".join(fact for fact in facts if fact)), ""
    for checkpoint in problem.checkpoints:
        yield from _checkpoint_lines(checkpoint)
    for asset in problem.assets:
        yield one_line(f"asset {asset.name}: {asset.path}, {_size(asset)}"), ""
    for declared, version in problem.dependencies.items():
        yield one_line(f"test dependency {declared}: {version or 'not known'}"), ""
    for name, group in config.custom_groups.items():
        yield one_line(f"marker {name}: {group}"), ""
    for test in problem.quarantined:
        yield f"quarantined: {one_line(test)}", "yellow"
    for warning in config.warnings:
        yield f"warning: {one_line(warning)}", "yellow"
    if any(checkpoint.solution and checkpoint.measured is None for checkpoint in problem.checkpoints):
        word = shell_word(decoded_name(str(config.path)))
        yield f"to measure the reference: slop-code problems check {word} --step reference", "dim"


def _checkpoint_lines(checkpoint: CheckpointOverview) -> Iterator[StyledLine]:
    config = checkpoint.config
    yield one_line(f"{config.name} ({config.state})" if config.state else config.name), "bold"
    session = "" if config.session_timeout is None else f", session timeout {config.session_timeout:g} s"
    size = checkpoint.specification
    text = "no specification" if size is None else f"specification of {_bytes(size)}"
    yield f"  order {config.order}, timeout {config.timeout:g} s{session}, {text}", ""
    if checkpoint.tests is not None:
        yield f"  {plural(sum(checkpoint.tests.values()), 'test')}: {_groups(checkpoint.tests)}", ""
    if checkpoint.error:
        yield f"  tests not listed: {first_line(checkpoint.error)}", "red"
    if not checkpoint.solution:
        yield "  reference: none", "yellow"
    elif checkpoint.measured is None:
        yield "  reference: not measured yet", ""
    else:
        yield f"  reference: {checkpoint.measured.seconds:.2f} s, slowest:", ""
        for name, seconds in checkpoint.measured.slowest(MAX_SLOWEST):
            yield f"    {seconds:.2f} s  {one_line(name)}", ""


def _groups(tests: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {group.lower()}" for group, count in tests.items() if count) or "none"


def _size(asset: AssetOverview) -> str:
    return _bytes(asset.bytes) if asset.files == 1 else f"{plural(asset.files, 'file')}, {_bytes(asset.bytes)}"


def _bytes(count: int) -> str:
    if count < 1000:
        return plural(count, "byte")
    return f"{count / 1000:.1f} KB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def as_json(problem: ProblemOverview | UnloadableProblem) -> dict[str, Any]:
    if isinstance(problem, UnloadableProblem):
        return {"name": problem.name, "path": str(problem.path.absolute()), "broken": problem.reason}
    config = problem.config
    return {
        "name": problem.name,
        "path": str(config.path),
        "version": config.version,
        "description": config.description,
        "author": config.author,
        "difficulty": config.difficulty,
        "state": problem.state,
        "environment": problem.environment.name,
        "entry_file": problem.entry_file,
        "checkpoints": [_checkpoint_json(checkpoint) for checkpoint in problem.checkpoints],
        "assets": [asdict(asset) for asset in problem.assets],
        "markers": config.custom_groups,
        "test_dependencies": dict(problem.dependencies),
        "quarantined": list(problem.quarantined),
        "warnings": list(config.warnings),
    }


def _checkpoint_json(checkpoint: CheckpointOverview) -> dict[str, Any]:
    config = checkpoint.config
    reference = checkpoint.measured and {
        "seconds": round(checkpoint.measured.seconds, 3),
        "slowest": [
            {"test": name, "seconds": round(taken, 3)} for name, taken in checkpoint.measured.slowest(MAX_SLOWEST)
        ],
    }
    return {
        "name": config.name,
        "order": config.order,
        "state": config.state,
        "timeout": config.timeout,
        "session_timeout": config.session_timeout,
        "specification_bytes": checkpoint.specification,
        "solution": checkpoint.solution,
        "tests": None if checkpoint.tests is None else dict(checkpoint.tests),
        "error": checkpoint.error,
        "reference": reference,
    }
