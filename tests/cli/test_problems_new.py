"""`slop-code problems new`, `ls` and `show`, as a person calls them."""

from __future__ import annotations

import argparse
import json
import os
import pty
import subprocess
import sys

import pytest

from slop_code.authoring.new import scaffold
from slop_code.cli.main import run
from slop_code.cli.problems import problems_new_command as new
from slop_code.evaluation import ProblemConfig


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """In an empty folder, without a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)

    def invoke(*arguments):
        try:
            status = run(["problems", *map(str, arguments)])
        except SystemExit as error:
            status = error.code
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return invoke


def test_options_say_what_there_is():
    assert tuple(scaffold.KINDS) == new.KINDS


def test_without_a_terminal_there_are_defaults(call, tmp_path):
    status, out, err = call("new", "tally")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "written: problems/tally",
        "try it:   slop-code problems run tally -c 1",
        "check it: slop-code problems check tally",
        "use it:   slop-code eval-snapshot SUBMISSION -p tally -c 1",
    ]
    problem = ProblemConfig.from_yaml(tmp_path / "problems" / "tally")
    assert (list(problem.checkpoints), problem.category, problem.author) == (
        ["checkpoint_1", "checkpoint_2"],
        "cli",
        None,
    )
    assert (tmp_path / "problems/tally/solutions/checkpoint_2/main.py").is_file()


def test_everything_can_be_said_by_options(call, tmp_path):
    options = ["--kind", "http", "--author", "Ada", "--directory", "a/b"]
    status, out, _ = call("new", "web", *options)
    assert (status, out.splitlines()[0]) == (0, "written: a/b/web")
    assert out.splitlines()[-1] == "use it:   slop-code eval-snapshot SUBMISSION -p a/b/web -c 1"
    problem = ProblemConfig.from_yaml(tmp_path / "a" / "b" / "web")
    assert (problem.category, problem.author) == ("service", "Ada")


def test_the_problems_folder_is_where_it_was_said_to_be(call, tmp_path, monkeypatch):
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", str(tmp_path / "mine"))
    assert call("new", "tally")[0] == 0
    assert (tmp_path / "mine" / "tally" / "config.yaml").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a/b"], "'a/b' cannot be the name of a problem"),
        (["\x1b[31m"], "cannot be the name of a problem"),
        (["x", "--kind", "gui"], "invalid choice: 'gui'"),
        ([], "required: NAME"),
    ],
)
def test_wrong_options_are_usage_errors_and_write_nothing(call, tmp_path, arguments, message):
    status, out, err = call("new", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "\x1b" not in err
    assert os.listdir(tmp_path) == []


def test_an_existing_problem_is_not_overwritten(call, tmp_path):
    call("new", "tally")
    (tmp_path / "problems" / "tally" / "config.yaml").write_text("mine")
    status, _, err = call("new", "tally")
    assert (status, "exists already" in err) == (2, True)
    assert (tmp_path / "problems" / "tally" / "config.yaml").read_text() == "mine"
    assert os.listdir(tmp_path / "problems") == ["tally"]


@pytest.mark.parametrize(
    ("given", "answers", "expected"),
    [
        ({}, {}, ("cli", "")),
        ({}, {"which kind": "http", "author": "Ada"}, ("http", "Ada")),
        ({"kind": "http", "author": ""}, {}, ("http", "")),
        ({"kind": "http"}, {"author": "Ada"}, ("http", "Ada")),
    ],
)
def test_what_is_not_given_is_asked_for(given, answers, expected):
    asked = []

    def answer(question, default):
        asked.append(question)
        return next((text for part, text in answers.items() if part in question), default)

    made = new.blueprint_of(argparse.Namespace(**{"name": "x", "kind": None, "author": None, **given}), answer)
    assert (made.kind, made.author) == expected
    assert len(asked) == 2 - len(given)


@pytest.mark.parametrize(
    ("answers", "expected", "message"),
    [
        (["htp", "http", ""], ("http", ""), "no kind 'htp'; choose cli or http"),
        (["", "A\x07", "Ada"], ("cli", "Ada"), "the author's name"),
    ],
    ids=["kind", "author"],
)
def test_a_wrong_answer_is_asked_for_again(answers, expected, message, capsys):
    left = iter(answers)
    plain = argparse.Namespace(name="x", kind=None, author=None)
    made = new.blueprint_of(plain, lambda _, default: next(left) or default)
    assert (made.kind, made.author) == expected
    assert list(left) == []
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(message)


def test_nobody_is_asked_about_a_problem_that_is_there(call, tmp_path, monkeypatch):
    (tmp_path / "problems" / "tally").mkdir(parents=True)
    monkeypatch.setattr(sys, "stdin", None)  # whoever reads an answer fails
    status, _, err = call("new", "tally")
    assert (status, "exists already" in err) == (2, True)


@pytest.mark.e2e
def test_a_terminal_is_asked(tmp_path):
    """Through a terminal of its own; an answer left empty is the default."""
    main, other = pty.openpty()
    argv = [sys.executable, "-m", "slop_code", "problems", "new", "tally", "--author", "Ada"]
    process = subprocess.Popen(argv, stdin=other, stdout=subprocess.PIPE, stderr=other, cwd=tmp_path, text=True)
    os.close(other)
    os.write(main, b"htp\nhttp\n")
    out, _ = process.communicate(timeout=600)
    printed = b""
    while chunk := _read(main):
        printed += chunk
    os.close(main)
    assert (process.returncode, out.splitlines()[0]) == (0, "written: problems/tally")
    assert printed.count(b"which kind of problem (cli, http)? [cli] ") == 2
    assert b"author" not in printed
    problem = ProblemConfig.from_yaml(tmp_path / "problems" / "tally")
    assert (problem.category, problem.author) == ("service", "Ada")


def _read(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how a terminal says that nobody is left
        return b""


def test_missing_problems_are_usage_errors(call, tmp_path):
    assert call("ls")[0] == 2
    assert "no problem 'tally'" in call("show", "tally")[2]
    (tmp_path / "problems").mkdir()
    assert call("ls")[0] == 2


def test_broken_problems_are_listed(call, tmp_path):
    for name in ("one", "two"):
        (tmp_path / "problems" / name).mkdir(parents=True)
        (tmp_path / "problems" / name / "config.yaml").write_text(f"name: {name}\n")
    status, out, _ = call("ls")
    assert status == 2
    assert [line.split(": ")[:2] for line in out.splitlines()] == [["one", "broken"], ["two", "broken"]]
    status, out, _ = call("ls", "--json")
    assert [one["name"] for one in json.loads(out)] == ["one", "two"]
    assert (status, "config.yaml" in json.loads(out)[0]["broken"]) == (2, True)


def test_ls_and_show_count_tests_and_checkpoints(call, cache, need_bubblewrap):
    need_bubblewrap()
    call("new", "tally")
    status, out, _ = call("ls")
    assert (status, out) == (
        0,
        "tally: version 1, Easy, 2 checkpoints, Draft, 16 tests (1 core, 1 functionality, 1 error, 13 regression)\n",
    )
    status, out, _ = call("show", "tally", "--json")
    found = json.loads(out)
    assert (status, found["name"], found["environment"]) == (0, "tally", "local")
    assert found["checkpoints"][0]["tests"] == {"Core": 2, "Functionality": 1, "Error": 9, "Regression": 0}
    status, out, _ = call("show", "tally")
    assert (status, "  12 tests: 2 core, 1 functionality, 9 error" in out.splitlines()) == (0, True)
