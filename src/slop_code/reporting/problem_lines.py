"""Lines that `problems new`, `ls` and `show` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.problem_overview import MAX_SLOWEST, UnloadableProblem
from slop_code.reporting.check_lines import shown_path
from slop_code.reporting.text import first_line, one_line, plural, shell_word
from slop_code.runs.run_layout import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.authoring.problem_overview import AssetOverview, CheckpointOverview, ProblemOverview
    from slop_code.reporting.terminal import StyledLine


def written_lines(folder: Path, named: bool) -> Iterator[str]:
    """Next commands for a new problem; `named`: its name alone is enough to find it."""
    word = shell_word(text_of(folder.name if named else str(folder)))
    yield f"try it:   slop-code problems run {word} -c 1"
    yield f"check it: slop-code problems check {word}"
    yield f"use it:   slop-code eval-snapshot SUBMISSION -p {word} -c 1"


def listed_line(problem: ProblemOverview | UnloadableProblem) -> str:
    """Includes the folder if it has another name, as in a copy of a problem."""
    if isinstance(problem, UnloadableProblem):
        return one_line(f"{problem.name}: broken: {first_line(problem.reason)}")
    facts = [
        f"version {problem.version}",
        problem.difficulty,
        plural(len(problem.checkpoints), "checkpoint"),
        problem.state,
    ]
    last = problem.checkpoints[-1]
    if last.error:
        facts.append(f"broken: {first_line(last.error)}")
    elif last.tests is not None:
        facts.append(f"{plural(sum(last.tests.values()), 'test')} ({_groups(last.tests)})")
    place = "" if problem.path.name == problem.name else f" in {text_of(shown_path(problem.path))}"
    return one_line(f"{problem.name}{place}: {', '.join(fact for fact in facts if fact)}")


def problem_lines(problem: ProblemOverview) -> Iterator[StyledLine]:
    yield one_line(f"{problem.name}, version {problem.version}: {problem.description}"), "bold"
    yield f"folder: {one_line(text_of(str(problem.path)))}", "dim"
    facts = [problem.difficulty, problem.author and f"by {problem.author}"]
    facts.append(f"{problem.entry_file} in the environment {problem.environment}")
    yield one_line(", ".join(fact for fact in facts if fact)), ""
    for checkpoint in problem.checkpoints:
        yield from _checkpoint_lines(checkpoint)
    for asset in problem.assets:
        yield one_line(f"asset {asset.name}: {asset.path}, {_size(asset)}"), ""
    for declared, version in problem.dependencies.items():
        yield one_line(f"test dependency {declared}: {version or 'not known'}"), ""
    for name, group in problem.markers.items():
        yield one_line(f"marker {name}: {group}"), ""
    for test in problem.quarantined:
        yield f"quarantined: {one_line(test)}", "yellow"
    for warning in problem.warnings:
        yield f"warning: {one_line(warning)}", "yellow"
    if any(checkpoint.solution and checkpoint.measured is None for checkpoint in problem.checkpoints):
        word = shell_word(text_of(str(problem.path)))
        yield f"to measure the reference: slop-code problems check {word} --step reference", "dim"


def _checkpoint_lines(checkpoint: CheckpointOverview) -> Iterator[StyledLine]:
    yield one_line(f"{checkpoint.name}{f' ({checkpoint.state})' if checkpoint.state else ''}"), "bold"
    limits = f"  order {checkpoint.order}, timeout {checkpoint.timeout:g} s"
    session = "" if checkpoint.session_timeout is None else f", session timeout {checkpoint.session_timeout:g} s"
    text = (
        "no specification"
        if checkpoint.specification is None
        else f"specification of {_bytes(checkpoint.specification)}"
    )
    yield f"{limits}{session}, {text}", ""
    if checkpoint.tests is not None:
        yield f"  {plural(sum(checkpoint.tests.values()), 'test')}: {_groups(checkpoint.tests)}", ""
    if checkpoint.error:
        yield f"  tests: broken: {first_line(checkpoint.error)}", "red"
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
