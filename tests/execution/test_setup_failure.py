"""Failed set-up: the submission's fault is a verdict, anything else is an infrastructure failure."""

from __future__ import annotations

import json

import pytest

from slop_code.errors import InfrastructureError, SlowSetupError, SubmissionSetupError
from slop_code.evaluation.run_tests import repeat_setup
from slop_code.execution.sandbox import sandbox_for
from slop_code.execution.session import Session
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify
from tests.marks import in_proof

DEAD_INDEX = {"environment": {"env": {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}}}
SHELL = {"command": "sh", "entry_file": "main.sh"}
IMPOSSIBLE = {"requirements.txt": "six==99.99\n"}
LIAR = 'import sys\nsys.exit("error: Failed to fetch: network unreachable (os error 101)")\n'
KILLER = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nsignal.pause()\n"
THEIRS, OURS = SubmissionSetupError, InfrastructureError


def commands(*lines, **setup):
    return {"commands": SHELL, "setup": {"commands": list(lines), **setup}}


@pytest.fixture
def set_up(cache, environment_spec, make_submission):
    def run(files, environment):
        spec = environment_spec(environment, sandbox="none")
        with Session.open(sandbox_for(spec, cache), make_submission(files)):
            pass

    return run


@pytest.mark.parametrize(
    ("files", "environment", "error", "text"),
    [
        (IMPOSSIBLE, {}, THEIRS, "no version of six==99.99"),
        ({"requirements.txt": "no-such-package-by-far\n"}, {}, THEIRS, "not found in the package registry"),
        ({"requirements.txt": "<<<\n"}, {}, THEIRS, "requirements.txt:1:1"),
        ({"requirements.txt": "six==error: Failed to fetch: timed out\n"}, {}, THEIRS, "requirements.txt"),
        ({"requirements.txt": "--index-url http://127.0.0.1:9/simple\nsix\n"}, {}, THEIRS, "Failed to fetch"),
        ({"requirements.txt": "./own\n", "own/setup.py": LIAR}, {}, THEIRS, "network unreachable"),
        ({"requirements.txt": "./own\n", "own/setup.py": KILLER}, {}, THEIRS, "requirements.txt"),
        (IMPOSSIBLE, DEAD_INDEX, OURS, "Failed to fetch"),
        ({"requirements.txt": "./own\n", "own/setup.py": LIAR}, DEAD_INDEX, OURS, "the package index gives no answer"),
        (IMPOSSIBLE, {"setup": {"on_failure": "infrastructure"}}, OURS, "no version of six==99.99"),
        (IMPOSSIBLE, {**DEAD_INDEX, "setup": {"on_failure": "verdict"}}, THEIRS, "Failed to fetch"),
        ({}, commands("echo it went wrong >&2; exit 9"), THEIRS, "exited with 9\nit went wrong"),
        ({}, commands("no-such-compiler main.c"), OURS, "no-such-compiler is not installed in this environment"),
        ({"build.sh": "exit 127\n"}, commands("sh build.sh"), THEIRS, "exited with 127"),
        ({"build.sh": "exit 127\n"}, commands("CC=cc sh build.sh"), THEIRS, "exited with 127"),
        ({"build.sh": "exit 127\n"}, commands("(sh build.sh)"), THEIRS, "exited with 127"),
        ({}, commands("true", "installed-by-the-first"), THEIRS, "exited with 127"),
        ({}, {"setup": {"commands": ['rm "$VIRTUAL_ENV"/bin/python*']}}, THEIRS, "left no usable environment"),
        ({}, commands("sleep 1000", timeout=0.5), SlowSetupError, "did not end within the 0.5 s of setup.timeout"),
        ({}, {**commands("exit 9"), **DEAD_INDEX}, OURS, "the package index gives no answer"),
        ({}, commands("sleep 1000", timeout=0.5, on_failure="verdict"), THEIRS, "did not end within the 0.5 s"),
        ({"requirements.txt": "six\n"}, {"setup": {"timeout": 0.001}}, OURS, "did not end within the 0.001 s"),
    ],
    ids=[
        "impossible version", "unknown package", "no requirement", "invalid version", "index of its own",
        "build that blames the network", "build that kills uv", "impossible, dead index", "build, dead index",
        "reading: infrastructure", "reading: verdict", "failing command", "program that is not there",
        "exit code of a program that is not there", "the same after an assignment", "the same in a subshell",
        "program of an earlier command", "build that removes its Python", "slow build",
        "failing command, dead index", "slow build, reading: verdict", "slow tools",
    ],
)  # fmt: skip
def test_whose_fault_is_decided_by_evidence(set_up, files, environment, error, text):
    with pytest.raises(error) as raised:
        set_up(files, environment)
    assert type(raised.value) is error
    assert text in str(raised.value)


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


def test_a_build_that_never_ends_is_repeated_alone(evaluate, make_problem, make_submission, tmp_path):
    problem = make_problem({"test_checkpoint_1.py": "def test_core(): pass\n"})
    environment = commands(f"echo begun >> {tmp_path}/begun; sleep 1000", timeout=2)
    results = evaluate(problem, make_submission({"main.sh": ""}), sandbox="none", environment=environment)
    assert (tmp_path / "begun").read_text() == "begun\n" * 2
    reason = results.setup_failure or results.infrastructure_failure_reason
    assert reason.startswith(("set-up failed: `echo begun", "set-up: the machine is busy"))


def test_a_set_up_that_ends_in_its_repetition_is_not_blamed(evaluate, make_problem, make_submission, tmp_path):
    problem = make_problem({"test_checkpoint_1.py": "def test_core(): pass\n"})
    environment = commands(f"mkdir {tmp_path}/first || exit 0; sleep 1000", timeout=2)
    results = evaluate(problem, make_submission({"main.sh": ""}), sandbox="none", environment=environment)
    assert [test.status for test in results.tests] == ["passed"]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker", *in_proof("none")])
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
    assert results.setup_failure.startswith("set-up failed: `uv pip install")
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
