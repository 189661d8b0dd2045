"""Test files with odd behaviour when they are imported or run, for judges of every kind."""

SAFE = {
    "test_module_state.py": """
        import functools
        COUNTER, CALLS = [0], []
        @functools.lru_cache
        def cached(n):
            CALLS.append(n)
            return n
        cached(1)
        def test_counter_starts_at_zero():
            COUNTER[0] += 1
            assert COUNTER == [1]
        def test_counter_goes_on():
            COUNTER[0] += 1
            assert COUNTER == [2]
        def test_cache_was_filled_at_import():
            assert (cached(1), CALLS) == (1, [1])
    """,
    "test_data.py": """
        import json, glob, os
        import pytest
        from pathlib import Path
        HERE = Path(__file__).resolve().parent
        CASES = json.loads((HERE / "data" / "cases.json").read_text())
        NAMES = sorted(os.path.basename(name) for name in glob.glob(str(HERE / "data" / "*.json")))
        @pytest.mark.parametrize("case", CASES, ids=str)
        def test_case(case):
            assert case < 3
        def test_names():
            assert NAMES == ["cases.json"] and os.listdir(HERE / "data") == ["cases.json"]
    """,
    "data/cases.json": "[1, 2, 3]",
    "test_environment.py": """
        import os, sys
        os.environ["SET_AT_IMPORT"] = "1"
        os.environ.pop("SEEN")
        def test_change_at_import_stays():
            assert os.environ["SET_AT_IMPORT"] == "1" and "SEEN" not in os.environ
        def test_child_sees_it():
            import subprocess
            assert subprocess.check_output(["sh", "-c", "echo $SET_AT_IMPORT"]) == b"1\\n"
        def test_arguments_and_folder():
            assert sys.argv[0].endswith("/pytest") and os.getcwd().endswith("/workspace")
            assert "SLOP_CODE_TEMPLATE" not in os.environ and "SLOP_CODE_JUDGE" not in os.environ
    """,
    "test_atexit.py": """
        import atexit, weakref
        class Kept: pass
        KEPT = Kept()
        def at_exit(name):
            with open(".scbench/atexit.txt", "a") as file:
                file.write(name + "\\n")
        atexit.register(at_exit, "first")
        atexit.register(at_exit, "second")
        weakref.finalize(KEPT, at_exit, "finalizer")
        def test_nothing():
            pass
    """,
    "test_warnings.py": """
        import warnings
        import pytest
        warnings.warn("at import")
        warnings.filterwarnings("ignore", message="ignored")
        def test_warns():
            warnings.warn("in a test")
            warnings.warn("ignored")
        def test_caught():
            with pytest.warns(UserWarning):
                warnings.warn("expected")
        @pytest.mark.unknown_mark
        def test_unknown_mark():
            pass
    """,
    "test_capture.py": """
        import os, sys
        print("printed at import")
        sys.stderr.write("error at import\\n")
        os.write(1, b"written at import\\n")
        def test_capsys(capsys):
            print("out"); print("err", file=sys.stderr)
            assert capsys.readouterr() == ("out\\n", "err\\n")
        def test_capfd(capfd):
            os.write(1, b"out"); os.system("echo more"); os.write(2, b"err")
            assert capfd.readouterr() == ("outmore\\n", "err")
        def test_disabled(capsys):
            with capsys.disabled():
                print("visible in the log")
        def test_shown():
            os.write(1, b"shown with the failure\\n"); print("as this"); os.system("echo and this >&2")
            assert 0
        def test_huge():
            for _ in range(200):
                print("x" * 1000)
            assert 0
        def test_descriptors():
            names = {name: os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")[:-1]}
            kinds = {name: "deleted" if "deleted" in path else path for name, path in names.items()}
            assert 0, sorted(kinds.items())
    """,
    "test_logging.py": """
        import logging
        logging.getLogger("own").setLevel(logging.DEBUG)
        LOGGER = logging.getLogger("own.part")
        def test_caplog(caplog):
            LOGGER.debug("debug %s", 1)
            assert caplog.messages == ["debug 1"]
        def test_logged():
            LOGGER.warning("shown")
            assert 0
        def test_relative_times_begin_with_the_process(caplog):
            LOGGER.warning("now")
            assert 0 <= caplog.records[0].relativeCreated < 1e6
    """,
    "test_outcomes.py": """
        import sys, unittest
        import pytest
        def test_monkeypatch(monkeypatch):
            monkeypatch.setenv("SEEN", "other"); monkeypatch.setattr(sys, "argv", ["x"])
        @pytest.mark.xfail
        def test_xfail(): assert 0
        @pytest.mark.xfail
        def test_xpass(): pass
        @pytest.mark.xfail(strict=True)
        def test_xpass_strict(): pass
        @pytest.mark.skip(reason="not now")
        def test_skip(): pass
        @pytest.mark.skipif(sys.version_info < (3, 0), reason="old")
        def test_skipif(): pass
        def test_exit(): sys.exit(3)
        def test_assertion_is_rewritten():
            left = {"a": [1, 2]}
            assert left == {"a": [1, 3]}
        @pytest.fixture
        def broken():
            yield 1
            raise ValueError("in teardown")
        def test_teardown(broken): pass
        def test_fixture_that_is_missing(nothing): pass
        def test_recursion():
            def deeper(): deeper()
            with pytest.raises(RecursionError): deeper()
        class TestOld(unittest.TestCase):
            @classmethod
            def setUpClass(cls): cls.value = 1
            def test_value(self): self.assertEqual(self.value, 2)
            def test_sub(self):
                for n in range(3):
                    with self.subTest(n=n): self.assertNotEqual(n, 1)
        def test_subtests(subtests):
            for n in range(3):
                with subtests.test(n=n): assert n != 1
        def setup_module(): sys.modules[__name__].READY = True
        def test_setup_module(): assert READY
    """,
    "test_skipped_module.py": """
        import pytest
        pytest.skip("whole module", allow_module_level=True)
    """,
    "test_importorskip.py": """
        import pytest
        absent = pytest.importorskip("no_such_module")
        def test_never(): pass
    """,
    "test_timeout.py": """
        import signal, time
        import pytest
        @pytest.mark.timeout(0.2, func_only=True)
        def test_slow():
            while True: time.sleep(0.01)
        def test_no_timer_of_the_last_test():
            assert signal.getsignal(signal.SIGALRM) != signal.SIG_IGN
    """,
    "test_stdin.py": """
        import os, sys
        import pytest
        def test_input():
            with pytest.raises(OSError): input()
        def test_child_reads_nothing():
            assert os.read(0, 1) == b"" and os.readlink("/proc/self/fd/0") == "/dev/null"
    """,
    "test_random.py": """
        import random
        import pytest
        RNG = random.Random(42)
        VALUES = [RNG.randint(0, 1000) for _ in range(3)]
        @pytest.mark.parametrize("value", VALUES)
        def test_seeded(value):
            assert value == 0
        def test_global_state_is_not_that_of_a_seed():
            assert random.random() != random.Random(0).random()
    """,
    "test_library_imports.py": """
        import asyncio, concurrent.futures, ctypes.util, datetime, decimal, email.message, http.server, inspect, locale
        import multiprocessing, platform, secrets, sqlite3, ssl, statistics, string, tempfile, threading, uuid, zoneinfo
        import jsonschema
        from collections import namedtuple
        from dataclasses import dataclass
        Point = namedtuple("Point", "x y")
        @dataclass
        class Record: value: int = 1
        SYSTEM = platform.system()
        decimal.getcontext().prec = 5
        LOCAL = threading.local(); LOCAL.value = 1
        def test_library(tmp_path):
            assert SYSTEM == "Linux" and Record() == Record(1) and Point(1, 2).x == 1 and LOCAL.value == 1
            assert decimal.Decimal(1) / 3 == decimal.Decimal("0.33333")
            assert uuid.uuid4() != uuid.uuid4() and secrets.token_hex() and tempfile.mkdtemp()
            assert sqlite3.connect(tmp_path / "db").execute("select 1").fetchone() == (1,)
        def test_async():
            async def main():
                return await asyncio.to_thread(threading.active_count)
            assert asyncio.run(main()) == 2
        def test_processes():
            with concurrent.futures.ProcessPoolExecutor(1) as pool:
                assert pool.submit(abs, -1).result() == 1
        def test_ctypes():
            assert ctypes.CDLL(None).abs(-3) == 3
        def test_modules_stay_the_same():
            import sys
            import ctypes.util as again
            assert sys.modules["ctypes"] is ctypes and again is ctypes.util
    """,
    "test_kept_functions.py": """
        import os
        from os import stat, path
        from os.path import exists
        def test_function_is_the_real_one():
            assert stat is os.stat and type(stat).__name__ == "builtin_function_or_method"
            assert stat in os.supports_follow_symlinks and exists(__file__)
    """,
    "test_garbage.py": """
        import gc, os, threading, weakref
        class Node: pass
        KEPT, DROPPED = Node(), Node()
        KEPT.own, DROPPED.own = KEPT, DROPPED
        OF_KEPT = weakref.ref(KEPT)
        gc.disable()
        OF_DROPPED = weakref.ref(DROPPED)
        del DROPPED
        def test_collector_sees_what_was_made_at_import():
            global KEPT
            assert any(known is KEPT for known in gc.get_objects())
            del KEPT
            assert OF_KEPT() is not None and OF_DROPPED() is not None
            gc.collect()
            assert OF_KEPT() is None and OF_DROPPED() is None
            gc.enable()
        def test_main_thread_is_that_of_this_process():
            assert threading.main_thread().native_id == os.getpid()
    """,
    "test_in_tests.py": """
        import os, signal, socket, subprocess, sys, threading, time
        signal.signal(signal.SIGUSR1, lambda *_: HITS.append(1))
        HITS = []
        def test_handler_of_import():
            os.kill(os.getpid(), signal.SIGUSR1)
            assert HITS == [1]
        def test_clock_thread_socket_process(tmp_path):
            start = time.time()
            thread = threading.Thread(target=(tmp_path / "x").write_text, args=("x",)); thread.start(); thread.join()
            assert threading.current_thread() is threading.main_thread() and threading.active_count() == 1
            with socket.socket() as server: server.bind(("127.0.0.1", 0))
            assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
            assert time.time() >= start and os.getpid() == int(os.readlink("/proc/self"))
        def test_session_of_its_own():
            assert os.getpgid(0) == os.getpgrp()
        def test_leaves_a_process():
            subprocess.Popen(["sleep", "20"])
    """,
    "conftest.py": """
        import sys
        import pytest
        pytest_plugins = ["own_plugin"]
        sys.path.insert(0, __file__.rpartition("/")[0] + "/lib")
        import own_helper
        STARTED = []
        def pytest_sessionstart(session): STARTED.append("session")
        def pytest_configure(config): config.addinivalue_line("markers", "own: of the conftest")
        def pytest_collection_finish(session): STARTED.append(len(session.items))
        def pytest_generate_tests(metafunc):
            if "generated" in metafunc.fixturenames: metafunc.parametrize("generated", own_helper.VALUES)
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(config, items):
            left = [item for item in items if "deselect_me" in item.name]
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if item not in left]
        @pytest.fixture(scope="session", autouse=True)
        def session_state(): return {"tests": 0}
        @pytest.fixture
        def started(): return STARTED
        def pytest_terminal_summary(terminalreporter): terminalreporter.write_line("summary of the conftest")
        def pytest_report_header(): return "header of the conftest"
    """,
    "own_plugin.py": """
        import pytest
        @pytest.fixture
        def from_plugin():
            assert 1 + 1 == 2
            return "plugin"
    """,
    "lib/own_helper.py": "VALUES = [1, 2]",
    "test_conftest.py": """
        import own_helper, sys
        import pytest
        @pytest.mark.own
        def test_fixtures(from_plugin, started, session_state):
            session_state["tests"] += 1
            assert (from_plugin, started[0], session_state["tests"]) == ("plugin", "session", 1)
            assert len(started) == 2
        def test_generated(generated): assert generated == 1
        def test_deselect_me(): pass
        def test_helper(): assert sys.path[0].endswith("/lib") and own_helper.VALUES == [1, 2]
    """,
}
"""Files that can be collected ahead."""

REFUSED = {
    "clock": ("import time; NOW = time.time()", "read the clock (time)"),
    "monotonic": ("from time import perf_counter_ns; NOW = perf_counter_ns()", "read the clock (perf_counter_ns)"),
    "date": ("import datetime; NOW = datetime.datetime.now()", "read the clock (now)"),
    "today": ("from datetime import date; NOW = date.today()", "read the clock (today)"),
    "random": ("import random; N = random.random()", "used the global random numbers"),
    "seed": ("import random; random.seed(1)", "used the global random numbers"),
    "unseeded": ("import random; RNG = random.Random()", "read random numbers"),
    "uuid": ("import uuid; NAME = uuid.uuid4()", "read random numbers (urandom)"),
    "secret": ("import secrets; NAME = secrets.token_hex()", "read random numbers (urandom)"),
    "pid": ("import os; PID = os.getpid()", "read an id of the process or the user (getpid)"),
    "uid": ("import os; ROOT = os.geteuid() == 0", "read an id of the process or the user (geteuid)"),
    "thread": ("import threading; T = threading.Thread(target=print); T.start(); T.join()", "started a thread"),
    "process": ("import subprocess; OUT = subprocess.run(['true'])", "started a process (subprocess.Popen)"),
    "shell": ("import os; OUT = os.system('true')", "started a process (os.system)"),
    "fork": ("import os\nif os.fork() == 0: os._exit(0)\nos.wait()", "started a process (os.fork)"),
    "socket": ("import socket; S = socket.socket(); S.close()", "used a socket"),
    "port": ("import socket; NAME = socket.gethostname()", "used a socket (socket.gethostname)"),
    "tempfile": ("import tempfile; FOLDER = tempfile.mkdtemp()", "made a temporary file"),
    "write": ("open('made.txt', 'w').close()", "wrote to made.txt"),
    "mkdir": ("import os; os.makedirs('made', exist_ok=True)", "changed files (os.mkdir)"),
    "read": ("try: open('main.py')\nexcept OSError: pass", "read main.py"),
    "exists": ("import os; HAS = os.path.exists('main.py')", "looked at main.py (os.stat)"),
    "is_file": ("from pathlib import Path; HAS = (Path.cwd() / 'main.py').is_file()", "(os.stat)"),
    "listdir": ("import os; FILES = os.listdir()", "read ."),
    "iterdir": ("from pathlib import Path; FILES = list(Path.cwd().iterdir())", "/workspace"),
    "walk": ("import os; FILES = list(os.walk(os.getcwd()))", "/workspace"),
    "home": ("from pathlib import Path; HAS = (Path.home() / '.profile').exists()", "/home/.profile (os.stat)"),
    "access": ("import os; HAS = os.access('main.py', os.R_OK)", "looked at main.py (os.access)"),
    "proc": ("STATUS = open('/proc/self/status').read()", "read /proc/self/status"),
    "path": (
        "import sys, os; sys.path.insert(0, os.getcwd())\ntry: import main\nexcept ImportError: pass",
        "/workspace",
    ),
    "chdir": ("import os; os.chdir(os.getcwd())", "changed the working directory (os.chdir)"),
    "mmap": ("import mmap; SHARED = mmap.mmap(-1, 4096)", "mapped memory, which processes may share"),
    "ctypes": ("import ctypes; LIBC = ctypes.CDLL(None)", "loaded a C library"),
    "at_fork": ("import os; os.register_at_fork(before=bool)", "changed an attribute of the process"),
    "limits": ("import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0))", "changed a limit of the process"),
    "loop": ("import asyncio; LOOP = asyncio.new_event_loop(); LOOP.close()", "used a socket"),
    "uuid1": ("import uuid; NAME = uuid.uuid1()", "read the clock (generate_time_safe)"),
    "native_id": ("import threading; ID = threading.get_native_id()", "read an id of the process or the user"),
    "usage": ("import resource as r; USED = r.getrusage(r.RUSAGE_SELF)", "read limits or usage of the process"),
    "nice": ("import os; os.nice(0)", "changed an attribute of the process (nice)"),
    "mask": ("import signal as s; s.pthread_sigmask(s.SIG_BLOCK, [])", "changed an attribute of the process"),
    "root": ("import os; NAMES = os.listdir('/')", "read /"),
    "elsewhere": ("import os; HAS = os.path.exists('/no_such_folder/x')", "looked at /no_such_folder/x (os.stat)"),
    "launcher": ("import shutil; PROGRAM = shutil.which('slop-run')", "/slop-run (os."),
    "log_record": ("import logging; logging.warning('at import')", "read the clock"),
}
"""A statement of a test module, and part of the reason that its own file gets."""

LEFT = {
    "a signal was ignored": "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
    "SIGCHLD was handled": "import signal; signal.signal(signal.SIGCHLD, lambda *_: None)",
    "a timer was left running": "import signal; signal.setitimer(signal.ITIMER_REAL, 1000)",
    "a thread was left running": "import threading as t; t.Thread(target=t.Event().wait, daemon=True).start()",
    "a process was left": "import subprocess; P = subprocess.Popen(['sleep', '300'])",
    "memory that processes share was mapped": "import multiprocessing; LOCK = multiprocessing.Lock()",
    "pipe:[": "import fcntl, os; R, W = os.pipe(); H = fcntl.fcntl(W, fcntl.F_DUPFD, 300); os.close(R); os.close(W)",
    "/memfd:own (deleted) was left open": "import os; FD = os.memfd_create('own')",
    "os.access was kept": "import os\nclass Files:\n    access = os.access",
    "/data.txt was left open": "FILE = open(__file__.rpartition('/')[0] + '/data.txt')",
    "os.stat was kept": "import functools, os; LATER = functools.partial(os.stat, '/')",
    "os.lstat was replaced": "import os; os.lstat = lambda *a, **o: os.stat(*a, **o)",
    "the working directory was changed": "import os; os.chdir('/')",
}
"""State after the imports, by the reason."""
