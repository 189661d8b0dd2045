"""JSON of the commands: every command has it, the page has a row for each, and its tables have every field."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from slop_code.cli.main import parser, run
from tests.docs.pages import section, table_rows
from tests.factories import result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "json.md"


def commands(group: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that is no group, under its first name."""
    inner = [action for action in group._actions if isinstance(action, argparse._SubParsersAction)]
    for action in inner:
        for first in (item.dest for item in action._choices_actions):
            yield from commands(action.choices[first], f"{name} {first}".strip())
    if not inner:
        yield name, group


COMMANDS = dict(commands(parser()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json_and_the_page_says_what(name: str) -> None:
    assert "--json" in COMMANDS[name]._option_string_actions
    overview = section(PAGE, "Reference: JSON")
    assert name in re.findall(r"`([a-z][a-z -]*)`", "".join(re.findall(r"^(\| `.*?) \|", overview, flags=re.M)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a result that can be read and one that cannot."""
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        folder = tmp_path / f"run/words/checkpoint_{number}"
        folder.mkdir(parents=True)
        result("+", problem_name="words", checkpoint_name=folder.name).save(folder / "evaluation.json")
    (tmp_path / "run/words/checkpoint_2/evaluation.json").write_text("{", encoding="utf-8")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit status, and the document that is all of standard output."""
    status = run([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "heading", "expected"),
    [
        (["report", "run"], "slop-code report", 3),
        (["leaderboard", "run", "-o", "board.csv", "--format", "csv"], "slop-code leaderboard", 3),
        (["export", "run", "--format", "csv", "-o", "out.csv"], "slop-code export", 3),
        (["export", "run", "--format", "scb", "-o", "out"], "slop-code export", 3),
        (["problems", "new", "tally"], "slop-code problems new", 0),
        (["problems", "check", "--explain", "config-invalid"], "Rule", 0),
        pytest.param(["env", "ls"], "slop-code env ls", 0, marks=pytest.mark.e2e),
        (["cache", "info"], "slop-code cache info", 0),
        (["cache", "prune", "--docker", "no-such-engine", "--results-limit", "0"], "slop-code cache prune", 0),
        (["cache", "prune", "--docker", "no-such-engine"], "slop-code cache prune", 0),
    ],
)
@pytest.mark.usefixtures("here")
def test_the_tables_have_every_field(
    arguments: list[str], heading: str, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = printed(capsys, *arguments)
    assert (status, set(document)) == (expected, set(table_rows(section(PAGE, heading))))


def test_the_plan_of_a_regrade_has_every_field(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "problems", "new", "tally")
    (here / "other/tally/checkpoint_1/snapshot").mkdir(parents=True)
    _, document = printed(capsys, "regrade", "other", "--problems-dir", "problems", "--dry-run")
    rows = table_rows(section(PAGE, "slop-code regrade --dry-run"))
    assert set(document) == set(rows)
    assert [row["outcome"] for row in document["checkpoints"]] == ["evaluated for the first time"]
    for name, meaning in rows.items():
        assert all(set(row) <= set(re.findall(r"`(\w+)`", meaning[-1])) for row in document[name])


@pytest.mark.usefixtures("here")
def test_what_could_not_be_read_is_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["report", "run"], ["export", "run", "--format", "junit", "-o", "out.xml"]):
        status, document = printed(capsys, *arguments)
        [reason] = document["unreadable"]
        assert status == 3
        assert "checkpoint_2/evaluation.json" in reason


def test_what_was_written_exists(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, page = printed(capsys, "report", "run", "-o", "page\x1b.html")
    assert page["written"] == "page\\x1b.html"
    assert (page["bytes"], page["runs"]) == ((here / "page\x1b.html").stat().st_size, ["run"])
    _, problem = printed(capsys, "problems", "new", "tally")
    assert (here / problem["written"] / "config.yaml").is_file()
    assert set(problem["next"]) == {"try", "check", "use"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "run", "--format", "csv"], "--json needs -o"),
        (["leaderboard", "run", "--format", "csv"], "leave --format csv out, or write it to a file with -o"),
        (["problems", "run", "--watch"], "--json cannot be used with --watch or --pdb"),
        (["problems", "run", "--pdb"], "--json cannot be used with --watch or --pdb"),
        (["report", "nowhere"], "nowhere: there is no such folder"),
        (["problems", "new", "a/b"], "a/b"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_use_prints_no_document(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--json"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err


@pytest.mark.usefixtures("here")
def test_the_leaderboard_is_the_same_document_in_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    _, document = printed(capsys, "leaderboard", "run")
    run(["leaderboard", "run", "--format", "json"])
    assert document == json.loads(capsys.readouterr().out)
