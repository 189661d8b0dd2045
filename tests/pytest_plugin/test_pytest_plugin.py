"""The pytest plugin: real pytest processes in problem folders, and its modules by themselves."""

import contextlib
import inspect
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from textwrap import dedent

import pytest

from slop_code.evaluation.judge.usage import timeout_of
from slop_code.pytest_plugin import failure_messages, fixtures
from slop_code.pytest_plugin.http_client import MAX_JSON_BYTES, Response, json_equal, send_request
from slop_code.pytest_plugin.servers import Server, free_port, servers
from slop_code.pytest_plugin.submission_calls import MAX_OUTPUT_BYTES, CompletedCall, run_command
from tests.conftest import write_files
from tests.docs.pages import section, table_rows

PYTHON = sys.executable
PAGE = "pytest-plugin.md"
CONFIG = """\
name: echo
version: 1
description: Prints its arguments.
tags: []
entry_file: main
env:
  COLOUR: red
static_assets:
  stop-words:
    path: assets/words.txt
markers:
  slow:
    description: takes long
    group: Functionality
checkpoints:
  checkpoint_1: {}
  checkpoint_2: {}
"""
PROBLEM = {
    "config.yaml": CONFIG,
    "assets/words.txt": "the\n",
    "solutions/checkpoint_1/main.py": "import sys\nprint(*sys.argv[1:])\n",
    "tests/test_checkpoint_1.py": """
        import os
        import pytest

        @pytest.mark.slow
        @pytest.mark.error
        def test_everything(run, assets, checkpoint_name, entrypoint_argv, tmp_path, conftest_saw):
            run("a", "b", cwd=tmp_path).expect("a b\\n")
            assert assets["stop-words"].read_text() == "the\\n"
            assert checkpoint_name == os.environ["SCBENCH_CHECKPOINT"] == "checkpoint_1"
            assert os.environ["COLOUR"] == "red"
            assert os.environ["SCBENCH_ASSET_STOP_WORDS"] == str(assets["stop-words"])
            folder = os.environ["SCBENCH_ASSETS_DIR"]
            assert os.path.samefile(os.path.join(folder, "stop-words"), assets["stop-words"])
            assert conftest_saw == [folder, str(assets["stop-words"])]
            assert os.path.isabs(entrypoint_argv[-1])
        """,
    "tests/conftest.py": """
        import os
        import pytest

        SEEN = [os.environ.get("SCBENCH_ASSETS_DIR"), os.environ.get("SCBENCH_ASSET_STOP_WORDS")]

        @pytest.fixture
        def conftest_saw():
            return SEEN
        """,
    "tests/test_checkpoint_2.py": "def test_later(run):\n    run('later').expect('never')\n",
}
OPTIONS = ("--entrypoint=python solutions/checkpoint_1/main.py", "--checkpoint=checkpoint_1")
DECLARES = """
    import shlex
    import pytest

    def pytest_addoption(parser):
        {parser}.addoption("--entrypoint", required=True)
        {parser}.addoption("--checkpoint", required=True)

    @pytest.fixture
    def run(request):
        return lambda: shlex.split(request.config.getoption("--entrypoint"))
    """
CALLS = "def test_own(run):\n    assert run() == ['python', 'solutions/checkpoint_1/main.py']\n"


@pytest.fixture
def problem(tmp_path):
    """`problem({"tests/conftest.py": ...})`: its folder. What is None is not there."""

    def write(changes=None):
        files = {**PROBLEM, **(changes or {})}
        return write_files(tmp_path / "echo", {name: text for name, text in files.items() if text is not None})

    return write


def plain_pytest(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    unwanted = ("PYTEST", "SCBENCH", "COV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    path = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", f"--rootdir={folder}", *arguments],
        cwd=folder,
        env={
            **kept,
            "PATH": path,
            "TMPDIR": str(folder.parent),
            "COLUMNS": "200",
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.e2e
class TestPlainPytest:
    @pytest.mark.parametrize(
        "options",
        [OPTIONS, tuple(word for option in OPTIONS for word in option.split("=", 1))],
        ids=["joined", "apart"],
    )
    def test_a_problem_needs_no_conftest(self, problem, options):
        done = plain_pytest(problem(), "tests", "--strict-markers", *options)
        assert "slop-code: problem echo, checkpoint_1" in done.stdout
        assert re.search(r"=+ 1 passed in", done.stdout), done.stdout

    def test_the_entry_point_loads_the_plugin(self, problem):
        done = plain_pytest(problem(), "tests", *OPTIONS, "-p", "no:slop_code")
        assert "unrecognized arguments" in done.stderr

    @pytest.mark.parametrize("parser", ["parser", "parser.getgroup('own')"])
    def test_a_conftest_may_declare_the_options_and_the_fixtures(self, problem, parser):
        folder = problem({"tests/conftest.py": DECLARES.format(parser=parser), "tests/test_checkpoint_1.py": CALLS})
        done = plain_pytest(folder, "tests/", *OPTIONS)
        assert "1 passed" in done.stdout, done.stdout + done.stderr

    def test_a_conftest_that_is_loaded_late_may_declare_them(self, problem):
        changes = {"tests/conftest.py": DECLARES.format(parser="parser"), "tests/test_checkpoint_1.py": CALLS}
        done = plain_pytest(problem(changes).parent, "--collect-only", "-q")
        assert "2 tests collected" in done.stdout, done.stdout + done.stderr

    def test_a_missing_option_is_named_by_the_fixture_that_needs_it(self, problem):
        tests = "def test_one(run):\n    pass\n\ndef test_other(checkpoint_name):\n    pass\n"
        done = plain_pytest(problem({"tests/test_checkpoint_1.py": tests}), "tests/test_checkpoint_1.py")
        assert "Failed: --entrypoint is missing: call pytest with --entrypoint, the command that" in done.stdout
        assert "Failed: --checkpoint is missing: call pytest with --checkpoint, the name of" in done.stdout

    def test_a_test_file_given_as_an_argument_runs_whatever_its_checkpoint(self, problem):
        done = plain_pytest(problem(), "tests/test_checkpoint_2.py", *OPTIONS)
        assert "1 failed" in done.stdout
        assert "expected: exit status 0" in done.stdout

    def test_an_unknown_checkpoint_is_a_usage_error(self, problem):
        done = plain_pytest(problem(), "tests", OPTIONS[0], "--checkpoint=three")
        assert "echo has no checkpoint 'three'; there are checkpoint_1, checkpoint_2" in done.stderr

    def test_a_mistake_in_the_configuration_is_in_the_header(self, problem):
        only = "def test_it(assets):\n    pass\n"
        changes = {"config.yaml": CONFIG + "parallel: many\n", "tests/test_checkpoint_1.py": only}
        done = plain_pytest(problem(changes), "tests", *OPTIONS)
        assert re.search(r"config.yaml:\d+: parallel", done.stdout)
        assert "the assets are not known" in done.stdout

    def test_a_timeout_at_an_instruction_without_a_line_is_a_failure(self, problem):
        """The first instruction of a function that knows a name of another one belongs to no line."""
        tests = """
            from types import TracebackType

            def interrupted(name):
                def inner():
                    1 / len(name)

                return inner

            def caught(error):
                try:
                    interrupted("")()
                except ZeroDivisionError as raised:
                    entry = raised.__traceback__.tb_next
                    return error.with_traceback(TracebackType(None, entry.tb_frame, 0, -1))

            def test_itself():
                error = caught(ValueError("itself"))
                assert error.__traceback__.tb_lineno in (None, -1)  # -1: a Python before 3.11.4
                raise error

            def test_its_cause():
                raise ValueError("its cause") from caught(KeyError())

            def test_afterwards():
                pass
            """
        done = plain_pytest(problem({"tests/test_checkpoint_1.py": tests}), "tests", "-vv", *OPTIONS)
        assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
        assert "ValueError: itself" in done.stdout

    def test_an_alarm_interrupts_a_test_and_not_its_report(self, problem):
        """The alarm that comes while a report is made is put off until the test is torn down."""
        conftest = """
            import signal
            import pytest

            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_makereport(item, call):
                if call.when == "call" and item.name == "test_slow_to_report":
                    signal.raise_signal(signal.SIGALRM)
                return (yield)
            """
        tests = """
            import time
            import pytest

            def test_slow_to_report():
                assert 1 == 2

            @pytest.mark.timeout(2)
            def test_slow():
                time.sleep(600)

            def test_afterwards():
                pass
            """
        files = {"tests/conftest.py": conftest, "tests/test_checkpoint_1.py": tests}
        done = plain_pytest(problem(files), "tests", "--timeout=50", *OPTIONS)
        assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
        assert "INTERNALERROR" not in done.stdout

    def test_an_alarm_also_interrupts_what_cleans_up_after_a_test_that_took_too_long(self, problem):
        tests = """
            import time
            import pytest

            @pytest.fixture
            def server():
                yield
                time.sleep(600)

            @pytest.mark.timeout(2)
            def test_slow(server):
                time.sleep(600)

            def test_afterwards():
                pass
            """
        done = plain_pytest(problem({"tests/test_checkpoint_1.py": tests}), "tests", "--timeout=50", *OPTIONS)
        assert "1 failed, 1 passed, 1 error" in done.stdout, done.stdout + done.stderr

    def test_a_message_is_cut_before_it_is_shown(self, problem):
        tests = """
            import pytest

            def test_raises():
                raise ValueError("x" * 1_000_000)

            def test_fails():
                pytest.fail("y" * 1_000_000)
            """
        done = plain_pytest(problem({"tests/test_checkpoint_1.py": tests}), "tests", *OPTIONS)
        assert "2 failed" in done.stdout
        assert done.stdout.count("characters left out") >= 2
        assert len(done.stdout) < 900_000

    def test_other_projects_are_left_alone(self, tmp_path):
        """Also one with an option of that name, and fixtures that it expects not to be there."""
        folder = write_files(
            tmp_path,
            {
                "config.yaml": "checkpoints: weights/\n",
                "conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--checkpoint')\n",
                "tests/test_it.py": """
                    import pytest

                    def test_it(request):
                        assert request.config.getoption("--checkpoint") == "model.pt"
                        with pytest.raises(pytest.FixtureLookupError):
                            request.getfixturevalue("run")
                        assert not any(line.startswith("error:") for line in request.config.getini("markers"))
                    """,
            },
        )
        done = plain_pytest(folder, "--checkpoint=model.pt")
        assert "1 passed" in done.stdout, done.stdout + done.stderr
        assert "slop-code:" not in done.stdout
        assert "--entrypoint" not in plain_pytest(folder, "--fixtures").stdout


def call(code: str, *words: str, **options) -> CompletedCall:
    return run_command([PYTHON, "-S", "-c", dedent(code), *words], **options)


@pytest.mark.e2e
class TestRun:
    def test_stdout_stderr_status_and_stdin_are_passed(self, tmp_path):
        code = """
            import os, sys
            sys.stderr.write(sys.argv[1])
            print(sys.stdin.read(), os.getcwd(), os.environ["COLOUR"])
            sys.exit(3)
            """
        done = call(code, "é", stdin="ü", cwd=tmp_path, env={"COLOUR": "red", "PYTHONUTF8": "1"})
        assert (done.returncode, done.stdout, done.stderr) == (3, f"ü {tmp_path} red\n", "é")
        assert repr(done).endswith(f"exit status 3, stdout 'ü {tmp_path} red\\n', stderr 'é'>")

    def test_input_and_output_may_exceed_the_size_of_a_pipe(self):
        code = "import sys; text = sys.stdin.read(); print(text); print(text, file=sys.stderr)"
        text = "x" * 3_000_000
        done = call(code, stdin=text)
        assert (done.stdout, done.stderr) == (text + "\n", text + "\n")

    @pytest.mark.parametrize("code", ["pass", "import os; os.close(0)", "import os; os.close(1); os.close(2)"])
    def test_input_that_the_process_does_not_read_is_no_error(self, code):
        assert call(code, stdin="x" * 1_000_000) == CompletedCall([PYTHON, "-S", "-c", code], 0, "", "")

    def test_invalid_utf8_is_replaced(self):
        done = call(r"import os; os.write(1, b'\xff\r\n')")
        assert done.stdout == "\N{REPLACEMENT CHARACTER}\r\n"

    def test_a_signal_is_a_negative_status(self):
        assert call("import os; os.kill(os.getpid(), 9)").returncode == -signal.SIGKILL

    def test_a_timeout_kills_the_process_group(self, tmp_path):
        """Whatever it started, and although that holds the pipe."""
        lock = tmp_path / "lock"
        script = 'exec 9> "$0"; flock 9; sleep 60 & echo started; wait'  # a shell starts within the time on any machine
        with pytest.raises(pytest.fail.Exception) as failed:
            run_command(["sh", "-c", script, str(lock)], timeout=3)
        message = str(failed.value)
        assert message.startswith("ran: ")
        assert "expected: it ends within 3 s\n\nfound: it still runs after 3 s\n\nstdout so far:\nstarted" in message
        assert timeout_of(failed.value, 3) == {"kind": "call", "limit_s": 3}
        subprocess.run(["flock", "--timeout", "20", str(lock), "true"], check=True)  # gone with the last of them

    def test_processes_left_running_do_not_delay_the_call(self, tmp_path):
        until = tmp_path / "until"
        os.mkfifo(until)
        code = f"""
            import subprocess, sys
            subprocess.Popen([sys.executable, "-S", "-c", "open({str(until)!r}).read()"])
            print("left")
            """
        assert call(code, timeout=60).stdout == "left\n"
        until.write_text("")

    @pytest.mark.parametrize(
        "code",
        [
            "while True: os.write(1, block)",
            f"for _ in range({MAX_OUTPUT_BYTES // 100_000}): os.write(1, block); os.write(2, block)",
        ],
        ids=["endless", "both"],
    )
    def test_too_much_output_fails_the_test(self, code):
        with pytest.raises(pytest.fail.Exception, match=f"it printed more than {MAX_OUTPUT_BYTES} bytes") as failed:
            call(f"import os, signal\nsignal.alarm(60)\nblock = b'x' * 65536\n{code}", timeout=60)
        assert len(str(failed.value)) < 20_000
        assert timeout_of(failed.value, 60) is None

    def test_a_command_that_does_not_start_fails_the_test(self, tmp_path):
        with pytest.raises(pytest.fail.Exception, match=r"expected: it starts\n\nfound: .*No such file"):
            run_command([str(tmp_path / "nothing")])


def finished(stdout="", stderr="", code=0) -> CompletedCall:
    return CompletedCall(["python", "main.py", "a b"], code, stdout, stderr)


class TestExpect:
    @pytest.mark.parametrize(
        ("found", "expected"),
        [
            (finished("6\n", "note"), {}),
            (finished("6\n", "note"), {"stdout": "6\n"}),
            (finished("6\n", "note", 2), {"stdout": "6\n", "stderr": "note", "code": 2}),
            (finished(code=2), {"code": None}),
        ],
    )
    def test_given_values_are_compared(self, found, expected):
        assert found.expect(**expected) is found

    @pytest.mark.parametrize(
        ("found", "expected", "message"),
        [
            (finished(code=1), {}, "expected: exit status 0\n\nfound: exit status 1"),
            (
                finished("7\n"),
                {"stdout": "6\n"},
                "expected: exit status 0\nstdout:\n6\n\nfound: exit status 0\nstdout:\n7",
            ),
            (finished("6"), {"stdout": "6\n"}, "stdout:\n'6'\n''\n\nfound: exit status 0\nstdout:\n'6'"),
            (finished("a  b\n"), {"stdout": "a b\n"}, "'a b'\n''\n\nfound: exit status 0\nstdout:\n'a  b'\n''"),
            (finished(code=1, stderr="oh"), {"stdout": ""}, "found: exit status 1\nstdout:\n\nstderr:\noh"),
            (finished("\x1b[2J\x9b"), {"stdout": ""}, "found: exit status 0\nstdout:\n\\x1b[2J\\x9b"),
        ],
    )
    def test_a_failure_shows_expected_and_actual_values(self, found, expected, message):
        with pytest.raises(pytest.fail.Exception) as failed:
            found.expect(**expected)
        assert str(failed.value) == f"ran: python main.py 'a b'\n\n{message}" or str(failed.value).endswith(message)

    def test_long_outputs_start_at_the_first_difference_and_have_a_diff(self):
        lines = [str(number) for number in range(1, 101)]
        wrong = [*lines[:60], "wrong", *lines[61:]]
        with pytest.raises(pytest.fail.Exception) as failed:
            finished("\n".join(wrong)).expect("\n".join(lines))
        message = str(failed.value)
        assert "found: exit status 0\nstdout:\n[... 60 equal lines ...]\nwrong\n62\n" in message
        assert message.endswith(
            "difference of stdout, from line 58 on:\n@@ -1,7 +1,7 @@\n 58\n 59\n 60\n-61\n+wrong\n 62\n 63\n 64"
        )

    @pytest.mark.e2e
    @pytest.mark.parametrize(
        "text", ["x" * 5_000_000, "\n" * 5_000_000, "a\nb\n" * 1_000_000], ids=["wide", "empty", "long"]
    )
    def test_huge_outputs_make_short_messages(self, text):
        with pytest.raises(pytest.fail.Exception) as failed:
            finished(text).expect(text[:-1] + "!")
        assert len(str(failed.value)) < 40_000

    @pytest.mark.e2e
    def test_a_diff_of_repeated_lines_is_bounded(self):
        """A hundred lines again and again, none of them in the same place: compared as a whole it takes hours."""
        lines = [str(number % 101) for number in range(300_000)]
        with pytest.raises(pytest.fail.Exception, match="difference of stdout, from line 1 on:"):
            finished("\n".join(reversed(lines))).expect("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\tb\nc", "a\tb\nc"), ("\x1b]0;x\x07", "\\x1b]0;x\\x07"), ("é\u202e", "é\\u202e"), ("\r", "\\r")],
)
def test_control_characters_are_escaped(text, shown):
    assert failure_messages.escape_unprintable(text) == shown


@pytest.fixture
def start():
    with servers(["python"]) as found:
        yield found


class TestReference:
    """The page names all there is, with its defaults."""

    @pytest.mark.parametrize("name", ["run", "server"])
    def test_every_parameter_is_documented(self, start, name):
        function = {"run": run_command, "server": start}[name]
        parameters = inspect.signature(function).parameters.values()
        defaults = {one.name: repr(one.default) for one in parameters if one.kind is one.KEYWORD_ONLY}
        assert {key: cells[1].strip("`") for key, cells in table_rows(section(PAGE, name)).items()} == defaults

    @pytest.mark.parametrize(("heading", "kind"), [("Completed call", CompletedCall), ("Response", Response)])
    def test_every_field_is_documented(self, heading, kind):
        fields = {name for name in {*dir(kind), *kind.__dataclass_fields__} if not name.startswith("_")}
        assert fields_of(heading) == fields

    def test_every_field_of_a_server_is_documented(self):
        inner = {"ready", "timeout", "cwd", "env", "log"}
        fields = {name for name in {*dir(Server), *Server.__dataclass_fields__} if not name.startswith("_")}
        assert fields_of("Running server") == fields - inner

    def test_every_option_and_fixture_is_documented(self):
        assert set(table_rows(section(PAGE, "Options"))) == set(fixtures.OPTIONS)
        found = [one for one in vars(fixtures).values() if type(one).__name__ == "FixtureFunctionDefinition"]
        scopes = {one.name: one._fixture_function_marker.scope for one in found}
        lines = [line.split("|") for line in section(PAGE, "Fixtures").splitlines() if line.startswith("| `")]
        assert {name.strip(" `"): scope.strip() for _, name, scope, *_ in lines} == scopes


def fields_of(heading: str) -> set[str]:
    lines = [line for line in section(PAGE, heading).splitlines() if line.startswith("| `")]
    return {line.split("`")[1] for line in lines}


SERVER = """
    import http.server, json, os, sys

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            size = int(self.headers.get("Content-Length") or 0)
            told = {"asked": self.path, "sent": self.rfile.read(size).decode(), "kind": self.headers["Content-Type"],
                    "pid": os.getpid(), "port": os.environ.get("PORT")}
            self.send_response(302 if self.path == "/away" else 200)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            self.wfile.write(b"no JSON" if self.path == "/text" else json.dumps(told).encode())

        do_POST = do_GET

    print("begins", flush=True)
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    """


@pytest.fixture
def serve(tmp_path):
    """`serve(code, *words)`: as the fixture `server` does."""
    with servers([PYTHON, "-S"]) as start:

        def write(code, *words, **options):
            file = tmp_path / "main.py"
            file.write_text(dedent(code))
            return start(file, *words, **options)

        yield write


@pytest.mark.e2e
class TestServer:
    def test_requests_reach_the_server(self, serve, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        server = serve(SERVER, "{port}", ready="/health", env={"PORT": "{port}"})
        assert server.url == f"http://127.0.0.1:{server.port}"
        answered = server.request("POST", "/a?b=c", json={"x": 1}).expect(200).json()
        assert (answered["asked"], answered["sent"], answered["kind"]) == ("/a?b=c", '{"x": 1}', "application/json")
        assert answered["port"] == str(server.port)
        assert server.request("POST", "/", data="é").json()["sent"] == "é"
        assert "begins" in server.output

    def test_redirects_are_not_followed(self, serve):
        answer = serve(SERVER, "{port}").request("GET", "/away")
        assert (answer.status, answer.headers["location"]) == (302, "file:///etc/passwd")

    def test_a_failed_expectation_shows_the_request_and_both_values(self, serve):
        answer = serve(SERVER, "{port}").request("GET", "/text")
        with pytest.raises(pytest.fail.Exception, match=r"asked: GET /text\n\nexpected: 404\n\nfound: 200 no JSON"):
            answer.expect(404)
        with pytest.raises(pytest.fail.Exception, match=r"expected: a body of JSON\n\nfound: no JSON"):
            answer.expect(200, json={})

    def test_a_restarted_server_keeps_its_port(self, serve):
        server = serve(SERVER, "{port}", port=free_port())
        first = server.request("GET", "/").json()["pid"]
        server.restart()
        second = server.request("GET", "/").json()["pid"]
        assert first != second
        assert server.stop() == -signal.SIGTERM
        with pytest.raises(pytest.fail.Exception, match=r"expected: an answer within 10 s\n\nfound: Connection"):
            server.request("GET", "/")

    def test_a_server_that_crashes_at_its_start_fails_the_test(self, serve):
        with pytest.raises(pytest.fail.Exception) as failed:
            serve("print('oh \\x1b[2J'); raise SystemExit(7)", "{port}")
        port = re.search(r"main.py (\d+)\n", str(failed.value))[1]
        assert str(failed.value).endswith(
            f"expected: connections are taken on port {port} within 10 s\n\n"
            "found: it ended with status 7\n\noutput:\noh \\x1b[2J\n"
        )

    @pytest.mark.parametrize(
        ("code", "ready"),
        [
            ("import signal; signal.pause()", None),
            (
                "import signal, socket, sys\n"
                "with socket.create_server(('127.0.0.1', int(sys.argv[1]))):\n"
                "    signal.pause()",
                "/health",
            ),
        ],
        ids=["does not listen", "does not answer"],
    )
    def test_a_server_that_is_never_ready_fails_the_test(self, serve, code, ready):
        with pytest.raises(pytest.fail.Exception, match="found: it runs, but does not answer") as failed:
            serve(code, "{port}", ready=ready, timeout=0.2)
        assert timeout_of(failed.value, 0.2) == {"kind": "call", "limit_s": 0.2}

    def test_a_request_without_an_answer_fails_by_its_time_limit(self, serve):
        code = """
            import signal, socket, sys
            with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
                signal.pause()
            """
        with pytest.raises(pytest.fail.Exception, match=r"within 0.2 s\n\nfound: TimeoutError") as failed:
            serve(dedent(code), "{port}").request("GET", "/", timeout=0.2)
        assert timeout_of(failed.value, 0.2) == {"kind": "call", "limit_s": 0.2}

    def test_a_taken_port_fails_the_test(self, serve, monkeypatch):
        monkeypatch.setattr("slop_code.pytest_plugin.servers.STOP_SECONDS", 0)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(pytest.fail.Exception, match=f"expected: port {port} is free"):
                serve(SERVER, "{port}", port=port)

    def test_stopping_kills_the_process_group(self, tmp_path):
        """Also what ignores the signal, and its children."""
        lock = tmp_path / "lock"
        code = f"""
            import fcntl, os, signal, sys, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            held = open({str(lock)!r}, "w")
            fcntl.flock(held, fcntl.LOCK_EX)
            signal.alarm(60)
            if os.fork() == 0:
                signal.alarm(60)
                signal.pause()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            import socket
            with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
                while True:
                    server.accept()[0].close()
            """
        with servers([PYTHON, "-S", "-c", dedent(code)]) as start:
            start("{port}")
        subprocess.run(["flock", "--timeout", "20", str(lock), "true"], check=True)


@pytest.mark.parametrize(
    ("wanted", "body", "equal"),
    [
        ({"id": 1, "of": [1, "a", None]}, '{"of": [1, "a", null], "id": 1}', True),
        (1, "1.0", True),
        (1.0, "1", True),
        (10**30, "1" + "0" * 30, True),
        (10**30 + 1, "1e30", False),
        (1, "true", False),
        (0, "false", False),
        (True, "1", False),
        (True, "true", True),
        (False, "null", False),
        (None, "0", False),
        ("1", "1", False),
        ({"a": [{"b": 1}]}, '{"a": [{"b": true}]}', False),
        ({"a": 1}, '{"a": 1, "b": 2}', False),
        ({"a": 1, "b": 2}, '{"a": 1}', False),
        ([1], "[1, 2]", False),
        ([1, 2], "[1]", False),
        ([], "{}", False),
        ((1, 2), "[1, 2]", True),
        ({"a": pytest.approx(0.3)}, '{"a": 0.30000000000000004}', True),
        (pytest.approx({"a": 0.3}), '{"a": 0.4}', False),
    ],
)
def test_json_numbers_equal_by_value_and_never_equal_booleans(wanted, body, equal):
    found = answer(body.encode())
    assert json_equal(wanted, found.json()) is equal
    if equal:
        assert found.expect(200, json=wanted) is found
    else:
        with pytest.raises(pytest.fail.Exception, match=r"asked: GET /\n\nexpected: 200 .*\n\nfound: 200 "):
            found.expect(200, json=wanted)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"id": 2, "id": 1}', "ValueError: a key that stands twice in an object: 'id'"),
        (b'[{"a": 1, "\\u0061": 1}]', "ValueError: a key that stands twice in an object: 'a'"),
        (b"NaN", "ValueError: NaN is no JSON"),
        (b"[-Infinity]", "ValueError: -Infinity is no JSON"),
        (b"\xff", "UnicodeDecodeError: "),
        (b"9" * 5000, "ValueError: "),
        (b"[" * 1_000_000, "RecursionError: "),
        (b"", "JSONDecodeError: "),
        (b"[" + b"[]," * (MAX_JSON_BYTES // 3) + b"[]]", f"expected: a body of JSON, at most {MAX_JSON_BYTES} bytes"),
    ],
    ids=["twice", "escaped twice", "NaN", "Infinity", "no text", "digits", "deep", "empty", "much"],
)
def test_a_body_that_is_not_json_fails_the_test(body, reason):
    with pytest.raises(pytest.fail.Exception) as failed:
        answer(body).json()
    assert reason in str(failed.value)
    assert len(str(failed.value)) < 20_000


def answer(body: bytes) -> Response:
    return Response(200, HTTPMessage(), body, "asked: GET /")


@pytest.fixture
def answers():
    """`answers([b"HTTP/1.1 200 OK", ...])`: the port of a server that sends this, and then the last part on and on.

    With `pause=None` it sends the parts once, and ends.
    """
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(parts, pause):
            with contextlib.suppress(OSError):  # the client is gone, or none came until the end
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    for part in parts:
                        connection.sendall(part)
                    while pause is not None and not stop.wait(pause):
                        connection.sendall(parts[-1])

        def start(*parts, pause=0.0):
            thread = threading.Thread(target=serve, args=(parts, pause), daemon=True)
            threads.append(thread)
            thread.start()
            return listening.getsockname()[1]

        threads = []
        yield start
        stop.set()
        listening.shutdown(socket.SHUT_RDWR)  # wakes up who still waits for a client
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MUCH = b"x" * 1_000_000
LINE = b"a: " + b"b" * 60_000 + b"\r\n"
TOO_MUCH = f"OSError: an answer of more than {MAX_OUTPUT_BYTES} bytes"


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("parts", "pause", "error"),
    [
        ((OK + b"A: b\r\n" * 200,), None, "HTTPException: got more than 100 headers"),
        ((b"HTTP/1.1 100 Continue\r\n\r\n",), 0.01, "TimeoutError: timed out"),
        ((OK + b"Content-Length: 9999999\r\n\r\n", b"x"), 0.05, "TimeoutError: timed out"),
        ((OK + b"\r\n", MUCH), 0, TOO_MUCH),
        ((OK + b"Content-Length: 99999999999\r\n\r\n", MUCH), 0, TOO_MUCH),
        ((CHUNKED + b"fffffffffff\r\n", MUCH), 0, TOO_MUCH),
        ((CHUNKED + b"-1\r\n", MUCH), 0, TOO_MUCH),
        ((CHUNKED + b"0\r\n", LINE), 0, TOO_MUCH),
        ((b"HTTP/1.1 100 Continue\r\n" + LINE + b"\r\n",), 0, TOO_MUCH),
        ((b"\0" * 100_000,), 0, "LineTooLong: "),
        ((CHUNKED + b"-5\r\nhello",), None, "HTTPException: no HTTP: "),
        ((CHUNKED + b"-" + b"f" * 99 + b"\r\nhello",), None, "HTTPException: no HTTP: "),
        ((CHUNKED + b"5\r\nhello\r\n",), None, "IncompleteRead: "),
        ((CHUNKED + b"5\r\nhel",), None, "IncompleteRead: "),
        ((OK + b"Content-Length: 5005\r\n\r\nhello",), None, "IncompleteRead: IncompleteRead(5 bytes read, 5000 more"),
        ((OK + b"Content-Length: 5\r\n\r\n",), None, "IncompleteRead: IncompleteRead(0 bytes read, 5 more"),
        ((b"",), None, "RemoteDisconnected: "),
    ],
    ids=[
        "headers",
        "interim",
        "drips",
        "endless",
        "huge",
        "huge chunk",
        "chunk without end",
        "trailers",
        "many interim",
        "no HTTP",
        "negative chunk",
        "very negative chunk",
        "chunks end",
        "chunk ends",
        "too short",
        "no body",
        "no answer",
    ],
)
def test_every_request_ends_in_time(answers, parts, pause, error):
    """A server that drips is given up at the set end, one that floods at the set size, one that stops too early."""
    port = answers(*parts, pause=pause)
    with pytest.raises((OSError, HTTPException)) as failed:
        send_request(port, "GET", "/", None, {}, time.monotonic() + (0.3 if error.startswith("TimeoutError") else 60))
    assert f"{type(failed.value).__name__}: {failed.value}".startswith(error)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("GET", OK + b"Content-Length: 5\r\n\r\nhello"),
        ("GET", OK + b"\r\nhello"),
        ("GET", CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
        ("HEAD", OK + b"Content-Length: 5\r\n\r\n"),
    ],
    ids=["length", "no length", "chunks", "head"],
)
def test_a_whole_response_is_read(answers, method, sent):
    found = send_request(answers(sent, pause=None), method, "/", None, {}, time.monotonic() + 60)
    assert (found.status, found.text) == (200, "" if method == "HEAD" else "hello")
