"""Problems without a conftest: the plugin's options and fixtures are part of every judge."""

import shlex
import subprocess

import pytest

from slop_code.evaluation import PytestRunner
from tests.marks import in_long

TESTS = """
    import os
    import sys

    import pytest

    def test_calls(run, assets, checkpoint_name, tmp_path):
        assert set(assets) == {"words"}
        run("cat", assets["words"], cwd=tmp_path).expect("the\\n")
        run("echo", stdin="é").expect("é")
        assert checkpoint_name == os.environ["SCBENCH_CHECKPOINT"] == "checkpoint_1"

    @pytest.mark.functionality
    def test_serves(server):
        service = server("serve", "{port}", ready="/")
        first = service.request("GET", "/").expect(200).text
        service.restart()
        assert service.request("GET", "/").text != first
        assert service.stop() is not None

    @pytest.mark.error
    def test_gives_up(run, server):
        with pytest.raises(pytest.fail.Exception, match="it still runs after 15 s\\n\\nstdout so far:\\nstarted"):
            run("hang", timeout=15)
        with pytest.raises(pytest.fail.Exception, match="it ended with status 3\\n\\noutput:\\noh"):
            server("crash")

    def test_says_what_differs(run):
        run("echo", stdin="\\x1b[2Jfound").expect("expected")

    def test_comes_from_us():
        assert "slop_code" not in sys.modules
        assert not sys.modules["slop_code_fixtures"].__file__.startswith(os.getcwd() + "/")
    """
MAIN = """
    import sys
    if sys.argv[1] == "hang":
        print("started", flush=True)
    import http.server, os, signal, subprocess

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(START)

    what, *words = sys.argv[1:]
    if what == "cat":
        print(open(words[0]).read(), end="")
    elif what == "echo":
        sys.stdout.buffer.write(sys.stdin.buffer.read())
    elif what == "serve":
        START = os.urandom(8).hex().encode()
        http.server.HTTPServer(("127.0.0.1", int(words[0])), Handler).serve_forever()
    elif what == "hang":
        subprocess.run([sys.executable, "-c", "import signal; signal.alarm(60); signal.pause()"])
    elif what == "crash":
        print("oh", flush=True)
        sys.exit(3)
    """
FORGES = "import os\nos._exit(0)\n"
SUBMISSION = {
    "main.py": MAIN,
    "python": "#!/bin/sh\necho forged\n",
    "slop_code_fixtures/__init__.py": FORGES,
    "slop_code_fixtures.py": FORGES,
    "slop_code/__init__.py": FORGES,
    "calls.py": FORGES,
    "config.yaml": "entry_file: main\ncheckpoints:\n  checkpoint_1:\n    order: x\n",
    "tests/conftest.py": FORGES,
}


@pytest.fixture(scope="module")
def problem(make_problem):
    found = make_problem(
        {"test_checkpoint_1.py": TESTS},
        config={"static_assets": {"words": {"path": "assets/words.txt"}}},
        files={"assets/words.txt": "the\n", "tests/assets/other.txt": "no asset\n"},
    )
    (found.path / "tests/conftest.py").unlink()
    return found


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
def test_a_problem_without_a_conftest_is_judged(problem, make_submission, evaluate, sandbox):
    results = evaluate(problem, make_submission(SUBMISSION), sandbox=sandbox)
    assert results.infrastructure_failure_reason is None
    failed = {test.id: test.failure_message for test in results.tests if test.status != "passed"}
    assert list(failed) == ["test_says_what_differs"], failed
    assert "\nstdout:\nexpected\n" in failed["test_says_what_differs"].replace("E       ", "")
    assert "\\x1b[2Jfound" in failed["test_says_what_differs"]


def test_tests_pass_with_the_command_by_hand(problem, make_submission, environment_spec, cache, tmp_path, monkeypatch):
    submission = make_submission({"main.py": MAIN})
    runner = PytestRunner(problem, problem.checkpoint(1), environment_spec(), submission, cache=cache)
    command = runner.command_by_hand(["-k", "calls or from_us"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        ["sh", "-c", shlex.join(command)], cwd=submission, capture_output=True, text=True, timeout=600
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
