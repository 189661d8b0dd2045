"""`slop-code show` over results that were made by hand."""

import json
import os
import re
import resource
import shlex

import pytest

from slop_code.cli.main import run
from slop_code.evaluation import PytestRunner
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.last_result import keep_last_result
from slop_code.evaluation.result_files.origin import Origin, stored_origin
from slop_code.execution.cache import Cache
from tests.factories import LOCAL, problem, result

HOSTILE = "\x1b]0;owned\x07\x9b31m[red]\r\u202e"
MESSAGE = "\n".join([*map(str, range(100)), "E   assert 1 == 2"])
TESTS = [
    {"id": "test_a[1]", "group_type": "Core", "status": "passed"},
    {
        "id": "test_a[2]", "group_type": "Core", "status": "failed", "failure_message": MESSAGE,
        "calls": ["python main.py 'a b'", "python main.py"], "output": "first\nsecond\n", "markers": ["slow", "fast"],
    },
    {"id": "test_a", "group_type": "Error", "status": "skipped", "file_path": "test_checkpoint_0.py"},
    *({"id": f"test_many[{number}]", "group_type": "Error", "status": "passed"} for number in range(30)),
]  # fmt: skip
PROVENANCE = {
    "digests": {"submission": "5" * 64, "tests": "7" * 64, "config": "c" * 64, "environment": "e" * 64},
    "evaluation_version": "1-abc", "test_dependencies": {"pytest": "9.1"}, "python": "3.12.1", "platform": "Linux-x",
    "slop_code": "0.1.0", "command": [], "pytest_args": [],
}  # fmt: skip


def results(tests=TESTS, **fields):
    plain = {
        "duration": 2.5, "pytest_exit_code": 1, "isolation": {"sandbox": "bubblewrap", "network": "none"},
        "provenance": PROVENANCE,
    }  # fmt: skip
    return result([{"duration_ms": 12.3, **test} for test in tests], **{**plain, **fields})


@pytest.fixture
def folder(tmp_path):
    stored = tmp_path / "run" / "words" / "checkpoint_1"
    results().save(stored / "evaluation.json")
    return stored


@pytest.fixture
def show(capsys):
    def call(*arguments):
        status = run(["show", *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def test_a_result_is_printed_with_groups_and_provenance(folder, show):
    status, shown, _ = show(folder)
    assert status == 0
    assert shown.splitlines()[:7] == [
        "words checkpoint_1",
        "  core: 1/2",
        "  error: 30/31",
        "by: slop-code 0.1.0 (rules 1-abc), pytest 9.1, Python 3.12.1, Linux-x",
        "of: submission 555555555555, tests 777777777777, config cccccccccccc, environment eeeeeeeeeeee",
        "isolation: bubblewrap, network none; tests read from json-report; 2.5 s",
        "FAILED Core test_checkpoint_1.py::test_a[2]: assert 1 == 2",
    ]
    assert len(shown.splitlines()) == 10
    assert shown.splitlines()[-1] == "NOT PASSED (all-cases): 31 of 33 tests passed"
    assert "PASSED Error" not in shown
    assert f"\na test in full: slop-code show {folder} TEST\n" in shown
    file = folder / "evaluation.json"
    assert show(file) == (0, shown.replace(f"show {folder} ", f"show {file} "), "")


def test_every_test_and_another_policy(folder, show):
    shown = show(folder, "-v", "--pass-policy", "error >= 95%")[1]
    assert shown.count("PASSED Error test_checkpoint_1.py::test_many[") == 30
    assert shown.splitlines()[-1] == "PASSED (error >= 95%): 31 of 33 tests passed"


def test_pytest_arguments_attempts_and_missing_isolation_are_shown(folder, show):
    attempts = [{"reason": "no space\nleft", "duration": 1.0}]
    special = results(provenance={**PROVENANCE, "pytest_args": ["-k", "a or b"]}, attempts=attempts, isolation={})
    special.save(folder / "evaluation.json")
    shown = show(folder)[1]
    assert "\npytest arguments: -k 'a or b'\n" in shown
    assert "\ntried before: no space\n" in shown
    assert "\nisolation: none; " in shown


def test_a_submission_that_could_not_be_set_up_has_no_isolation_of_tests(folder, show):
    results(evidence="setup", isolation={}).save(folder / "evaluation.json")
    shown = show(folder)[1]
    assert "\nno test ran, since the submission could not be set up; 2.5 s\n" in shown
    assert "isolation: " not in shown


@pytest.mark.parametrize("text", ["test_checkpoint_1.py::test_a[2]", "test_a[2]", "a[2]"])
def test_one_test_in_full(folder, show, text):
    status, shown, _ = show(folder, text)
    assert status == 0
    lines = shown.splitlines()
    assert lines[:3] == [
        "FAILED Core test_checkpoint_1.py::test_a[2]",
        "words checkpoint_1; test of checkpoint_1; 12 ms; markers: slow, fast",
        "message:",
    ]
    assert lines[3:104] == [f"    {line}" for line in MESSAGE.splitlines()]
    assert lines[104:-1] == [
        "ran:", "    python main.py 'a b'", "    python main.py", "printed:", "    first", "    second",
    ]  # fmt: skip
    again = ["slop-code", "rerun", str(folder), "test_checkpoint_1.py::test_a[2]"]
    assert shlex.split(lines[-1].removeprefix("again: ")) == again


def test_a_test_that_passed_and_no_verdict(folder, show):
    results(infrastructure_failure_reason="killed\nby 9").save(folder / "evaluation.json")
    assert show(folder, "a[1]")[1].splitlines()[:-1] == [
        "PASSED Core test_checkpoint_1.py::test_a[1]",
        "words checkpoint_1; test of checkpoint_1; 12 ms; markers: none",
        "no verdict on the checkpoint: killed",
    ]


@pytest.mark.parametrize(
    ("test", "count", "said"),
    [("test_many", 12, "30 tests have 'test_many'"), ("a[", 3, "2 tests have"), ("x", 1, "no test has 'x'")],
)
def test_a_text_that_names_not_one_test_is_a_usage_error(folder, show, test, count, said):
    status, shown, complaint = show(folder, test)
    assert (status, shown) == (2, "")
    assert said in complaint
    assert len(complaint.splitlines()) == count


def test_json_output_loads_as_the_stored_result(folder, show):
    whole = show(folder, "--json")[1]
    assert CorrectnessResults.model_validate_json(whole) == results()
    assert json.loads(show("--json", folder, "a[2]")[1]) == results().tests[1].model_dump(mode="json")


def test_a_run_is_no_result(folder, show):
    run_folder = folder.parent.parent
    status, shown, complaint = show(run_folder)
    assert (status, shown) == (2, "")
    assert complaint.splitlines()[1:] == [f"  {folder}"]
    assert "\n  and 5 more\n" in _with_many(run_folder, show)


def _with_many(run_folder, show):
    for number in range(2, 26):
        results().save(run_folder / "words" / f"checkpoint_{number}" / "evaluation.json")
    return show(run_folder)[2]


@pytest.mark.parametrize("given", ["nowhere", "nowhere/evaluation.json", ""])
def test_a_path_without_a_result_is_refused(tmp_path, show, given):
    status, shown, complaint = show(tmp_path / given)
    assert (status, shown) == (2, "")
    assert str(tmp_path) in complaint


@pytest.mark.parametrize("options", [[], ["-v"], ["test_a"], ["--json"], ["test_a", "--json"]])
def test_nothing_reaches_the_terminal_as_a_command(folder, show, options):
    test = {
        "id": f"test_a{HOSTILE}", "group_type": "Core", "status": "failed", "checkpoint": HOSTILE,
        "file_path": HOSTILE, "markers": [HOSTILE], "failure_message": HOSTILE, "calls": [HOSTILE], "output": HOSTILE,
    }  # fmt: skip
    made = {**PROVENANCE, "platform": HOSTILE, "pytest_args": [HOSTILE]}
    bad = results([test], problem_name=HOSTILE, warnings=[HOSTILE], isolation={"sandbox": HOSTILE}, provenance=made)
    bad.save(folder / "evaluation.json")
    status, shown, _ = show(folder, *options)
    assert status == 0
    assert not set(shown) & set("\x1b\x07\x9b\r\u202e")
    assert "[red]" in shown


@pytest.fixture
def last(tmp_path, monkeypatch):
    """`last()` keeps a result as that of the last eval-snapshot."""
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snapshot").mkdir()
    runner = PytestRunner(problem(), "checkpoint_1", LOCAL, tmp_path / "snapshot", cache=Cache.at(tmp_path / "cache"))
    return lambda **fields: keep_last_result(results(**fields), runner, None)


def test_without_a_path_the_last_result_is_shown(last, show, tmp_path):
    assert last()
    assert last(problem_name="later")
    status, shown, notes = show()
    assert status == 0
    assert shown.startswith("later checkpoint_1\n")
    assert "\na test in full: slop-code show TEST\n" in shown
    assert re.search(
        rf"last result of eval-snapshot without -o, of 2[-0-9]+ [0-9:]+: {tmp_path}/snapshot$", notes, re.M
    )
    assert [path.name for path in (tmp_path / "cache/last").glob("[!.]*")] == ["evaluation.json"]
    assert json.loads(show("--json")[1])["problem_name"] == "later"


def test_the_last_result_is_replaced_with_its_origin(last, tmp_path):
    """Whatever an evaluation at the same time, or one that was killed, left in its folder."""
    stale = tmp_path / "cache/last/.slop-code"
    Origin(problem=str(tmp_path), snapshot=str(tmp_path / "other")).keep(tmp_path)
    stale.parent.mkdir(parents=True)
    stale.symlink_to(tmp_path / ".slop-code")
    assert last()
    assert stored_origin(stale.parent).snapshot == str(tmp_path / "snapshot")
    assert stored_origin(tmp_path).snapshot == str(tmp_path / "other")
    assert list((tmp_path / "cache/sessions").iterdir()) == []


def test_a_link_in_place_of_the_last_result_is_not_followed(last, show, folder, tmp_path):
    before = (folder / "evaluation.json").read_bytes()
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache/last").symlink_to(folder)
    assert last(problem_name="later")
    assert show()[1].startswith("later checkpoint_1\n")
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("evaluation.json", before)]


def test_an_impossible_date_of_the_last_result_is_not_shown(last, show, tmp_path):
    last()
    try:
        os.utime(tmp_path / "cache/last/evaluation.json", (999999999999, 999999999999))
    except OSError:
        pytest.skip("this file system has no such dates")
    status, _, notes = show()
    assert status == 0
    if os.stat(tmp_path / "cache/last/evaluation.json").st_mtime == 999999999999:
        assert ", of an unknown date: " in notes


def test_a_result_that_cannot_be_kept_leaves_no_older_one(last, show):
    assert last()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert not last(problem_name="later")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "no result is kept yet" in show()[2]


def test_one_word_names_a_test_of_the_last_result_unless_it_is_a_path(last, show, folder):
    last()
    assert show("test_a[2]")[1].startswith("FAILED Core test_checkpoint_1.py::test_a[2]\n")
    status, _, message = show("test_many")
    assert (status, "30 tests have 'test_many' in their names" in message) == (2, True)
    status, _, message = show("test_mnay")
    assert (status, "no test has 'test_mnay' in its name; did you mean test_many" in message) == (2, True)
    assert "runs/today: no evaluation.json there" in show("runs/today")[2]
    (folder.parents[2] / "test_a[2]").mkdir()
    assert "test_a[2]: no evaluation.json there" in show("test_a[2]")[2]


def test_without_a_last_result_it_says_what_to_do(last, show, tmp_path):
    status, _, message = show()
    assert status == 2
    assert "no result is kept yet; evaluate a snapshot with slop-code eval-snapshot without -o" in message
    assert "test_a: no evaluation.json there" in show("test_a")[2]
    last()
    (tmp_path / "cache/last/evaluation.json").write_text("{")
    assert "cache/last/evaluation.json" in show()[2]
    assert run(["cache", "prune", "--all", "--docker", "no-such-engine"]) == 0
    assert "no result is kept yet" in show()[2]


def test_a_cache_that_cannot_be_written_keeps_no_result(last, tmp_path):
    assert last()
    (tmp_path / "cache/.last.lock").unlink()
    (tmp_path / "cache/.last.lock").mkdir()
    assert not last()
