"""A submission with a kernel of its own: gVisor as the runtime of its container."""

from __future__ import annotations

import os

import pytest

from tests.factories import statuses_by_id

pytestmark = pytest.mark.e2e

IMAGE = os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")
TESTS = """
    import os, socket, subprocess

    def test_the_kernel_is_another_one(run):
        assert run("import os; print(os.uname().version)").stdout.strip() != os.uname().version

    def test_what_set_up_made_is_there(run):
        assert run("print(open('/var/made').read())").stdout.strip() == "made"

    def test_streams_and_status(entrypoint):
        code = "import sys; print(sys.stdin.read()); print('aside', file=sys.stderr); sys.exit(7)"
        done = subprocess.run([*entrypoint, code], input="given" * 50_000, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (7, "given" * 50_000 + "\\n", "aside\\n")

    def test_files_go_both_ways(run, tmp_path):
        (tmp_path / "given").write_text("given")
        assert run(f"print(open({str(tmp_path / 'given')!r}).read(), file=open('left', 'w'))").returncode == 0
        assert open("left").read() == "given\\n"

    def test_a_server_is_reached(entrypoint):
        listen = "import socket; listener = socket.create_server(('127.0.0.1', 8080)); print(1, flush=True)"
        code = f"{listen}; listener.accept()[0].send(b'me')"
        with subprocess.Popen([*entrypoint, code], stdout=subprocess.PIPE) as server:
            assert server.stdout.readline() == b"1\\n"
            with socket.create_connection(("127.0.0.1", 8080), timeout=60) as client:
                assert client.recv(2) == b"me"

    def test_process_1_cannot_be_ended(run):
        assert "PermissionError" in run("import os; os.kill(1, 9)").stderr

    def test_memory_is_limited(run):
        done = run("held = bytearray(700 << 20); print(len(held))")
        assert (done.returncode != 0, done.stdout) == (True, "")
"""
SUBMISSION = "import sys\nexec(sys.argv[1])\n"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_submission_with_a_kernel_of_its_own_is_judged(evaluate, make_problem, make_submission):
    problem = make_problem({"test_checkpoint_1.py": TESTS})
    environment = {"limits": {"memory": "300M"}, "setup": {"commands": ["echo made > /var/made"]}}
    results = evaluate(problem, make_submission({"main.py": SUBMISSION}), sandbox="runsc", environment=environment)
    assert results.infrastructure_failure_reason is None
    assert set(statuses_by_id(results).values()) == {"passed"}, [test.failure_message for test in results.tests]
    assert (results.isolation["runtime"], results.isolation["shared_kernel"]) == ("runsc", False)


@pytest.mark.long
def test_a_runtime_that_shares_the_kernel_needs_no_relay(evaluate, make_problem, make_submission):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run):\n    assert run('print(1)').stdout == '1\\n'\n"})
    environment = {"docker": {"image": IMAGE, "runtime": "runc"}}
    submission = make_submission({"main.py": SUBMISSION})
    results = evaluate(problem, submission, sandbox="docker", environment=environment)
    assert set(statuses_by_id(results).values()) == {"passed"}, results.infrastructure_failure_reason
    assert (results.isolation["runtime"], results.isolation["shared_kernel"]) == ("runc", True)
