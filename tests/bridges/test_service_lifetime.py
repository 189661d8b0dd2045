"""Servers of the reward service that start, end, are killed and are full."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from slop_code.bridges.service import server
from slop_code.bridges.service.durable_jobs import MAX_RESULTS
from tests.bridges.service_process import GOOD, HALF, forked_service, request_for, running, running_service, wait_until
from tests.conftest import write_files

pytestmark = pytest.mark.timeout(300)


def test_a_killed_server_loses_no_durable_job(cache, need_bubblewrap, service_problems, tmp_path):
    need_bubblewrap()
    bodies = [request_for(f"{GOOD}#{time.time_ns()}\n", durable=True) for _ in range(6)]
    with forked_service(service_problems, tmp_path, "-j", "1") as first, first.client() as client:
        jobs = [client.post("/evaluate", json=each).json()["id"] for each in bodies]
        first.end(signal.SIGKILL)
    with forked_service(service_problems, tmp_path, "-j", "2") as second, second.client() as client:
        assert second.resumed > 0
        for job in jobs:
            finished = wait_until(
                lambda job=job: (made := client.get(f"/jobs/{job}").json())["state"] == "finished" and made
            )
            assert finished["result"]["reward"] == 1.0
        assert second.end() == 0


def test_a_finished_job_is_its_result_alone_and_too_many_results_are_refused(
    cache, need_bubblewrap, service_problems, tmp_path
):
    need_bubblewrap()
    with forked_service(service_problems, tmp_path, "-j", "1") as made, made.client() as client:
        job = client.post("/evaluate", json=request_for(durable=True)).json()["id"]
        wait_until(lambda: client.get(f"/jobs/{job}").json()["state"] == "finished")
        wait_until(lambda: [path.name for path in tmp_path.glob("*.json")] == [f"{job}.result.json"])
        assert made.end() == 0
    for number in range(MAX_RESULTS):
        (tmp_path / f"{number:032x}.result.json").write_text("{}")
    with forked_service(service_problems, tmp_path, "-j", "1") as made, made.client() as client:
        refused = client.post("/evaluate", json=request_for(durable=True))
        assert refused.status_code == 429
        assert "delete jobs that you fetched" in refused.json()["error"]
        assert client.get(f"/jobs/{job}").json()["result"]["reward"] == 1.0


def test_sigterm_lets_accepted_requests_end(cache, need_bubblewrap, service_problems, tmp_path):
    need_bubblewrap()
    with running_service(service_problems, tmp_path, "-j", "1") as made, made.client() as client:
        requests = [request_for(f"{HALF}#{time.time_ns()}{number}\n") for number in range(3)]
        with client.stream("POST", "/evaluate/batch", json={"requests": requests}) as answer:
            made.send_signal(signal.SIGTERM)
            states = [json.loads(line)["state"] for line in answer.iter_lines()]
        assert states == ["evaluated"] * 3
        assert made.end() == 0


def test_a_full_queue_says_when_to_try_again(cache, need_bubblewrap, service_problems, tmp_path):
    need_bubblewrap()
    with (
        forked_service(service_problems, tmp_path, "-j", "1", "--queue", "1", "--drain", "0") as made,
        made.client() as client,
    ):
        assert client.post("/evaluate", json=request_for(problem="sleeping", durable=True)).status_code == 202
        refused = client.post("/evaluate", json=request_for())
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/ready").status_code == 503


def test_only_requests_with_the_token_are_answered(cache, service_problems, tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef-token\n")
    options = ("--token-file", str(tmp_path / "token"), "--max-request", "1K")
    with forked_service(service_problems, tmp_path / "state", *options) as made, made.client(headers={}) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/problems").status_code == 401
        assert client.get("/problems", headers={"authorization": "Bearer wrong"}).status_code == 401
        right = {"authorization": "Bearer 0123456789abcdef-token"}
        assert client.get("/problems", headers=right).status_code == 200
        assert client.post("/evaluate", json=request_for("#" * 2000), headers=right).status_code == 413
        chunks = (b"#" * 100 for _ in range(100))
        assert client.post("/evaluate", content=chunks, headers=right).status_code == 413


def test_a_token_is_made_for_this_user_alone_and_a_restart_keeps_it(cache, service_problems, tmp_path):
    file = tmp_path / "state/token"
    with forked_service(service_problems, file.parent) as first, first.client(headers={}) as client:
        assert first.token_file == file
        assert file.stat().st_mode & 0o777 == 0o600
        token = file.read_text().strip()
        refused = client.get("/problems")
        assert refused.status_code == 401
        assert "Authorization: Bearer TOKEN" in refused.text
        assert str(tmp_path) not in refused.text
        assert client.get("/problems", headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert not any(token in line for line in first.lines)
        assert first.end() == 0
    with forked_service(service_problems, file.parent) as second, second.client(headers=first.headers) as client:
        assert client.get("/problems").status_code == 200
        assert file.read_text().strip() == token


@pytest.mark.e2e
@pytest.mark.parametrize(("options", "mode"), [([], 0o707), (["--no-token"], 0o770)])
def test_a_state_folder_that_others_may_write_is_refused(tmp_path, options, mode):
    """They could choose the token, and write results of durable jobs."""
    (tmp_path / "token").write_text("0123456789abcdef-token\n")
    tmp_path.chmod(mode)
    words = [sys.executable, "-m", "slop_code", "serve", "--port", "0", "--state", str(tmp_path), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (done.returncode, f"others may write to the state folder, whose mode is {mode:04o}" in done.stderr) == (
        3,
        True,
    )


@pytest.mark.e2e
@pytest.mark.parametrize(("content", "reason"), [(b"a" * 5000, "larger than 4096 bytes"), (None, "not a regular file")])
def test_a_file_that_is_no_token_is_wrong_use(tmp_path, content, reason):
    file = tmp_path / "token"
    os.mkfifo(file) if content is None else file.write_bytes(content)
    words = [sys.executable, "-m", "slop_code", "serve", "--port", "0", "--token-file", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr


@pytest.fixture
def other_loopback():
    """A socket of IPv6 on a free port, with the option that lets it share an address which nobody listens on."""
    with socket.socket(socket.AF_INET6) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("::1", 0))
        except OSError as error:
            pytest.skip(f"no IPv6: {error}")
        yield other


def test_nobody_else_can_listen_where_a_client_of_localhost_asks(cache, service_problems, tmp_path, other_loopback):
    """Set-up of a submission has the host's network, and a client would give the token to whoever answers."""
    with forked_service(service_problems, tmp_path) as made:
        port = int(made.url.rpartition(":")[2])
        assert is_taken(("::1", port))
        with httpx.Client(base_url=f"http://localhost:{port}", trust_env=False, headers=made.headers) as client:
            assert client.get("/problems").status_code == 200
    words = [sys.executable, "-m", "slop_code", "serve", "--port", str(other_loopback.getsockname()[1]), "--state"]
    done = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Address already in use on ::1" in done.stderr) == (2, True), done.stderr


def test_a_machine_without_the_other_version_of_ip_has_nothing_to_reserve(monkeypatch):
    monkeypatch.setitem(server.OTHER_VERSION, "127.0.0.1", "2001:db8::1")
    listener, reserved = server._tcp_sockets("127.0.0.1", 0)
    listener.close()
    assert reserved == []


def test_nobody_else_can_listen_while_the_last_requests_end(
    cache, need_bubblewrap, service_problems, tmp_path, other_loopback
):
    need_bubblewrap()
    port = other_loopback.getsockname()[1]
    other_loopback.close()
    options = ("-j", "1", "--port", str(port), "--drain", "600")
    with forked_service(service_problems, tmp_path, *options) as made, made.client() as client:
        waiting = ThreadPoolExecutor(1).submit(client.post, "/evaluate", json=request_for(problem="sleeping"))
        wait_until(lambda: running(client))
        made.send_signal(signal.SIGTERM)
        wait_until(lambda: is_refused(port))
        assert is_taken(("127.0.0.1", port))
        assert is_taken(("::1", port))
        made.send_signal(signal.SIGTERM)
        assert made.end() == 0
        waiting.result()


def is_taken(address: tuple[str, int]) -> bool:
    """With the option that lets sockets share an address which nobody listens on."""
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(address)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
        return False


def is_refused(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_the_json_of_a_start_names_the_file_of_the_token(cache, service_problems, tmp_path):
    options = ["--port", "0", "--problems-dir", str(service_problems), "--state", str(tmp_path), "--json"]
    with subprocess.Popen([sys.executable, "-m", "slop_code", "serve", *options], stdout=subprocess.PIPE) as process:
        try:
            assert json.loads(process.stdout.readline())["token_file"] == str(tmp_path / "token")
        finally:
            process.terminate()


ASKING_SETUP = """
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

url, token_file = sys.argv[1:]
try:
    token = open(token_file).read().strip()
except OSError:
    token = "none"
try:
    status = urlopen(Request(url, headers={"Authorization": f"Bearer {token}"})).status
except HTTPError as error:
    status = error.code
open("answer", "w").write(f"{token} {status}")
"""


@pytest.mark.parametrize(("options", "answer"), [([], "none 401"), (["--no-token"], "none 200")], ids=["token", "none"])
def test_set_up_of_a_submission_is_answered_only_without_a_token(
    cache, need_bubblewrap, make_problem, tmp_path, options, answer
):
    need_bubblewrap()
    tests = f"def test_answer(run):\n    assert run().stdout == {answer!r}\n"
    make_problem({"test_checkpoint_1.py": tests}, config={"name": "asking"}).path.rename(tmp_path / "asking")
    environment = tmp_path / "environment.yaml"
    environment.write_text("type: local\nname: asking\nsetup:\n  commands: ['sh setup.sh']\n"
                           "commands:\n  command: python\n")  # fmt: skip
    state = tmp_path / "state"
    with forked_service(tmp_path, state, "-j", "1", "-e", str(environment), *options) as made, made.client() as client:
        files = {
            "main.py": "print(open('answer').read(), end='')",
            "ask.py": ASKING_SETUP,
            "setup.sh": f"python3 ask.py {made.url}/problems {state / 'token'}",
        }
        request = {"problem": "asking", "checkpoint": 1, "submission": {"files": files}}
        result = client.post("/evaluate", json=request).json()
        assert result["state"] == "evaluated", result
        assert result["failures"] == []


def test_a_unix_socket_is_for_this_user_alone(cache, service_problems, tmp_path):
    path = tmp_path / "socket"
    with forked_service(service_problems, tmp_path / "state", "--no-tcp", "--socket", str(path)) as made:
        assert path.stat().st_mode & 0o777 == 0o600
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport, base_url="http://slop-code") as client:
            assert client.get("/health").status_code == 200
            assert client.get("/problems").status_code == 401
            assert client.get("/problems", headers=made.headers).status_code == 200
        assert made.end() == 0
    assert not path.exists()


def test_the_socket_of_another_server_is_not_removed(cache, service_problems, tmp_path):
    path = tmp_path / "socket"
    with forked_service(service_problems, tmp_path / "state", "--no-tcp", "--socket", str(path)) as made:
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            assert made.end() == 0
    assert path.exists()


SIGNALS_WHILE_CLOSING = """
import os, signal
from slop_code.bridges.service.service_queue import ServiceQueue
close = ServiceQueue.close
def close_with_signals(queue):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        os.kill(os.getpid(), number)
    close(queue)
ServiceQueue.close = close_with_signals
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_signals_while_the_queue_is_closed_change_nothing(cache, service_problems, tmp_path, number):
    with forked_service(service_problems, tmp_path, before=SIGNALS_WHILE_CLOSING) as made:
        assert made.end(number) == 0
        assert made.lines[1:] == []


def test_as_many_descriptors_as_the_system_allows(cache, service_problems, tmp_path):
    low = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))"
    with forked_service(service_problems, tmp_path, before=low) as made:
        assert resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE) == (512, 512)
        assert made.end() == 0


def test_a_second_signal_cancels_what_is_still_running(cache, need_bubblewrap, service_problems, tmp_path):
    """From Python 3.12 on, asyncio waits for the connections of a server that is closed."""
    need_bubblewrap()
    options = ("-j", "1", "--drain", "3600")
    with forked_service(service_problems, tmp_path, *options) as made, made.client() as client:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.post, "/evaluate", json=request_for(problem="sleeping"))
            wait_until(lambda: running(client) == 1)
            made.send_signal(signal.SIGINT)
            assert made.end() == 0
            assert answer.result().status_code == 503


IMPATIENT = """
import os
from slop_code.bridges.service.server import _TimedConnection
give_up, server.SEND_S = _TimedConnection._abort_if_unread, 0.2
def abort_if_unread(connection, unread):
    if os.path.exists({path!r}):
        give_up(connection, unread)
    else:
        connection._wait_for_reader()
_TimedConnection._abort_if_unread = abort_if_unread
"""


def test_a_client_that_reads_nothing_is_disconnected_and_its_evaluations_are_cancelled(
    cache, need_bubblewrap, service_problems, tmp_path
):
    need_bubblewrap()
    requests = [request_for(problem="sleeping"), *[request_for(problem="m" * 4000)] * 5000]
    body = json.dumps({"requests": requests}).encode()
    is_running = tmp_path / "is_running"
    soon = "from slop_code.bridges.service import server" + IMPATIENT.format(path=str(is_running))
    with forked_service(service_problems, tmp_path / "state", "-j", "1", before=soon) as made:
        address, _, port = made.url.removeprefix("http://").partition(":")
        with socket.create_connection((address, int(port)), timeout=100) as connection, made.client() as client:
            connection.sendall(made.head("/evaluate/batch", len(body)) + body)
            wait_until(lambda: running(client) == 1)
            is_running.touch()
            wait_until(lambda: running(client) == 0)
        assert made.end() == 0
        assert made.lines[1:] == []


def test_a_request_that_joined_another_never_gets_the_result_of_other_inputs(
    cache, need_bubblewrap, service_problems, tmp_path
):
    """The folder of the first one changes while both wait."""
    need_bubblewrap()
    wrong = f"{HALF}# {time.time_ns()}\n"
    folder = write_files(tmp_path / "allowed/changing", {"main.py": wrong})
    options = ("-j", "1", "--allow", str(tmp_path / "allowed"), "--retries", "0")
    with forked_service(service_problems, tmp_path / "state", *options) as made, made.client() as client:
        sleeping = client.post("/evaluate", json=request_for(problem="sleeping", durable=True)).json()["id"]
        wait_until(lambda: running(client) == 1)
        jobs = [
            client.post("/evaluate", json=request_for(durable=True) | {"submission": submission}).json()["id"]
            for submission in ({"path": str(folder)}, {"files": {"main.py": wrong}})
        ]
        assert client.get("/ready").json()["waiting"] == 1, "the second joined the first"
        (folder / "main.py").write_text(GOOD)
        assert client.delete(f"/jobs/{sleeping}").status_code == 204
        for job in jobs:
            result = wait_until(lambda job=job: client.get(f"/jobs/{job}").json().get("result"))
            assert (result["state"], result["reward"]) == ("infrastructure_failure", None)
            assert "changed while the request waited" in result["reason"]
        assert client.post("/evaluate", json=request_for(wrong)).json()["reward"] == 0.0


def test_damaged_durable_jobs_stop_no_server(cache, need_bubblewrap, service_problems, tmp_path):
    need_bubblewrap()
    names = {name: name * 32 for name in "abcde"}
    write_files(tmp_path, {
        f"{names['a']}.request.json": '{"problem": "addi',
        f"{names['b']}.request.json": json.dumps(request_for()),
        f"{names['b']}.result.json": "{",
        f"{names['c']}.request.json": json.dumps(request_for(problem="gone")),
        "other.request.json": json.dumps(request_for()),
        f"{names['d']}.request.json/folder": "",
        f".{names['d']}.request.json.tmp/folder": "",
    })  # fmt: skip
    (tmp_path / f"{names['e']}.request.json").symlink_to(tmp_path / "other.request.json")  # links are not followed
    with forked_service(service_problems, tmp_path) as made, made.client() as client:
        assert "2 durable jobs cannot be read" in made.lines[0]
        assert client.get(f"/jobs/{names['a']}").status_code == 404
        assert client.get(f"/jobs/{names['b']}").status_code == 503
        assert client.delete(f"/jobs/{names['b']}").status_code == 204
        assert client.get(f"/jobs/{names['c']}").json()["result"]["state"] == "infrastructure_failure"
        assert made.end() == 0
    assert {path.stem for path in tmp_path.glob("*.damaged")} == {names["a"], names["e"]}
    assert (tmp_path / f"{names['d']}.request.json/folder").exists()


def test_a_result_that_cannot_be_written_is_not_lost(cache, need_bubblewrap, service_problems, tmp_path):
    need_bubblewrap()
    with forked_service(service_problems, tmp_path, "-j", "1") as made, made.client() as client:
        program = f"{GOOD}# {time.time_ns()}\n"
        client.post("/evaluate", json=request_for(f"{program}# before\n", durable=True))  # the next one waits for it
        job = client.post("/evaluate", json=request_for(program, durable=True)).json()["id"]
        blocked = tmp_path / f"{job}.result.json"
        blocked.mkdir()  # a file cannot replace it
        finished = wait_until(lambda: (made := client.get(f"/jobs/{job}").json()).get("state") == "finished" and made)
        blocked.rmdir()
        assert client.get(f"/jobs/{job}").json() == finished
        assert blocked.is_file()
