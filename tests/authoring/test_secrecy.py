import json
import os

import pytest

from slop_code.authoring.check import secrecy_step
from slop_code.authoring.check.findings import Severity
from slop_code.authoring.check.secrecy_step import (
    PassedBy,
    PassedText,
    ShownFiles,
    covering,
    looks_expected,
    read_showing,
)
from slop_code.authoring.check.steps import check_step
from slop_code.authoring.check.workbench import Workbench
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.judge.shown_files import MAX_TEXT, ShownFilesRecorder
from tests.marks import in_long


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("data/expected/a.txt", True),
        ("cases/one/expected_output.json", True),
        ("cases/one/Expected.TXT", True),
        ("cases/one.out", True),
        ("cases/7.ans", True),
        ("golden/a.bin", True),
        ("answers.csv", True),
        ("cases/one/stdout", True),
        ("data/recipes/pancakes.txt", False),
        ("data/logs/day.log", False),
        ("cases/unexpectedly.txt", False),
        ("cases/outside.txt", False),
        ("marigold.txt", False),
        ("cases/one/input.txt", False),
    ],
)
def test_names_of_expected_outputs(file, expected):
    assert looks_expected(file) is expected


@pytest.mark.parametrize(
    ("handed", "file", "root"),
    [
        ([], "cases/one/a.txt", None),
        (["cases/one/a.txt"], "cases/one/a.txt", "cases/one/a.txt"),
        (["cases", "cases/one"], "cases/one/a.txt", "cases/one"),
        (["cases", "cases/one/a.txt"], "cases/one/a.txt", "cases/one/a.txt"),
        (["cases/on"], "cases/one/a.txt", None),
    ],
)
def test_what_a_file_was_handed_over_with(handed, file, root):
    showing = ShownFiles((), dict.fromkeys(handed, "test"), frozenset(), {})
    assert showing.handed_with(file) == root


def showing(shown=(), handed=(), read=(), copied=(), texts=()):
    """`texts` has pairs of a way and files."""
    test = "test_checkpoint_1.py::test_x"
    passed = tuple(PassedText(tuple(files), way, test) for way, files in texts)
    return ShownFiles(tuple(shown), dict.fromkeys(handed, test), frozenset(read), dict.fromkeys(copied, test), passed)


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ({"shown": ["c/in.txt"], "handed": ["c/in.txt"], "read": ["c/in.txt"]}, []),
        ({"shown": ["c/in.txt", "c/want.txt"], "handed": ["c"]}, []),
        ({"shown": ["c/in.txt", "c/other.txt"], "handed": ["c"], "read": ["c/other.txt"]}, [("expected-shown", 2)]),
        ({"shown": ["c/in.txt", "c/expected.txt"], "handed": ["c"]}, [("expected-shown", 3)]),
        ({"shown": ["c/expected.txt"], "handed": ["c/expected.txt"]}, [("expected-shown", 3)]),
        ({"shown": ["c/expected.txt"]}, [("expected-visible", 3)]),
        ({"shown": ["assets/expected/a"]}, [("expected-visible", 3)]),
        ({"shown": ["assets/units"], "read": ["assets/units"]}, []),
        ({"copied": ["c/expected.txt", "c/in.txt"]}, [("expected-copied", 2)]),
        ({"copied": ["c/case.json"], "read": ["c/case.json"]}, [("expected-copied", 1)]),
        ({"texts": [(PassedBy.ARGUMENT, ["c/expected.txt"])]}, [("expected-shown", 2)]),
        ({"texts": [(PassedBy.ENVIRONMENT, ["c/a.out", "c/b.out"])]}, [("expected-shown", 2)]),
        ({"texts": [(PassedBy.FILE, ["c/expected.txt"])]}, [("expected-copied", 2)]),
        ({"texts": [(PassedBy.FILE, ["c/expected.txt"])], "copied": ["c/expected.txt"]}, [("expected-copied", 2)]),
        ({"texts": [(PassedBy.ARGUMENT, ["c/in.txt"])]}, []),
        ({"texts": [(PassedBy.ARGUMENT, ["c/expected.txt", "c/in.txt"])]}, []),
        ({"texts": [(PassedBy.ARGUMENT, [])]}, []),
    ],
)
def test_what_a_showing_gives_away(tmp_path, what, found):
    findings = secrecy_step.findings_of(tmp_path, "checkpoint_1", showing(**what))
    assert [(finding.rule.id, finding.severity) for finding in findings] == found


def test_one_finding_for_all_that_came_along_with_a_folder(tmp_path):
    files = [f"c/{name}" for name in "abcdef"]
    [finding] = secrecy_step.findings_of(tmp_path, "checkpoint_1", showing(files, ["c"], files))
    assert (
        "tests/c/a, c/b, c/c and 3 more is shown, as the folder tests/c is passed to the submission" in finding.message
    )
    assert (finding.severity, finding.test) == (Severity.WARNING, "test_checkpoint_1.py::test_x")


HEAD = "checkpoint_1: besides its own files the submission is shown"
BY_TEST = "passed by test_checkpoint_1.py::test_x"


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ({}, [f"{HEAD} no files"]),
        ({"shown": ["c/in.txt"], "handed": ["c/in.txt"]}, [f"{HEAD} 1 file", f"  tests/c/in.txt: {BY_TEST}"]),
        (
            {"shown": ["assets/units", "c/in.txt"], "handed": ["assets/units"]},
            [f"{HEAD} 2 files", "  assets/units: static_assets", "  tests/c/in.txt: visible"],
        ),
        (
            {"shown": ["c/in.txt", "c/z.out"], "handed": ["c"]},
            [
                f"{HEAD} 2 files, 1 of them by name an expected output",
                f"  tests/c/z.out: with the folder tests/c, {BY_TEST}",
                f"  tests/c/in.txt: with the folder tests/c, {BY_TEST}",
            ],
        ),
        (
            {"shown": ["a"], "copied": ["a", "b"]},
            [f"{HEAD} 2 files", "  tests/a: visible", "  tests/b: copied by test_checkpoint_1.py::test_x"],
        ),
        ({"shown": ["a\x1b[31m\nb"]}, [f"{HEAD} 1 file", "  tests/a\\x1b[31m b: visible"]),
    ],
    ids=["none", "passed", "config", "folder", "copied", "control characters"],
)
def test_shown_files_are_named_with_their_way(what, lines):
    assert list(secrecy_step.shown_lines("checkpoint_1", showing(**what))) == lines


def test_the_list_of_shown_files_has_an_end_and_begins_with_expected_outputs():
    lines = list(secrecy_step.shown_lines("checkpoint_1", showing([*map(str, range(30)), "z/expected.txt"])))
    assert (len(lines), lines[1], lines[-1]) == (
        22,
        "  tests/z/expected.txt: visible",
        "  and 11 more; --json names them",
    )


def test_code_outside_of_tests_is_no_test():
    files = ShownFiles(("a",), {"a": ""}, frozenset(), {})
    assert list(secrecy_step.shown_lines("c", files))[1] == "  tests/a: passed by code outside of tests"


@pytest.mark.parametrize(
    ("prior", "chosen"), [([True, True, True], [3]), ([True, False, True], [3]), ([True, True, False], [2, 3])]
)
def test_as_few_checkpoints_as_have_all_tests(authored, prior, chosen):
    lines = [f"  c{number}: {{include_prior_tests: {str(own).lower()}}}" for number, own in enumerate(prior, 1)]
    head = "name: x\nversion: 1\ndescription: ''\ntags: []\nentry_file: main\ncheckpoints:\n"
    problem = ProblemConfig.from_yaml(authored({"config.yaml": head + "\n".join(lines)}))
    assert [one.name for one in covering(list(problem.checkpoints.values()))] == [f"c{number}" for number in chosen]


@pytest.fixture
def recorder(tmp_path):
    """A recorder for a folder of tests, asked as an audit hook is: `recorder(event, ...)`."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "expected.txt").write_text("the answer is 42\n")
    (tests / "same.txt").write_text("  the answer is 42")
    (tests / "short.out").write_text("42\n")
    (tests / "long.out").write_text("4" * (MAX_TEXT + 1))
    recorder = ShownFilesRecorder(str(tests), str(tmp_path), ())
    recorder.running = "test_x"
    return recorder


def start(recorder, *argv, **environment):
    recorder.hook("subprocess.Popen", (argv[0], list(argv), None, environment))


def opens(recorder, path, flags=os.O_RDONLY):
    recorder.hook("open", (str(path), "", flags))


def test_a_text_is_met_in_arguments_environment_and_files(recorder, tmp_path):
    start(recorder, "main", "the answer is 42")
    opens(recorder, tmp_path / "tests" / "expected.txt")
    start(recorder, "main", "what is the answer?", A="b")
    assert recorder.passed_texts.matches == []
    start(recorder, "main", "--is=the answer is 42", WORD="the answer is 42")
    start(recorder, "main", "the answer is 42 again")
    (tmp_path / "copy").write_text("# the answer is 42")
    opens(recorder, tmp_path / "copy", os.O_WRONLY)
    start(recorder, b"main")
    opens(recorder, tmp_path / "tests" / "same.txt")
    files = ["expected.txt", "same.txt"]
    assert recorder.passed_texts.matches == [{"files": files, "way": way, "test": "test_x"} for way in PassedBy]


def test_what_a_program_writes_is_its_own(recorder, tmp_path):
    """A file that the test opens for it is looked at as the program starts, and not again."""
    opens(recorder, tmp_path / "tests" / "expected.txt")
    (tmp_path / "out").touch()
    opens(recorder, tmp_path / "out", os.O_WRONLY)
    start(recorder, "main")
    (tmp_path / "out").write_text("the answer is 42\n")
    start(recorder, "main")
    assert recorder.passed_texts.matches == []


@pytest.mark.parametrize("name", ["short.out", "long.out", "none.out"])
def test_texts_that_are_not_looked_for(recorder, tmp_path, name):
    opens(recorder, tmp_path / "tests" / name)
    start(recorder, "main", "42", "4" * (MAX_TEXT + 1))
    assert recorder.passed_texts.matches == []


@pytest.mark.parametrize("arguments", [(), (1, None), ("main", 5, None, None), ("main", ["\0", 5], None, {1: 2})])
def test_odd_arguments_are_for_others_to_refuse(recorder, tmp_path, arguments):
    opens(recorder, tmp_path / "tests" / "expected.txt")
    recorder.hook("subprocess.Popen", arguments)
    opens(recorder, tmp_path / "tests" / "same.txt")
    assert sorted(recorder.read) == ["expected.txt", "same.txt"]


def test_a_copy_is_not_a_reading(recorder, tmp_path):
    source, other = tmp_path / "tests" / "expected.txt", tmp_path / "tests" / "same.txt"
    recorder.hook("shutil.copyfile", (str(source), str(tmp_path / "copy")))
    opens(recorder, source)
    recorder.hook("os.link", (str(other), str(tmp_path / "link"), -1, -1))
    assert (sorted(recorder.copied), recorder.read) == (["expected.txt", "same.txt"], {})
    opens(recorder, source)
    assert list(recorder.read) == ["expected.txt"]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"shown": 1}', "[" * 100_000])
def test_a_word_that_cannot_be_read_is_none(tmp_path, text):
    if text is not None:
        (tmp_path / ".scbench").mkdir()
        (tmp_path / ".scbench" / "shown.json").write_text(text)
    assert read_showing(tmp_path) is None


def test_a_word_that_can_be_read(tmp_path):
    (tmp_path / ".scbench").mkdir()
    word = {
        "shown": ["a"],
        "handed": {"a": "t"},
        "read": ["b"],
        "copied": {},
        "passed_texts": [{"files": ["b"], "way": "file", "test": "t"}],
    }
    (tmp_path / ".scbench" / "shown.json").write_text(json.dumps(word))
    texts = (PassedText(("b",), PassedBy.FILE, "t"),)
    assert read_showing(tmp_path) == ShownFiles(("a",), {"a": "t"}, frozenset("b"), {}, texts)


CONFIG = """\
name: shout
version: 1
description: Prints files in capitals.
tags: [cli]
entry_file: main
visible: ["open/*"]
static_assets:
  units: {path: units}
checkpoints:
  checkpoint_1:
  checkpoint_2:
"""
CONFTEST = """\
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = [path.name for path in sorted((HERE / "cases").iterdir()) if (path / "cmd").read_text()]
"""
FIRST = """\
from conftest import CASES, HERE


def test_folder(run):
    for case in CASES:
        assert run(HERE / "cases" / case).returncode == 0


def test_file(run):
    assert run(HERE / "data" / "one.txt").stdout == (HERE / "data" / "one.right").read_text()
"""
SECOND = """\
from conftest import HERE


def test_second(run):
    assert run(f"--file={HERE / 'data' / 'two.txt'}").returncode == 0


def test_tells(run, tmp_path):
    word = (HERE / "hidden" / "golden.txt").read_text()
    (tmp_path / "word").write_text(word)
    assert run(f"--word={word}").returncode == 0
"""
MAIN = """\
import pathlib
import sys

path = pathlib.Path(sys.argv[1])
print(path.read_text().upper() if path.is_file() else "")
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_what_a_submission_is_shown(sandbox, authored, cache, environment_spec, need):
    need(sandbox)
    files = {
        "config.yaml": CONFIG,
        "units": "cup = 240 ml",
        "tests/test_checkpoint_1.py": FIRST,
        "tests/test_checkpoint_2.py": SECOND,
        "tests/open/answers.txt": "42",
        "tests/cases/a/cmd": "x",
        "tests/cases/a/right": "y",
        "tests/data/one.txt": "one",
        "tests/data/one.right": "ONE\n",
        "tests/data/two.txt": "two",
        "tests/hidden/golden.txt": "the secret",
        "solutions/checkpoint_1/main.py": MAIN,
        "solutions/checkpoint_2/main.py": MAIN,
    }
    folder = authored(files)
    conftest = folder / "tests" / "conftest.py"
    conftest.write_text(CONFTEST + conftest.read_text())
    problem = ProblemConfig.from_yaml(folder)
    report = check_step(Workbench(problem, environment_spec(sandbox=sandbox)), "secrecy")
    assert report.broken is None
    assert report.outcome.facts == {
        "shown": {
            "checkpoint_2": [
                "assets/units", "cases/a/cmd", "cases/a/right", "data/one.txt", "data/two.txt", "open/answers.txt",
            ]
        }
    }  # fmt: skip
    assert [(one.rule.id, str(one.location), one.severity) for one in report.outcome.findings] == [
        ("expected-visible", "config.yaml", Severity.ERROR),
        ("expected-shown", "tests/test_checkpoint_1.py:4", Severity.WARNING),
        ("expected-shown", "tests/test_checkpoint_2.py:8", Severity.WARNING),
        ("expected-copied", "tests/test_checkpoint_2.py:8", Severity.WARNING),
    ]
    assert (
        "tests/cases/a/cmd is shown, as the folder tests/cases/a is passed to the submission"
        in report.outcome.findings[1].message
    )


@pytest.mark.parametrize(
    ("overlay", "location"),
    [
        ({"environment.yaml": "type: local\nname: bare\nisolation: none\n"}, "environment.yaml"),
        ({"config.yaml": CONFIG.replace("checkpoints:", "in_process: true\ncheckpoints:"), "units": ""}, "config.yaml"),
    ],
)
def test_where_nothing_is_hidden_nothing_is_run(bench, overlay, location):
    report = check_step(bench(overlay), "secrecy")
    assert [(one.rule.id, str(one.location)) for one in report.outcome.findings] == [("nothing-hidden", location)]


def test_an_environment_that_was_asked_for_is_not_the_problem_s_own(bench):
    own = bench({"environment.yaml": "type: local\nname: bare\nisolation: none\n"})
    own.named_environment = "bare.yaml"
    [finding] = check_step(own, "secrecy").outcome.findings
    assert str(finding.location) == "config.yaml"
