"""Conftests that take the entrypoint apart, as those of real problems do: each habit is a test."""

from __future__ import annotations

import pytest

from tests.factories import statuses_by_id
from tests.marks import in_long

SUBMISSION = """
import json, os, sys

beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "beside.txt")
print(json.dumps({
    "arguments": sys.argv[1:],
    "optimised": sys.flags.optimize,
    "beside": open(beside).read() if os.path.exists(beside) else None,
    "sees_tests": os.path.exists("/workspace/.evaluation_tests/conftest.py"),
}))
"""

CONFTEST = """
import json, os, shlex, shutil, subprocess, sys
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture
def words(request):
    return shlex.split(request.config.getoption("--entrypoint"))


def answer(argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=25, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
"""

HABITS = """
import os, pathlib, shlex, shutil, subprocess, sys
from conftest import answer

import pytest

BARE = os.environ["SANDBOX"] == "none"


def test_the_first_word_that_is_a_file_is_the_entry_file(words):
    file = next(pathlib.Path(word) for word in words if pathlib.Path(word).exists())
    assert file.name == "main.py"
    workspace = file.resolve().parent
    assert (workspace / "beside.txt").read_text() == "of the submission"
    assert answer([*words[:-1], str(workspace / "main.py"), "a"])["arguments"] == ["a"]


def test_the_entry_file_is_copied_to_a_folder_and_run_there_by_its_name(words, tmp_path):
    file = next(pathlib.Path(word) for word in words if pathlib.Path(word).is_file())
    shutil.copy(file, tmp_path)
    (tmp_path / "beside.txt").write_text("of the test")
    said = answer([file.name if word == str(file) else word for word in words] + ["a"], cwd=tmp_path)
    assert (said["arguments"], said["beside"], said["sees_tests"]) == (["a"], "of the test", False)


def test_options_are_inserted_after_the_first_word(words):
    said = answer([words[0], "-O", *words[1:], "a"])
    assert (said["arguments"], said["optimised"]) == (["a"], 1)


def test_the_entry_file_is_the_second_word(words):
    assert len(words) == 2
    assert pathlib.Path(words[1]).resolve().parent == pathlib.Path.cwd()
    said = answer([*words[:2], "--option", *words[2:]])
    assert (said["arguments"], said["optimised"]) == (["--option"], 0)


@pytest.mark.skipif(BARE, reason="without boxes there is nothing to be kept apart")
def test_python_is_replaced_with_the_interpreter_of_the_tests(words, request):
    words = [sys.executable if word in ("python", "python3") else word for word in words]
    line = request.config.getoption("--entrypoint").replace("python", sys.executable).split()
    for argv in (words, line):
        said = answer(argv)
        assert not said["sees_tests"]


@pytest.mark.skipif(BARE, reason="without a launcher a link to another Python may be resolved")
def test_the_first_word_is_looked_up(words):
    program = shutil.which(words[0])
    assert os.path.isabs(program)
    assert answer([program, *words[1:], "a"])["arguments"] == ["a"]
    assert answer([os.path.realpath(program), *words[1:], "a"])["arguments"] == ["a"]


@pytest.mark.skipif(BARE, reason="without a launcher it is the host's Python that is found, or none")
def test_the_call_has_variables_of_its_own(words, tmp_path):
    for variables in ({}, {"LANG": "C"}, {"PATH": "/usr/bin"}, {"PATH": str(tmp_path) + ":/bin"}):
        assert answer([*words, "a"], env=variables)["arguments"] == ["a"]
    assert answer(["/usr/bin/env", "-i", *words, "a"])["arguments"] == ["a"]
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
def test_the_reference_passes(sandbox, make_problem, make_submission, evaluate):
    tests = {"conftest.py": CONFTEST, "test_checkpoint_1.py": HABITS}
    problem = make_problem(tests, config={"env": {"SANDBOX": sandbox}})
    submission = make_submission({"main.py": SUBMISSION, "beside.txt": "of the submission"})
    results = evaluate(problem, submission, sandbox=sandbox)
    assert results.infrastructure_failure_reason is None
    said = {test.id: test.failure_message for test in results.tests if test.status not in ("passed", "skipped")}
    assert said == {}
    statuses = [test.status for test in results.tests]
    assert (len(statuses), statuses.count("skipped")) == (7, 3 if sandbox == "none" else 0)


HINT = """
import pathlib

def test_hint(run, tmp_path):
    done = run(cwd=tmp_path)
    hint = f"slop-code: hint: the entry file main.py is in {pathlib.Path.cwd()}, and not in {tmp_path}"
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith(hint)

def test_no_hint_where_the_file_is(run, tmp_path):
    (tmp_path / "main.py").write_text("raise SystemExit(1)")
    assert run(cwd=tmp_path).stderr == ""

def test_no_hint_after_success(entrypoint, run, tmp_path):
    import subprocess
    done = subprocess.run([entrypoint[0], "-c", "pass", "main.py"], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_a_call_without_its_entry_file_gets_a_hint(sandbox, make_problem, make_submission, evaluate):
    results = evaluate(make_problem({"test_checkpoint_1.py": HINT}), make_submission({"main.py": ""}), sandbox=sandbox)
    assert {test.id: test.failure_message for test in results.tests if test.status != "passed"} == {}
    assert set(statuses_by_id(results)) == {"test_hint", "test_no_hint_where_the_file_is", "test_no_hint_after_success"}


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_a_program_without_an_interpreter_has_the_launcher_before_it(sandbox, make_problem, make_submission, evaluate):
    problem = make_problem(
        {
            "test_checkpoint_1.py": """
            def test_words(entrypoint, run):
                assert entrypoint[-1] == "./main.py"
                assert "/" not in entrypoint[0]
                assert run("a").stdout == "a\\n"
            """
        }
    )
    submission = make_submission({"main.py": "#!/bin/sh\necho $1\n"})
    (submission / "main.py").chmod(0o755)
    results = evaluate(problem, submission, sandbox=sandbox, environment={"commands": {"command": ""}})
    assert {test.id: test.failure_message for test in results.tests if test.status != "passed"} == {}
