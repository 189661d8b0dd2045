import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"
SERVE = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
if os.fork():
    os._exit(0)
os.setsid()
os.closerange(0, 3)
while True:
    peer, _ = listener.accept()
    peer.sendall(sys.argv[2].encode())
    peer.close()
"""


def test_the_workspace_is_the_working_directory_of_both(says):
    assert says("import os; print(os.getcwd())") == os.getcwd()
    assert (Path.cwd() / "main.py").is_file()


def test_each_sees_what_the_other_writes_to_the_workspace(says):
    Path("from_the_test").write_text("one")
    says("open('from_the_subject', 'w').write(open('from_the_test').read() + ' two')")
    assert Path("from_the_subject").read_text() == "one two"


def test_each_sees_what_the_other_writes_to_tmp_path(says, tmp_path):
    (tmp_path / "in").write_text("one")
    says("import sys; open(sys.argv[3], 'w').write(open(sys.argv[2]).read() + ' two')", tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "one two"


def test_the_test_removes_and_renames_what_the_subject_made(says, tmp_path):
    says("import os, sys; os.makedirs(sys.argv[2] + '/a/b'); open(sys.argv[2] + '/a/b/c', 'w').close()", tmp_path)
    (tmp_path / "a/b/c").rename(tmp_path / "moved")
    (tmp_path / "a/b").rmdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "moved"]


def test_both_have_the_same_tmp_folder(says):
    assert says("import tempfile; print(tempfile.gettempdir())") == tempfile.gettempdir()
    with tempfile.NamedTemporaryFile("w+", suffix=".txt") as file:
        file.write("by name")
        file.flush()
        assert says("import sys; print(open(sys.argv[2]).read())", file.name) == "by name"


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_exit_status(call, status):
    assert call(f"raise SystemExit({status})").returncode == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_death_by_signal(call, number):
    assert call(f"import os; os.kill(os.getpid(), {int(number)})").returncode == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_subject(start, number):
    # A handler would not do: Python calls none for a signal that comes just before `pause`.
    process = start(
        f"""
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])
os.write(1, b"ready\\n")
os.write(1, b"got %d\\n" % signal.sigwait([{int(number)}]))
os._exit(3)
"""
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=90)[0] == f"got {int(number)}\n"
    assert process.returncode == 3


def test_terminate_without_a_handler(start):
    process = start("import signal; print('ready', flush=True); signal.pause()")
    process.stdout.readline()
    process.terminate()
    assert process.wait(20) == -signal.SIGTERM


def test_three_streams(call):
    done = call("import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('aside')", input="text")
    assert (done.stdout, done.stderr) == ("TEXT", "aside")


def test_two_outputs_in_one_pipe_keep_their_order(call):
    code = "import os\nfor number in range(200): os.write(1 + number % 2, b'%d\\n' % number)"
    done = call(code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, capture_output=False)
    assert done.stdout.split() == [str(number) for number in range(200)]


def test_output_to_files(call, tmp_path):
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        code = "import sys; print('to a file'); print('to another', file=sys.stderr)"
        call(code, stdout=out, stderr=err, capture_output=False)
    assert (tmp_path / "out").read_text() == "to a file\n"
    assert (tmp_path / "err").read_text() == "to another\n"


def test_input_from_a_file(says, tmp_path):
    (tmp_path / "in").write_text("from a file")
    with (tmp_path / "in").open() as file:
        assert says("print(input())", stdin=file) == "from a file"


def test_no_input_at_all(says):
    assert says("import sys; print(repr(sys.stdin.read()))", stdin=subprocess.DEVNULL) == "''"


def test_bytes_pass_unchanged(call):
    every = bytes(range(256)) * 7
    code = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data); sys.stderr.buffer.write(data[::-1])"
    done = call(code, input=every, text=False)
    assert (done.stdout, done.stderr) == (every, every[::-1])


def test_five_megabytes_both_ways(call):
    sent = os.urandom(5 << 20)
    done = call("import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)", input=sent, text=False)
    assert done.stdout == sent


def test_output_that_is_not_taken_at_once(start):
    process = start("import sys; sys.stdout.write('x' * (1 << 20)); sys.stderr.write('done')", stderr=subprocess.PIPE)
    assert len(process.stdout.read()) == 1 << 20
    assert process.stderr.read() == "done"
    assert process.wait(20) == 0


def test_a_conversation(start):
    process = start("import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)\nprint('over')")
    for word in ("a", "b", "c"):
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{word * 2}\n"
    process.stdin.close()
    assert process.stdout.read() == "over\n"
    assert process.wait(20) == 0


def test_a_reader_that_leaves_ends_the_writer(start):
    process = start("import sys\nwhile True: print('more')", stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) != 0


def test_a_terminal(entrypoint):
    outer, inner = pty.openpty()
    code = "import sys; print(all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr)), input())"
    process = subprocess.Popen([*entrypoint, code], stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    os.write(outer, b"typed\n")
    seen = b""
    try:
        while chunk := os.read(outer, 4096):
            seen += chunk
    except OSError:
        pass
    os.close(outer)
    assert process.wait(20) == 0
    assert b"True typed" in seen


def test_a_large_argument_and_many(says):
    assert says("import sys; print(len(sys.argv[2]))", "x" * 100_000) == "100000"
    assert says("import sys; print(len(sys.argv))", *range(20_000)) == "20002"


def test_a_large_variable(says):
    environment = {**os.environ, "LARGE": "y" * 100_000}
    assert says("import os; print(len(os.environ['LARGE']))", env=environment) == "100000"


def test_arguments_are_not_touched(says):
    odd = ["", " ", "a b", "*", "$HOME", "--", "-n", "'\"\\", "line\nline", "ü€"]
    assert json.loads(says("import json, sys; print(json.dumps(sys.argv[2:]))", *odd)) == odd


def test_the_working_directory_of_a_call(says, entrypoint, tmp_path):
    script = [*entrypoint[:-1], str(Path(entrypoint[-1]).absolute())]
    code = "import os; print(os.getcwd()); open('here', 'w').close()"
    done = subprocess.run([*script, code], cwd=tmp_path, capture_output=True, text=True, timeout=90)
    assert done.stdout.strip() == str(tmp_path)
    assert (tmp_path / "here").is_file()


def test_the_environment_of_a_call(says):
    seen = json.loads(says(ENVIRONMENT, env={"PATH": os.environ["PATH"], "ONLY": "this"}))
    assert seen["ONLY"] == "this"
    assert "HOME" not in seen


def test_variables_that_tests_and_subject_share(says):
    seen = json.loads(says(ENVIRONMENT))
    for name in ("SCBENCH_CHECKPOINT", "SCBENCH_ASSETS_DIR", "SCBENCH_ASSET_NOTE", "FROM_CONFIG", "HOME", "TMPDIR", "PATH"):
        assert seen[name] == os.environ[name]
    assert (seen["SCBENCH_CHECKPOINT"], seen["FROM_CONFIG"]) == ("contract", "config")


def test_the_host_s_environment_reaches_neither(says):
    assert "SLOP_CODE_TEST_SECRET" not in os.environ
    assert "SLOP_CODE_TEST_SECRET" not in json.loads(says(ENVIRONMENT))


def test_the_judge_s_own_variables_do_not_reach_the_subject(says):
    seen = json.loads(says(ENVIRONMENT))
    assert [name for name in seen if name.startswith(("SLOP_CODE", "UV_TOOL", "PYTHONPATH", "PYTHONSAFE"))] == []


def test_home_is_a_writable_folder_for_each(says):
    says("import pathlib; (pathlib.Path.home() / 'of_the_subject').write_text('kept')")
    assert says("import pathlib; print((pathlib.Path.home() / 'of_the_subject').read_text())") == "kept"
    (Path.home() / "of_the_test").write_text("kept")
    assert (Path.home() / "of_the_test").read_text() == "kept"


def test_assets_are_readable(says):
    assert says("import os; print(open(os.environ['SCBENCH_ASSET_NOTE']).read())").strip() == "an asset"
    assert Path(os.environ["SCBENCH_ASSETS_DIR"], "note").read_text() == "an asset\n"


@pytest.mark.parametrize("form", ["{}", "--file={}", "one:{}:two", "{} and more", "@{}"])
def test_a_file_handed_over_in_an_argument(says, data, form):
    path = data / "handed.txt"
    assert says(f"import sys; print(open({str(path)!r}).read(), sys.argv[2])", form.format(path)).startswith("handed")


def test_a_file_handed_over_relative_to_the_workspace(says, data):
    relative = os.path.relpath(data / "handed.txt")
    assert says("import sys; print(open(sys.argv[2]).read())", relative).strip() == "handed"


def test_a_folder_handed_over_in_a_variable(says, data):
    environment = {**os.environ, "INPUTS": str(data / "folder")}
    assert says("import os; print(os.listdir(os.environ['INPUTS']))", env=environment) == "['inner.txt']"


def test_a_folder_handed_over_as_the_working_directory(entrypoint, data):
    script = [*entrypoint[:-1], str(Path(entrypoint[-1]).absolute())]
    code = "print(open('inner.txt').read())"
    done = subprocess.run([*script, code], cwd=data / "folder", capture_output=True, text=True, timeout=90)
    assert done.stdout.strip() == "inner", done.stderr


@pytest.fixture(scope="module")
def mark():
    """A word of this submission alone, by which its server can be found among all processes."""
    return Path("mark").read_text()


@pytest.fixture(scope="module")
def port(says, mark):
    return int(says(SERVE, mark))


@pytest.mark.parametrize("turn", [1, 2])
def test_a_server_stays_between_calls(port, says, mark, turn):
    with socket.create_connection(("127.0.0.1", port), timeout=90) as peer:
        assert peer.recv(100) == mark.encode()
    code = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[2])), 20).recv(100).decode())"
    assert says(code, port) == mark


def test_many_calls_at_once(start):
    processes = [start(f"print(input() * {number})") for number in range(8)]
    for process in processes:
        process.stdin.write("x\n")
        process.stdin.flush()
    assert [process.communicate(timeout=90)[0].strip() for process in processes] == ["x" * n for n in range(8)]


def test_a_program_that_is_not_there(entrypoint):
    missing = [*entrypoint[:-2], "no-such-program"]
    if len(missing) == 1:
        with pytest.raises(FileNotFoundError):
            subprocess.run(missing, timeout=90)
        return
    done = subprocess.run(missing, capture_output=True, text=True, timeout=90)
    assert done.returncode in (126, 127)
    assert "no-such-program" in done.stderr


def test_the_subject_s_interpreter_has_none_of_the_test_tools(says):
    code = "import importlib.util; print(importlib.util.find_spec('deepdiff'), importlib.util.find_spec('pytest'))"
    assert says(code) == "None None"
    assert "deepdiff" in sys.modules or __import__("deepdiff")
