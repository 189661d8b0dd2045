"""scb-check for real: the same figures twice, whatever a submission does to steer or to break it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from slop_code.cli.main import run
from slop_code.execution.cache import remove_tree
from slop_code.execution.sandbox import PreparedSubject
from slop_code.quality import measure
from slop_code.quality.measure import LOCK, PYTHON, ScbCheck, locked_version
from slop_code.quality.quality_record import NO_FILES, QUALITY_FILE, CodePart, QualityRecord
from tests.command import SLOP_CODE

VERBOSE = """
def is_true(x):
    if x == True:
        return True
    else:
        return False


def is_yes(value):
    if value == True:
        return True
    else:
        return False
"""
COMPLEX = (
    "def choose(x):\n" + "".join(f"    if x == {n}:\n        return {n * 2}\n" for n in range(14)) + "    return x\n"
)
TESTS = "from lib.verbose import is_true\n\n\ndef test_it():\n    assert is_true(True) == True\n"
FILES = {"main.py": COMPLEX, "lib/verbose.py": VERBOSE, "tests/test_verbose.py": TESTS}
STEERING = {
    "pyproject.toml": '[tool.scb-check]\nexclude = ["**"]\n[tool.ruff]\nexclude = ["**"]\n',
    "scb-check.toml": 'exclude = ["**"]\n',
    "lib/scb-check.toml": "no TOML",
    "sgconfig.yml": "ruleDirs: [none]\n",
    "lib/sgconfig.yml": "{",
    ".gitignore": "*\n",
    "sg": "#!/bin/sh\nexit 0\n",
    "bin/ast-grep": "#!/bin/sh\nexit 0\n",
    "sitecustomize.txt": "",
}


@pytest.fixture(scope="session")
def scb_check(cache, need_bubblewrap, need_python):
    need_bubblewrap()
    need_python(PYTHON)
    return ScbCheck.install(cache)


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755)
    return folder


@pytest.fixture
def submission(tmp_path):
    """`submission({"main.py": "..."})`: a folder with these files."""
    return lambda files, name="snapshot": write(tmp_path / name, files)


@pytest.fixture(scope="session")
def plain(scb_check, tmp_path_factory):
    """The figures of FILES."""
    return scb_check.measure(write(tmp_path_factory.mktemp("plain"), FILES))


@pytest.fixture
def evaluation(make_problem, tmp_path):
    """The folder of a checkpoint, and the command that evaluates it."""
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run):\n    assert run().stdout == 'x\\n'\n"})
    shutil.copytree(problem.path, tmp_path / "problems" / problem.name)
    checkpoint = tmp_path / "run" / problem.name / "checkpoint_1"
    write(checkpoint / "snapshot", {"main.py": "print('x')\n"})
    return checkpoint, ["eval", str(tmp_path / "run"), "--problems-dir", str(tmp_path / "problems"), "--metrics"]


def parts(quality):
    return quality.implementation, quality.tests


@pytest.mark.long
def test_implementation_and_tests_are_measured_apart(plain):
    own, tests = parts(plain)

    assert (own.files, own.functions, own.high_cc_functions, own.max_complexity) == (2, 3, 1, 15)
    assert own.source_lines == 30 + 10
    assert 0 < own.erosion < 1
    assert own.clone_lines == 10 < own.flagged_lines
    assert own.verbosity == own.flagged_lines / 40
    assert own.languages == {"python": 2}
    assert (tests.files, tests.functions, tests.source_lines, tests.max_complexity) == (1, 1, 3, 2)
    assert (plain.reasons, plain.left_out) == ({}, [])
    assert plain.provenance.scb_check == locked_version()
    assert plain.provenance.sandbox == "bubblewrap"


@pytest.mark.long
def test_figures_are_those_of_the_command_itself(scb_check, plain, submission, tmp_path):
    folder = submission({name: text for name, text in FILES.items() if not name.startswith("tests/")})
    (tmp_path / "empty.toml").touch()
    entry = scb_check.subject.entry / "env" / "bin"
    argv = [entry / "python", "-I", "-c", "from scb_check.cli import main; main()", "check", folder]
    environment = {"PATH": str(entry), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*argv, "--report", "--include-all", "--config", tmp_path / "empty.toml"],
        capture_output=True, timeout=300, env=environment,
    )  # fmt: skip
    report = json.loads(done.stdout)

    own = plain.implementation
    assert (own.verbosity, own.erosion, own.cog_erosion) == tuple(
        report[name] for name in ("verbosity", "erosion", "cog_erosion")
    )
    assert own.flagged_lines == report["verbosity_flagged_loc"]


@pytest.mark.long
def test_the_same_submission_is_measured_once_and_a_second_measurement_gives_the_same(scb_check, plain, submission):
    folder = submission(FILES)
    without_tool = replace(scb_check, subject=PreparedSubject(scb_check.subject.entry.with_name("none")))

    assert scb_check.measure(folder) == plain == without_tool.measure(folder)
    remove_tree(scb_check.sandbox.cache.root / "quality")
    assert scb_check.measure(folder) == plain


@pytest.mark.long
def test_a_submission_cannot_steer_the_measurement(scb_check, plain, submission):
    directives = "# ast-grep-ignore\n# scbc ignore[bool-comparison]\n# noqa\n"
    code = {name: directives + text.replace("\n", "  # ast-grep-ignore\n") for name, text in FILES.items()}
    assert VERBOSE.startswith("\n")  # a comment takes its place, and no source line

    steered = scb_check.measure(submission({**code, **STEERING}))

    assert parts(steered) == parts(plain)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"# " + b"\f" * 300 + b"\n" + data,
        lambda data: "#{}\n".format("\u2028" * 500).encode() + data,
        lambda data: b"# -*- coding: latin-1 -*- \xe9\x85\n" + data,
        lambda data: data.replace(b"\ndef", b"\n\fdef"),
        lambda data: data + b"# \xff",
        lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\r") + b"# \r\r\r",
    ],
    ids=["form-feeds", "U+2028", "latin-1", "form-feed", "bad-byte", "BOM-CRLF", "CR"],
)
@pytest.mark.long
def test_an_odd_text_changes_nothing(scb_check, plain, submission, change):
    folder = submission(FILES)
    for path in FILES:
        (folder / path).write_bytes(change(FILES[path].encode()))

    quality = scb_check.measure(folder)

    assert parts(quality) == parts(plain)
    assert quality.left_out == []


@pytest.mark.long
def test_functions_of_modules_with_the_same_name_all_count(scb_check, plain, submission):
    trivial = "def choose(x):\n    return x\n"
    others = {"z/main.py": trivial, "z/verbose/__init__.py": trivial, "y/verbose/__init__.py": trivial}

    own = scb_check.measure(submission({**FILES, **others})).implementation

    assert (own.functions, own.max_complexity) == (plain.implementation.functions + 3, 15)
    assert own.high_cc_functions == 1


@pytest.mark.parametrize("name", ["build", "dist", "env", "venv"])
@pytest.mark.long
def test_code_in_a_folder_that_the_tool_skips_counts(scb_check, plain, submission, name):
    moved = {path.replace("lib/", f"{name}/"): text for path, text in FILES.items()}

    assert scb_check.measure(submission(moved)).implementation == plain.implementation


@pytest.mark.long
def test_a_submission_cannot_break_the_measurement(scb_check, plain, submission, tmp_path):
    folder = submission(FILES)
    (folder / "deep.py").write_text(f"x = {'(' * 3000}1{')' * 3000}\n")
    (folder / "nested.py").write_text("".join(f"{' ' * n}if x:\n" for n in range(99)) + " " * 99 + "x\n")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "binary.py").write_bytes(bytes(range(256)))
    with (folder / "huge.py").open("wb") as stream:
        stream.truncate(64 << 20)
    (folder / "link.py").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(".")
    (folder / "loop.py").symlink_to("loop.py")
    os.mkfifo(folder / "pipe.py")
    path = folder
    for _ in range(150):
        path = path / "deep"
        path.mkdir()

    quality = scb_check.measure(folder)
    left_out = {path for left in quality.left_out for path in left.first}

    assert quality.failures == {}
    assert quality.implementation.max_complexity >= plain.implementation.max_complexity
    assert quality.implementation.functions == plain.implementation.functions
    assert {"deep.py", "broken.py", "binary.py", "huge.py", "link.py", "loop.py", "pipe.py"} <= left_out
    assert quality.tests == plain.tests
    assert quality.incomplete == {CodePart.IMPLEMENTATION: sum(left.files for left in quality.left_out)}
    assert quality.whole_implementation is None


@pytest.mark.long
def test_a_submission_beyond_the_limits_of_an_evaluation_has_a_reason(scb_check, submission):
    folder = submission(FILES)
    with (folder / "huge.bin").open("wb") as stream:
        stream.truncate(1 << 40)

    quality = scb_check.measure(folder)

    assert parts(quality) == (None, None)
    assert set(quality.failures.values()) == {"the tree has more than 16 GiB, including holes in files"}


@pytest.mark.long
def test_odd_names_change_nothing(scb_check, plain, submission):
    folder = submission(FILES)
    (folder / "main.py").rename(folder / "ma\nin \x1b[31m.PY")
    os.rename(os.fsencode(folder / "lib"), os.fsencode(folder) + b"/-l\xff")

    assert parts(scb_check.measure(folder)) == parts(plain)


@pytest.mark.long
def test_what_cannot_be_measured_has_a_reason_and_no_zero(scb_check, submission):
    empty = scb_check.measure(submission({"main.go": "package main\n", "README.md": "x"}, "go"))
    broken = scb_check.measure(submission({"main.py": "def f(:\n"}, "broken"))

    assert parts(empty) == (None, None)
    assert empty.reasons == dict.fromkeys(CodePart, NO_FILES)
    assert [(left.reason, left.files) for left in empty.left_out] == [("scb-check reads no Go", 1)]
    assert parts(broken) == (None, None)
    assert broken.failures == {CodePart.IMPLEMENTATION: "none of the files can be parsed"}
    without_tool = replace(scb_check, subject=PreparedSubject(scb_check.subject.entry.with_name("none")))
    assert without_tool.measure(submission({}, "broken")) == broken


@pytest.mark.parametrize("name", ["a.js", "a.ts", "a.rs", "a.zig", "a.cpp"])
@pytest.mark.long
def test_other_languages_have_figures(scb_check, submission, name):
    texts = {
        ".js": "function f(x) { return x ? 1 : 2; }\n", ".ts": "function f(x: number) { return x ? 1 : 2; }\n",
        ".rs": "fn f(x: i32) -> i32 { if x > 1 { 1 } else { 2 } }\n",
        ".zig": "fn f(x: i32) i32 { return x; }\n", ".cpp": "int f(int x) { return x ? 1 : 2; }\n",
    }  # fmt: skip
    quality = scb_check.measure(submission({name: texts[Path(name).suffix]}))

    assert quality.implementation.source_lines >= 1


def test_every_module_that_decides_figures_is_in_the_key_of_the_cache():
    used = {"scb_check_driver.py", "scb_check_output.py", "quality_record.py", "scb-check.lock"}
    used |= {"sources.py", "source_text.py", "neutral_paths.py"}
    assert {file.name for file in measure.FIGURE_SOURCES if file.is_file()} == used


def test_every_package_of_the_lock_has_a_hash():
    requirements = LOCK.read_text().split("\n")
    pinned = [number for number, line in enumerate(requirements) if "==" in line]

    assert len(pinned) > 10
    assert all(requirements[number + 1].lstrip().startswith("--hash=sha256:") for number in pinned)
    assert "http" not in LOCK.read_text()


@pytest.mark.long
def test_the_command_writes_a_record_beside_each_snapshot(scb_check, plain, submission, tmp_path, capsys):
    folder = tmp_path / "run"
    for number in (1, 2, 3):
        shutil.copytree(submission(FILES), folder / "words" / f"checkpoint_{number}" / "snapshot")
    foreign = folder / "words" / "checkpoint_3" / QUALITY_FILE
    foreign.write_text('{"mass.cc": 1}')
    outside = tmp_path / "outside"
    shutil.copytree(submission(FILES), outside / "checkpoint_1" / "snapshot")
    (folder / "linked").symlink_to(outside)

    assert run(["metrics", str(folder), "-j", "2", "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)

    assert [each["label"] for each in answer] == [f"run/words/checkpoint_{number}" for number in (1, 2, 3)]
    assert QualityRecord.load(folder / "words" / "checkpoint_1") == plain
    assert answer[1]["quality"] == plain.model_dump(mode="json")
    assert "not replaced" in answer[2]["error"]
    assert foreign.read_text() == '{"mass.cc": 1}'
    assert not (outside / "checkpoint_1" / QUALITY_FILE).exists()
    assert run(["metrics", str(folder / "words" / "checkpoint_1")]) == 0
    assert "erosion 0." in capsys.readouterr().out


def test_a_failed_measurement_changes_no_verdict(scb_check, evaluation, capsys):
    checkpoint, command = evaluation
    (checkpoint / QUALITY_FILE).write_text("{}")

    assert run(command) == 0
    assert "was not measured" in capsys.readouterr().err
    (checkpoint / QUALITY_FILE).unlink()
    assert run(command) == 0
    assert "source line" in capsys.readouterr().out
    assert QualityRecord.load(checkpoint).implementation.source_lines == 1


@pytest.mark.e2e
def test_a_selection_of_tests_is_not_measured(evaluation, capsys):
    assert run([*evaluation[1], "-k", "x"]) == 2
    assert "--metrics cannot be used with a selection" in capsys.readouterr().err


@pytest.mark.e2e
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="slop-code itself runs on a Python that fits")
def test_no_fitting_python_is_a_message_that_says_what_to_install(submission, tmp_path, need_bubblewrap):
    need_bubblewrap()
    if Path("/usr/bin/python3.12").exists() or Path("/usr/bin/python3.13").exists():
        pytest.skip("the system's own Python fits")
    submission(FILES, "checkpoint_1/snapshot")
    hidden = {"PATH": "/usr/bin:/bin", "PYENV_ROOT": str(tmp_path), "UV_PYTHON_INSTALL_DIR": str(tmp_path / "none")}
    done = subprocess.run(
        [SLOP_CODE, "metrics", tmp_path / "checkpoint_1"],
        env={**os.environ, **hidden}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode == 2, done.stderr
    assert "scb-check needs Python 3.12 or newer" in done.stderr
    assert "uv python install 3.12" in done.stderr
