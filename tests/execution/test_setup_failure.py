"""Failed set-up: the submission's fault is a verdict, anything else is an infrastructure failure."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace

import pytest

from slop_code.errors import InfrastructureError, SlowSetupError, SubmissionSetupError
from slop_code.evaluation.run_tests import repeat_setup
from slop_code.execution.bubblewrap import bubblewrap_sandbox
from slop_code.execution.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from slop_code.execution.installation.setup_failure import (
    SetupStep,
    SetupStepError,
    StepKind,
    is_worth_repeating,
    setup_error,
)
from slop_code.execution.process import ProcessResult
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.sandbox import SetupJob, sandbox_for
from slop_code.execution.session import Session
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify
from tests.execution.package_index import serve_index
from tests.marks import in_long

SHELL = {"command": "sh", "entry_file": "main.sh"}
IMPOSSIBLE = {"requirements.txt": "six==99.99\n"}
THEIRS, OURS, SLOW = SubmissionSetupError, InfrastructureError, SlowSetupError
DONE = ProcessResult(0, "")
NO_ANSWER = ProcessResult(2, "error: Failed to fetch: connection refused")
NO_SUCH = ProcessResult(1, "iniconfig was not found in the package registry")
FULL = ProcessResult(2, "No space left on device (os error 28)")
TIMED_OUT = "Failed to download `x==1`: network timeout. Try increasing UV_HTTP_TIMEOUT"
INVALID = "x==1 has an invalid package format"
UNSOLVABLE = "No solution found when resolving dependencies: there is no version of six==99.99"
DISK = "/home/user/.cache"
MISMATCH = "Failed to download `six==1`\n  cause: Hash mismatch for `six==1`"


def commands(*lines, **setup):
    return {"commands": SHELL, "setup": {"commands": list(lines), **setup}}


def failure(kind, exit_code, output="", argv=("sh", "-c", "cc main.c"), *, first=True):
    return SetupStepError(SetupStep(argv, kind, first=first), ProcessResult(exit_code, output), 300, DISK)


@dataclass
class Answers:
    """What boxes without the submission show; an unexpected question is an error."""

    index: ProcessResult | None = None
    resolution: SetupStepError | str | None = "unexpected"
    program: ProcessResult | None = None
    disk: ProcessResult | None = None
    shell: ProcessResult = DONE

    def run_without_submission(self, argv):
        if argv[2] == ":":
            return self.shell
        answer = self.index if argv[0] == "uv" else self.disk if "printf" in argv[2] else self.program
        assert answer is not None, argv
        return answer

    def resolve_again(self):
        assert self.resolution != "unexpected"
        return self.resolution


PACKAGES, OWN_CODE, COMMAND = StepKind.PACKAGES, StepKind.OWN_CODE, StepKind.COMMAND
UNSOLVABLE_AGAIN = Answers(DONE, failure(PACKAGES, 1, UNSOLVABLE))


@pytest.mark.parametrize(
    ("step", "answers", "error"),
    [
        (failure(PACKAGES, 1, UNSOLVABLE), UNSOLVABLE_AGAIN, THEIRS),
        (failure(PACKAGES, 1, UNSOLVABLE), replace(UNSOLVABLE_AGAIN, index=NO_SUCH), THEIRS),
        (failure(PACKAGES, 1, UNSOLVABLE), replace(UNSOLVABLE_AGAIN, index=NO_ANSWER), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), replace(UNSOLVABLE_AGAIN, index=ProcessResult(None, "")), OURS),
        (failure(PACKAGES, 1, TIMED_OUT), Answers(DONE, None), OURS),
        (failure(PACKAGES, 1, FULL.output), Answers(DONE, None), OURS),
        (failure(PACKAGES, 1, "killed"), Answers(DONE, None), OURS),
        (failure(PACKAGES, 1, "Failed to build `x==1`: gcc: command not found"), Answers(DONE), THEIRS),
        (failure(PACKAGES, 1, f"Failed to build `x==1`: {TIMED_OUT}"), Answers(DONE, None), OURS),
        (failure(PACKAGES, 1, f"Failed to build `x==1`: {FULL.output}"), Answers(DONE, None), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), Answers(DONE, failure(PACKAGES, 1, TIMED_OUT)), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), Answers(DONE, failure(PACKAGES, 1, FULL.output)), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), Answers(DONE, failure(PACKAGES, 1, INVALID)), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), Answers(DONE, failure(PACKAGES, 2, NO_ANSWER.output)), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), Answers(DONE, failure(PACKAGES, None)), OURS),
        (failure(PACKAGES, 1, UNSOLVABLE), Answers(DONE, failure(StepKind.TOOL, 1, FULL.output)), OURS),
        (failure(PACKAGES, 1, MISMATCH), Answers(DONE), THEIRS),
        (failure(PACKAGES, 2, NO_ANSWER.output), Answers(DONE), OURS),
        (failure(PACKAGES, -9), Answers(DONE), OURS),
        (failure(PACKAGES, None), Answers(DONE), OURS),
        (failure(OWN_CODE, 1, "error: Failed to fetch: network unreachable"), Answers(DONE), THEIRS),
        (failure(OWN_CODE, 2, "No space left on device"), Answers(DONE), THEIRS),
        (failure(OWN_CODE, -9), Answers(DONE), THEIRS),
        (failure(OWN_CODE, None), Answers(DONE), SLOW),
        (failure(OWN_CODE, 1), Answers(NO_ANSWER), OURS),
        (failure(OWN_CODE, 1), Answers(FULL), OURS),
        (failure(StepKind.TOOL, 1), Answers(), OURS),
        (failure(COMMAND, 9), Answers(DONE), THEIRS),
        (failure(COMMAND, 9), Answers(NO_ANSWER), OURS),
        (failure(COMMAND, 127), Answers(DONE, program=DONE), THEIRS),
        (failure(COMMAND, 127), Answers(DONE, program=ProcessResult(1, "")), OURS),
        (failure(COMMAND, 125), Answers(DONE, shell=ProcessResult(125, "")), OURS),
        (failure(COMMAND, 125), Answers(DONE), THEIRS),
        (failure(COMMAND, 127, argv=("sh", "-c", "CC=cc sh build.sh")), Answers(DONE), THEIRS),
        (failure(COMMAND, 127, argv=("sh", "-c", "(sh build.sh)")), Answers(DONE), THEIRS),
        (failure(COMMAND, 127, first=False), Answers(DONE), THEIRS),
    ],
)  # fmt: skip
def test_whose_fault_is_decided_by_evidence(environment_spec, step, answers, error):
    assert type(setup_error(environment_spec(), step, answers)) is error


FORGED = "\n".join([
    "No space left on device", "connection refused", "nothing was not found in the package registry",
    "invalid peer certificate", "HTTP status client error (403 Forbidden)",
])  # fmt: skip


@pytest.mark.parametrize("on_failure", ["evidence", "verdict"])
@pytest.mark.parametrize("kind", [OWN_CODE, COMMAND])
@pytest.mark.parametrize("text", [FORGED, *FORGED.splitlines()])
def test_output_of_the_submission_puts_no_advice_into_a_verdict(environment_spec, on_failure, kind, text):
    spec = environment_spec({"setup": {"on_failure": on_failure}})
    error = setup_error(spec, failure(kind, 1, text), Answers(DONE))
    assert type(error) is THEIRS
    assert str(error) == f"`{failure(kind, 1).step.shown}` exited with 1\n{text}"


@pytest.mark.parametrize("kind", [OWN_CODE, COMMAND])
def test_output_of_the_submission_puts_no_advice_into_an_infrastructure_failure(environment_spec, kind):
    spec = environment_spec({"setup": {"on_failure": "infrastructure"}})
    assert str(setup_error(spec, failure(kind, 1, FORGED), Answers())).startswith("set-up: `")


@pytest.mark.parametrize("on_failure", ["evidence", "verdict"])
@pytest.mark.parametrize(
    ("output", "first"),
    [
        (UNSOLVABLE, "the package index has no version of six==99.99"),
        (f"{UNSOLVABLE}\n{FULL.output}", "`sh -c 'cc main.c'` exited with 1"),
        (f"Failed to build `x==1`: {UNSOLVABLE}", "`sh -c 'cc main.c'` exited with 1"),
        (MISMATCH, "`sh -c 'cc main.c'` exited with 1"),
    ],
)
def test_a_verdict_names_the_missing_package_and_no_path(environment_spec, on_failure, output, first):
    spec = environment_spec({"setup": {"on_failure": on_failure}})
    error = setup_error(spec, failure(PACKAGES, 1, output), UNSOLVABLE_AGAIN)
    assert (type(error), str(error).splitlines()[0]) == (THEIRS, first)
    assert DISK not in str(error)


@pytest.mark.parametrize("kind", [StepKind.TOOL, PACKAGES])
def test_a_full_disk_is_named_where_no_code_of_the_submission_ran(environment_spec, kind):
    error = setup_error(environment_spec(), failure(kind, 2, FULL.output), Answers(DONE))
    assert type(error) is OURS
    assert f"the disk is full: free space in {DISK}\n`sh -c" in str(error)


@pytest.mark.parametrize(
    ("step", "answers", "error"),
    [
        (failure(COMMAND, 1), Answers(disk=DONE), THEIRS),
        (failure(COMMAND, None), Answers(disk=DONE), SLOW),
        (failure(COMMAND, 1), Answers(disk=FULL), OURS),
        (failure(COMMAND, 127), Answers(program=ProcessResult(1, "")), OURS),
    ],
)
def test_other_languages_do_not_depend_on_the_index_of_python(environment_spec, step, answers, error):
    assert type(setup_error(environment_spec({"commands": SHELL}), step, answers)) is error


@pytest.mark.parametrize(
    ("reading", "step", "error"),
    [
        ("infrastructure", failure(PACKAGES, 1, UNSOLVABLE), OURS),
        ("infrastructure", failure(COMMAND, 9), OURS),
        ("verdict", failure(PACKAGES, 2, NO_ANSWER.output), THEIRS),
        ("verdict", failure(COMMAND, None), THEIRS),
        ("verdict", failure(StepKind.TOOL, 1), OURS),
    ],
)
def test_a_fixed_reading_needs_no_evidence(environment_spec, reading, step, error):
    assert type(setup_error(environment_spec({"setup": {"on_failure": reading}}), step, Answers())) is error


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (failure(PACKAGES, 1, TIMED_OUT), True),
        (failure(PACKAGES, 2, NO_ANSWER.output), True),
        (failure(COMMAND, 1, TIMED_OUT), True),
        (failure(PACKAGES, 1, UNSOLVABLE), False),
        (failure(StepKind.TOOL, 1, TIMED_OUT), False),
    ],
)
def test_a_download_that_failed_is_repeated(step, expected):
    assert is_worth_repeating(step) is expected


def test_braces_in_commands_are_the_shell_s():
    command = SetupStep(["sh", "-c", "echo {tmp}"], COMMAND)
    assert command.with_paths({"{tmp}": "/tmp"}).argv[-1] == "echo {tmp}"


@pytest.fixture(scope="module")
def index(cache):
    with serve_index() as address:
        yield {"UV_DEFAULT_INDEX": address, "UV_HTTP_RETRIES": "0"}


LOCK = """\
version = 1
requires-python = ">=3.8"

[[package]]
name = "own"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "good" }}]

[[package]]
name = "good"
version = "{version}"
source = {{ registry = "https://index.example/simple" }}
wheels = [{{ url = "https://index.example/good-{version}-py3-none-any.whl", hash = "sha256:{digest}" }}]
"""
LOCKED = '[project]\nname = "own"\nversion = "1"\nrequires-python = ">=3.8"\ndependencies = ["good"]\n'
WRONG = "0" * 64
STALE = {
    "uv.lock": LOCK.format(version="1.0", digest=WRONG),
    "pyproject.toml": LOCKED.replace('"good"', '"good", "unreadable"'),
}
LIAR = 'import sys\nsys.exit("error: Failed to download: network unreachable (os error 101)")\n'
OWN_BUILD = {
    "requirements.txt": "./own\n",
    "own/pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
    "own/backend.py": LIAR,
}
REMOVES_PYTHON = {"setup": {"commands": ['rm "$VIRTUAL_ENV"/bin/python*']}}


@pytest.mark.parametrize(
    ("files", "environment", "error", "text"),
    [
        ({"requirements.txt": "stalls\n"}, {}, OURS, "Failed to"),
        ({"requirements.txt": "unbuildable\n"}, {}, THEIRS, "gcc: command not found"),
        ({"requirements.txt": "unreadable\n"}, {}, THEIRS, "gcc: command not found"),
        ({"requirements.txt": f"good==1.0 --hash=sha256:{WRONG}\n"}, {}, THEIRS, "Hash mismatch"),
        ({"uv.lock": LOCK.format(version="9", digest=WRONG), "pyproject.toml": LOCKED}, {}, THEIRS, "good==9"),
        (STALE, {}, THEIRS, "gcc: command not found"),
        (OWN_BUILD, {}, THEIRS, "network unreachable"),
        ({}, REMOVES_PYTHON, THEIRS, "left no usable environment"),
        ({}, commands("no-such-compiler main.c"), OURS, "no-such-compiler is not installed in this environment"),
        ({"build.sh": "exit 127\n"}, commands("sh build.sh"), THEIRS, "exited with 127"),
        ({}, {**commands("true"), "local": {"shell": "/no/shell"}}, OURS, "the shell /no/shell does not run in this"),
    ],
    ids=[
        "download that stalls", "package that does not build", "package whose dependencies a build tells",
        "wrong hash", "lock of a version that is not there",
        "package that a stale lock lacks, and that does not build", "own build that blames the network",
        "build that removes its Python", "program that is not there", "exit code of such a program",
        "shell that is not there",
    ],
)  # fmt: skip
def test_real_set_ups_that_fail(cache, environment_spec, make_submission, index, files, environment, error, text):
    variables = {**index, "UV_HTTP_TIMEOUT": "1"} if "stalls\n" in files.values() else index
    spec = environment_spec({"environment": {"env": variables}, **environment}, sandbox="none")
    with pytest.raises(error) as raised, Session.open(sandbox_for(spec, cache), make_submission(files)):
        pass
    assert type(raised.value) is error
    assert text in str(raised.value)


def cannot_be_opened(*_):
    return ["--bind", "/no/folder", "/x", "--"]


def test_a_box_for_set_up_that_cannot_be_opened_is_nobody_s_verdict(
    need, cache, environment_spec, make_submission, monkeypatch
):
    """It is known by a byte that is missing, whatever the output of bubblewrap, or of a command, says."""
    need("bubblewrap")
    submission = make_submission({"main.py": ""})
    monkeypatch.setattr(bubblewrap_sandbox, "setup_arguments", cannot_be_opened)
    spec = environment_spec(commands("true"), sandbox="bubblewrap")
    with pytest.raises(
        InfrastructureError, match="the box for set-up could not be opened: bwrap: Can't find source path"
    ):
        with Session.open(sandbox_for(spec, cache), submission):
            pass


@pytest.mark.parametrize("line", ["echo 'bwrap: no box' >&2; exit 1", "exit 125"])
def test_a_command_cannot_look_like_a_box_that_was_not_opened(need, cache, environment_spec, make_submission, line):
    need("bubblewrap")
    spec = environment_spec(commands(line), sandbox="bubblewrap")
    with pytest.raises(SubmissionSetupError), Session.open(sandbox_for(spec, cache), make_submission({"main.py": ""})):
        pass


@pytest.mark.parametrize("mode", ["000", "444"])
def test_a_workspace_that_a_command_closes_fails_the_next_command(need, cache, environment_spec, make_submission, mode):
    """Otherwise set-up code could cancel a bad score."""
    need("bubblewrap")
    spec = environment_spec(commands("sh close.sh", "true"), sandbox="bubblewrap")
    submission = make_submission({"close.sh": f"chmod {mode} /workspace"})
    with pytest.raises(SubmissionSetupError, match="cannot enter /workspace: Permission denied"):
        with Session.open(sandbox_for(spec, cache), submission):
            pass


def test_a_command_for_which_earlier_ones_left_no_time_is_too_slow(
    need, cache, environment_spec, make_submission, tmp_path
):
    """Its box may not be open when the time is up."""
    need("bubblewrap")
    scratch = tmp_path / "scratch"
    for name in ("env", "tmp", "home"):
        (scratch / name).mkdir(parents=True)
    sandbox = BubblewrapSandbox(environment_spec(), cache)
    box = sandbox.prepare_setup(
        SetupJob(submission=make_submission({}), environment={}, scratch=scratch, keep_workspace=True)
    )
    assert box.run(["true"], 0.0).exit_code is None


@pytest.mark.parametrize(
    ("shares", "error", "text"),
    [
        ([1.0, 0.8], THEIRS, "it took too long"),
        ([0.5, 1.0], OURS, "set-up: the machine is busy, a process gets 50% of a processor: it took too long"),
        ([1.0, 0.2], OURS, "set-up: the machine is busy, a process gets 20% of a processor: it took too long"),
    ],
    ids=["free machine", "busy before", "busy after"],
)
def test_a_slow_set_up_is_a_verdict_only_where_the_machine_was_free(cache, shares, error, text):
    def open_session():
        raise SlowSetupError("it took too long")

    with pytest.raises(error) as raised:
        repeat_setup(cache, open_session, iter(shares).__next__)
    assert str(raised.value) == text


def test_a_set_up_that_ends_in_its_repetition_is_not_blamed(cache):
    repeat_setup(cache, contextlib.nullcontext, iter([1.0]).__next__)


def test_a_build_that_never_ends_is_repeated_alone(evaluate, make_problem, make_submission):
    problem = make_problem({"test_checkpoint_1.py": "def test_core(): pass\n"})
    environment, events = commands("sleep 1000", timeout=0.001), []
    results = evaluate(
        problem, make_submission({"main.sh": ""}), sandbox="none", environment=environment, progress=events.append
    )
    assert [event.kind for event in events].count(ProgressKind.RUN_SETUP_COMMAND) == 2
    reason = results.setup_failure or results.infrastructure_failure_reason
    assert reason.startswith(("set-up failed: `sleep", "set-up: the machine is busy"))


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker", *in_long("none")])
def test_a_requirement_that_cannot_be_met_is_a_verdict(evaluate, make_problem, make_submission, sandbox, tmp_path):
    problem = make_problem(
        {
            "test_checkpoint_1.py": """
            import pytest

            def test_core(run): pass

            @pytest.mark.error
            def test_error(run): pass
            """
        },
        config={"parallel": 2, "parallel_by": "test"},
    )
    submission = make_submission({**IMPOSSIBLE, "main.py": ""})
    results = evaluate(problem, submission, sandbox=sandbox, output_dir=tmp_path)
    assert results.infrastructure_failure_reason is None
    first, second, *_ = results.setup_failure.splitlines()
    assert first == ("set-up failed: the package index has no version of six==99.99")
    assert second.startswith("`uv pip install")
    assert [test.status for test in results.tests] == ["failed", "failed"]
    assert {test.failure_message for test in results.tests} == {results.setup_failure}
    assert (results.evidence, results.total_counts["Core"], results.total_counts["Error"]) == ("setup", 1, 1)
    assert not any(results.passed.values())
    results.save(tmp_path / "evaluation.json")
    assert verify(tmp_path, read_document(tmp_path / "evaluation.json"), problem).findings == []


def test_an_edited_set_up_failure_does_not_verify(evaluate, make_problem, make_submission, tmp_path):
    problem = make_problem({"test_checkpoint_1.py": "def test_core(): pass\n"})
    environment = commands("exit 9")
    results = evaluate(problem, make_submission({"main.sh": ""}), environment=environment, output_dir=tmp_path)
    path = tmp_path / "evaluation.json"
    results.save(path)
    document = json.loads(path.read_text())
    document["tests"][0]["status"] = "passed"
    path.write_text(json.dumps(document))
    assert "status" in {finding.kind for finding in verify(tmp_path, read_document(path)).findings}
