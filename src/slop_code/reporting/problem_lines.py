"""A problem in words: what `problems new`, `ls` and `show` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.problem_overview import SLOWEST, UnloadableProblem
from slop_code.reporting.check_lines import place_shown
from slop_code.reporting.text import first_line, one_line, plural, shell_word
from slop_code.runs.run_layout import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.authoring.problem_overview import AssetOverview, CheckpointOverview, ProblemOverview


def written_lines(folder: Path, named: bool) -> Iterator[str]:
    """Next commands for a new problem; `named`: its name alone is enough to find it."""
    word = shell_word(text_of(folder.name if named else str(folder)))
    yield f"try it:   slop-code problems run {word} -c 1"
    yield f"check it: slop-code problems check {word}"
    yield f"use it:   slop-code eval-snapshot SUBMISSION -p {word} -c 1"


def listed_line(found: ProblemOverview | UnloadableProblem) -> str:
    """With its folder where that has another name: of a copy, the name is still that of the first."""
    if isinstance(found, UnloadableProblem):
        return one_line(f"{found.name}: broken: {first_line(found.reason)}")
    facts = [f"version {found.version}", found.difficulty, plural(len(found.checkpoints), "checkpoint"), found.state]
    last = found.checkpoints[-1]
    if last.trouble:
        facts.append(f"broken: {first_line(last.trouble)}")
    elif last.tests is not None:
        facts.append(f"{plural(sum(last.tests.values()), 'test')} ({_groups(last.tests)})")
    place = "" if found.path.name == found.name else f" in {text_of(place_shown(found.path))}"
    return one_line(f"{found.name}{place}: {', '.join(fact for fact in facts if fact)}")


def problem_lines(found: ProblemOverview) -> Iterator[tuple[str, str]]:
    """Each line with its style."""
    yield one_line(f"{found.name}, version {found.version}: {found.description}"), "bold"
    yield f"folder: {one_line(text_of(str(found.path)))}", "dim"
    facts = [found.difficulty, found.author and f"by {found.author}"]
    facts.append(f"{found.entry_file} in the environment {found.environment}")
    yield one_line(", ".join(fact for fact in facts if fact)), ""
    for checkpoint in found.checkpoints:
        yield from _checkpoint_lines(checkpoint)
    for asset in found.assets:
        yield one_line(f"asset {asset.name}: {asset.path}, {_size(asset)}"), ""
    for declared, version in found.dependencies.items():
        yield one_line(f"test dependency {declared}: {version or 'not known'}"), ""
    for name, group in found.markers.items():
        yield one_line(f"marker {name}: {group}"), ""
    for test in found.quarantined:
        yield f"quarantined: {one_line(test)}", "yellow"
    for warning in found.warnings:
        yield f"warning: {one_line(warning)}", "yellow"
    if any(one.solution and one.measured is None for one in found.checkpoints):
        word = shell_word(text_of(str(found.path)))
        yield f"to measure the reference: slop-code problems check {word} --step reference", "dim"


def _checkpoint_lines(one: CheckpointOverview) -> Iterator[tuple[str, str]]:
    yield one_line(f"{one.name}{f' ({one.state})' if one.state else ''}"), "bold"
    limits = f"  order {one.order}, timeout {one.timeout:g} s"
    session = "" if one.session_timeout is None else f", session timeout {one.session_timeout:g} s"
    text = "no specification" if one.specification is None else f"specification of {_bytes(one.specification)}"
    yield f"{limits}{session}, {text}", ""
    if one.tests is not None:
        yield f"  {plural(sum(one.tests.values()), 'test')}: {_groups(one.tests)}", ""
    if one.trouble:
        yield f"  tests: broken: {first_line(one.trouble)}", "red"
    if not one.solution:
        yield "  reference: none", "yellow"
    elif one.measured is None:
        yield "  reference: not measured yet", ""
    else:
        yield f"  reference: {one.measured.seconds:.2f} s, slowest:", ""
        for name, seconds in one.measured.slowest(SLOWEST):
            yield f"    {seconds:.2f} s  {one_line(name)}", ""


def _groups(tests: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {group.lower()}" for group, count in tests.items() if count) or "none"


def _size(asset: AssetOverview) -> str:
    return _bytes(asset.bytes) if asset.files == 1 else f"{plural(asset.files, 'file')}, {_bytes(asset.bytes)}"


def _bytes(count: int) -> str:
    if count < 1000:
        return plural(count, "byte")
    return f"{count / 1000:.1f} KB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
