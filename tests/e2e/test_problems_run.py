"""`slop-code problems run`: live output, the debugger, and again when a file changes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from typing import IO

import pytest
import yaml

from tests.command import SLOP_CODE, slop_code
from tests.conftest import SANDBOXES
from tests.marks import in_long

PATIENCE_S = 600
READS = """
import os, sys
if sys.argv[1:] == ["read"]:
    print([sys.stdin.read(), *map(os.isatty, range(3))])
else:
    print("hello")
"""
TESTS = """
import pytest


def test_greets(run):
    assert run().stdout == "hello\\n"


@pytest.mark.parametrize("text", ["\\x1b[31mred"])
def test_prints(text):
    print(text)

def test_stops(run):
    value = 41
    breakpoint()
    done = run("read", stdin=None)
    assert (value, done.stdout) == (42, "['', False, False, False]\\n")
"""


class Loop:
    """A command whose output is read up to a word; what it reads is a pipe or a terminal."""

    def __init__(self, words, *, terminal=False):
        ours, theirs = pty.openpty() if terminal else reversed(os.pipe())
        self._input = ours
        self.process = subprocess.Popen(
            [SLOP_CODE, "problems", "run", *map(str, words)],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(theirs)
        assert self.process.stdout is not None
        self._output: IO[bytes] = self.process.stdout
        self.text = ""
        self._from = 0

    def until(self, pattern):
        """What was printed since the last pattern, up to this one."""
        deadline = time.monotonic() + PATIENCE_S
        while not (match := re.compile(pattern).search(self.text, self._from)):
            ready, _, _ = select.select([self._output], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self._output.fileno(), 1 << 16) if ready else b""
            assert chunk, f"no {pattern!r} in\n{self.text}"
            self.text += chunk.decode()
        start, self._from = self._from, match.end()
        return self.text[start : match.end()]

    def say(self, *lines):
        os.write(self._input, "".join(f"{line}\n" for line in lines).encode())

    def hang_up(self):
        os.close(self._input)
        self._input = -1

    def end(self):
        """Its exit status, and the rest of what it printed."""
        self.text += self._output.read().decode()
        return self.process.wait(PATIENCE_S), self.text[self._from :]

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self._input)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._output.close()


@pytest.fixture
def problem(make_problem):
    made = make_problem({"test_checkpoint_1.py": TESTS}, files={"solutions/checkpoint_1/main.py": READS})
    return made.path


@pytest.fixture
def loop(cache, need_bubblewrap):
    need_bubblewrap()
    with contextlib.ExitStack() as stack:

        def start(*words, **how):
            started = Loop(words, **how)
            stack.callback(started.close)
            return started

        yield start


@pytest.fixture
def environment(tmp_path, need_docker):
    """A file of an environment with that sandbox."""

    def write(sandbox):
        if sandbox == "docker":
            need_docker()
        path = tmp_path / "environment.yaml"
        path.write_text(yaml.safe_dump({"name": "own", **SANDBOXES[sandbox]}))
        return path

    return write


@pytest.mark.parametrize(
    ("sandbox", "terminal"),
    [
        ("bubblewrap", True),
        *in_long(("bubblewrap", False), ("none", True), ("none", False), ("docker", True), ("docker", False)),
    ],
)
def test_the_debugger_reads_the_terminal(problem, loop, environment, sandbox, terminal):
    """It reads what we read, and the submission, though it was handed pytest's own input, reads nothing of it."""
    running = loop(problem, "-k", "test_stops", "--pdb", "-e", environment(sandbox), terminal=terminal)
    running.until(r"IO-capturing turned off[^$]*\(Pdb\) ")
    running.say("p value + 1", "next", "p done.stdout", "value = 42", "continue")
    assert "42\n(Pdb)" in running.until(re.escape("(Pdb) \"['', False, False, False]\\n\""))
    status, rest = running.end()
    assert status == 0
    assert "1 of 1 chosen tests passed" in rest


@pytest.mark.long
def test_debugger_where_a_test_fails(problem, loop):
    """Time goes by in it: the limit of a test is for tests."""
    config = yaml.safe_load((problem / "config.yaml").read_text())
    (problem / "config.yaml").write_text(yaml.safe_dump({**config, "timeout": 1}))
    (problem / "solutions/checkpoint_1/main.py").write_text("print('hallo')")
    running = loop(problem, "-k", "test_greets", "--pdb")
    running.until(r"post_mortem \(IO-capturing turned off\)[^$]*\(Pdb\) ")
    running.say("import time; time.sleep(1.5)", "p 'after'")
    running.until(r"\(Pdb\) 'after'\n")
    running.say("quit")
    status, rest = running.end()
    assert (status, "the debugger was left before the end of the tests" in rest) == (1, True)


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_the_debugger_ends_with_its_input(problem, loop, environment, sandbox):
    """Nobody waits for more of it."""
    running = loop(problem, "-k", "test_stops", "--pdb", "-e", environment(sandbox))
    running.until(r"IO-capturing turned off[^$]*\(Pdb\) ")
    running.hang_up()
    status, rest = running.end()
    assert (status, "0 of 1 chosen tests passed" in rest) == (1, True)


def test_a_changed_file_runs_the_tests_again(problem, loop):
    tests, config = problem / "tests/test_checkpoint_1.py", problem / "config.yaml"
    tests.write_text("def test_greets(run):\n    assert run().stdout == 'hallo\\n'\n")
    running = loop(problem, "--watch")
    assert "NOT PASSED (all-cases): 0 of 1" in running.until("waiting for a change")
    beside = problem / "tests/.new"
    beside.write_text("def test_greets(run):\n    assert run().stdout == 'hello\\n'\n")
    beside.rename(tests)
    assert "tests/test_checkpoint_1.py\n" in running.until("changed: .*\n")
    said = running.until("waiting for a change")
    assert "test_checkpoint_1.py::test_greets: failed before, passed now" in said
    good = config.read_text()
    config.write_text("name: [")
    assert "config.yaml" in running.until("changed: .*\n")
    assert "slop-code: " in running.until("waiting for a change")
    config.write_text(good)
    assert "every test has the status it had before" in running.until("waiting for a change")
    running.process.send_signal(signal.SIGINT)
    status, rest = running.end()
    assert (status, "interrupted" in rest) == (130, True)


@pytest.mark.long
def test_seed_load_and_parallel_runs_are_printed_live(problem, loop):
    """Live, with each failure once, and nothing of it is a command for the terminal."""
    (problem / "tests/test_checkpoint_1.py").write_text(TESTS.partition("def test_stops")[0] + "    assert not text\n")
    status, said = loop(problem, "-v", "--seed", "7", "--busy", "--parallel", "2").end()
    assert status == 1
    assert said.count("test session starts") == 2
    live, _, summary = said.partition("core: 1/2\n")
    assert len(re.findall(r"^E .*assert not", live, re.MULTILINE)) == 1
    assert "short test summary" not in live
    assert "test_prints" not in summary
    assert summary.splitlines()[-1] == "NOT PASSED (all-cases): 1 of 2 tests passed"
    assert "\\x1b[31mred" in said
    assert "\x1b" not in said


def test_each_failure_is_one_line_with_its_reason(problem, cache, need_bubblewrap):
    """Failures with the same reason are together, and pytest's own output is not shown."""
    same = "".join(f"def test_{name}(run):\n    assert run().stdout == 'hallo\\n'\n\n\n" for name in "abc")
    odd = "def test_odd():\n    raise ValueError('\x1b[31mred')\n"
    (problem / "tests/test_checkpoint_1.py").write_text(same + odd)
    need_bubblewrap()
    done = slop_code("problems", "run", problem)
    status, said = done.returncode, done.stderr + done.stdout
    lines = [line for line in said.splitlines() if not line.startswith("· ")]
    group = lines.index(next(line for line in lines if line.startswith("3 tests: ")))
    assert [line.split()[-1] for line in lines[group + 1 : group + 4]] == [
        f"test_checkpoint_1.py::test_{name}" for name in "abc"
    ]
    assert lines[group + 4 :] == [
        "FAILED Core test_checkpoint_1.py::test_odd: ValueError: \\x1b[31mred",
        "failures in full: -v",
        "NOT PASSED (all-cases): 0 of 4 tests passed",
    ]
    assert (status, said.count("test_odd"), "test session starts" in said) == (1, 1, False)


def test_arguments_for_pytest_show_its_own_output(problem, cache, need_bubblewrap):
    need_bubblewrap()
    (problem / "tests/test_checkpoint_1.py").write_text("def test_wrong():\n    assert 1 == 2\n")
    done = slop_code("problems", "run", problem, "--pytest-arg=-l")
    status, said = done.returncode, done.stderr + done.stdout
    assert (status, said.count("E       assert 1 == 2")) == (1, 1)
    assert "test session starts" in said
    assert said.endswith("NOT PASSED (all-cases): 0 of 1 tests passed\n")


def test_json_is_all_of_standard_output_whatever_the_verdict(cache, need_bubblewrap, make_problem):
    """In a process of its own, since one that it starts may write there, too."""
    need_bubblewrap()
    tests = "def test_good(): print('live')\n\ndef test_bad(): assert False"
    made = make_problem({"test_checkpoint_1.py": tests}, files={"solutions/checkpoint_1/main.py": ""})
    argv = [SLOP_CODE, "problems", "run", str(made.path), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert sorted(test["status"] for test in document["tests"]) == ["failed", "passed"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("elsewhere", "no test matches -k elsewhere"),
        ("not a test", "Wrong expression passed to '-k': not a test: "),
    ],
)
@pytest.mark.parametrize("command", ["problems run", *in_long("eval-snapshot")])
def test_a_selection_of_no_test_is_wrong_use(problem, cache, need_bubblewrap, tmp_path, command, expression, message):
    need_bubblewrap()
    words = [problem, "-c", "1"]
    if command == "eval-snapshot":
        words = [problem / "solutions/checkpoint_1", "-p", *words, "-o", tmp_path / "out"]
    done = slop_code(*command.split(), *words, "-k", expression)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("out/*"))
