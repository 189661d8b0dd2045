"""Cold judges, and judges that are forked from a template, leave the same evidence."""

import json
import re
import time

import pytest

from tests.evaluation.import_cases import LEFT, REFUSED, SAFE
from tests.marks import in_long
from tests.plugin_packages import install_package
from tests.template_client import JudgeFolder

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def safe(tmp_path_factory):
    folder = JudgeFolder(tmp_path_factory.mktemp("safe"), SAFE)
    return folder, folder.cold()


@pytest.mark.long
def test_imported_and_cold_judges_leave_the_same_evidence(safe):
    folder, cold = safe
    with folder.imported() as template:
        assert template.answer["ready"] == "imported"
        for _ in range(2):
            forked = folder.forked(template)
            assert forked.comparable == cold.comparable
            assert at_exit(forked) == at_exit(cold) == ["finalizer", "second", "first"]


def test_collected_and_cold_judges_leave_the_same_evidence(safe):
    folder, cold = safe
    with folder.collected() as template:
        assert template.answer["ready"] == "collected", (folder.root / "template.log").read_text()
        for _ in range(2):
            forked = folder.forked(template)
            assert forked.comparable == cold.comparable
            assert at_exit(forked) == at_exit(cold)


def at_exit(judged):
    return (judged.folder / "atexit.txt").read_text().splitlines()


def test_every_reason_against_a_collected_template_is_found(tmp_path):
    files = {f"test_{name}.py": f"{code}\ndef test_nothing(): pass\n" for name, (code, _) in REFUSED.items()}
    folder = JudgeFolder(tmp_path, files)
    with folder.collected() as template:
        assert "before the first test" in template.answer["refused"]
    log = (folder.root / "template.log").read_text()
    lines = [line.removeprefix("no collected template: ") for line in log.splitlines()]
    missed = {
        name: [line for line in lines if line.startswith(f"test_{name}.py ")]
        for name, (_, reason) in REFUSED.items()
        if not any(line.startswith(f"test_{name}.py ") and reason in line for line in lines)
    }
    assert missed == {}


def test_state_that_a_fork_would_lose_or_share_is_refused(tmp_path):
    files = {f"test_{n}.py": f"{code}\ndef test_nothing(): pass\n" for n, code in enumerate(LEFT.values())}
    folder = JudgeFolder(tmp_path, {**files, "data.txt": ""})
    with folder.collected() as template:
        assert list(template.answer) == ["refused"]
    lines = (folder.root / "template.log").read_text().splitlines()
    reasons = [line for line in lines if line.startswith("no collected template: ")]
    assert [part for part in LEFT if not any(part in line for line in reasons)] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module", "the tests cannot be collected without a submission"),
        ("raise SystemExit(3)", "pytest ended before the tests were collected"),
        ("import pytest; pytest.exit('no', 7)", "the tests cannot be collected without a submission"),
    ],
)
def test_tests_that_cannot_be_collected_give_no_template(tmp_path, code, reason):
    folder = JudgeFolder(tmp_path, {"test_a.py": code})
    with folder.collected() as template:
        assert reason in template.answer["refused"]
    with folder.imported() as template:
        assert folder.forked(template).comparable == folder.cold().comparable


THROUGH_PYTEST = """
    import os, sys, pytest
    def pytest_sessionstart(session): session.config._tmp_path_factory.mktemp('own')
    sys.path.insert(0, os.getcwd())
    try: pytest.importorskip('main')
    except pytest.skip.Exception: pass
"""


def test_what_pytest_does_for_a_conftest_is_seen(tmp_path):
    folder = JudgeFolder(tmp_path, {"conftest.py": THROUGH_PYTEST, "test_a.py": "def test_a(tmp_path): pass"})
    with folder.collected() as template:
        assert "conftest.py " in template.answer["refused"]
    lines = [line for line in (folder.root / "template.log").read_text().splitlines() if "conftest.py " in line]
    for reason in ("changed files (os.mkdir)", "/workspace"):
        assert any(reason in line for line in lines), lines


def test_tests_that_import_the_submission_are_not_collected_ahead(tmp_path):
    folder = JudgeFolder(tmp_path, {"test_a.py": "def test_a(): pass"})
    with folder.collected(in_process=True) as template:
        assert template.answer == {"refused": "the tests import the submission (in_process: true)"}


ENDS = {
    "exit": "import os\ndef test_end(): print('lost'); os._exit(0)",
    "kill": "import os, signal\ndef test_end(): os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "import faulthandler\ndef test_end(): faulthandler._sigsegv()",
    "pytest_exit": "import pytest\ndef test_end(): pytest.exit('enough', 9)",
    "interrupt": "def test_end(): raise KeyboardInterrupt",
    "thread": "import threading\ndef wait():\n    threading.main_thread().join()\n    print()\n"
    "def test_end(): threading.Thread(target=wait).start()",
    "hook": "def test_end(): pass",
}


@pytest.mark.parametrize("case", ["kill", *in_long(*(case for case in ENDS if case != "kill"))])
def test_every_kind_of_judge_ends_in_the_same_way(tmp_path, case):
    files = {"test_a.py": f"def test_first(): pass\n{ENDS[case]}\ndef test_last(): pass\n"}
    if case == "hook":
        files["conftest.py"] = "def pytest_unconfigure(): raise ValueError('at the end')"
    folder = JudgeFolder(tmp_path, files)
    cold = folder.cold()
    assert cold.statuses["test_first"] == "passed"
    with folder.imported() as template:
        assert folder.forked(template).comparable == cold.comparable
    with folder.collected() as template:
        assert folder.forked(template).comparable == cold.comparable


STATE = """
    import gc, json, logging, os, random, resource, signal, sys, threading, warnings
    import pytest
    def test_state():
        with open(".scbench/state.json", "w") as file:
            json.dump(state(), file, default=str)
    def state():
        return {
            "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": str(sys.flags),
            "modules": sorted(sys.modules), "meta_path": [type(finder).__name__ for finder in sys.meta_path],
            "hooks": len(sys.path_hooks), "cwd": os.getcwd(), "environ": dict(os.environ),
            "main": {name: str(value) for name, value in vars(sys.modules["__main__"]).items()},
            "umask": [mask := os.umask(0o77), os.umask(mask)][0],
            "signals": {number: str(signal.getsignal(number)) for number in signal.valid_signals()},
            "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT")},
            "filters": str(warnings.filters), "profile": sys.getprofile(), "trace": sys.gettrace(),
            "exit": sys.exit is type(sys.exit) or sys.exit.__module__, "stat": str(os.stat),
            "stdin": str(sys.stdin), "threads": [thread.name for thread in threading.enumerate()],
            "loggers": sorted(logging.root.manager.loggerDict), "handlers": str(logging.root.handlers),
            "descriptors": {n: describe(int(n)) for n in os.listdir("/proc/self/fd")[:-1]},
            "interpreter": [sys.executable, sys.prefix, sys.dont_write_bytecode, sys.getrecursionlimit()],
            "ids": [os.getuid(), os.getgid(), os.getgroups()],
        }
    def describe(number):
        path = os.readlink(f"/proc/self/fd/{number}")
        return ["deleted" if "deleted" in path else path, os.get_inheritable(number)]
"""


KEPT = """
    import os, sys
    class Kept:
        def __del__(self, mkdir=os.mkdir): mkdir(".scbench/freed")
    sys.kept = Kept()
    def test_nothing(): pass
"""


def test_a_test_finds_the_same_process_in_every_kind_of_judge_and_none_frees_every_object(tmp_path):
    folder = JudgeFolder(tmp_path, {"test_kept.py": KEPT, "test_state.py": STATE})
    cold = state_of(folder.cold())
    with folder.imported() as template:
        assert differences(state_of(folder.forked(template)), cold) == {}
    with folder.collected() as template:
        assert differences(state_of(folder.forked(template)), cold) == {}


def differences(forked, cold):
    """Of each value, the parts that only one of them has."""
    parts = {name: [set(map(str, value.items() if isinstance(value, dict) else value if isinstance(value, list)
             else [value])) for value in (forked[name], cold[name])] for name in cold}  # fmt: skip
    return {name: (left - right, right - left) for name, (left, right) in parts.items() if left != right}


def state_of(judged):
    assert judged.exit_code == 0
    assert not (judged.folder / "freed").exists()
    return json.loads(re.sub("0x[0-9a-f]+", "0x", (judged.folder / "state.json").read_text()))


FRESH = """
    import os, random
    FOLDER, SEEN = os.path.dirname(__file__), []
    def test_a():
        SEEN.append(1)
        os.environ["LEFT"] = "1"
        print("printed by", os.getpid())
        open("left.txt", "a").write("1")
        assert SEEN == [1] and open("left.txt").read() == "1"
        assert 0, f"RANDOM {random.random()}"
    def test_b(): assert os.environ["LEFT"] == "1"
"""
CLOCKS = """
    import json, logging
    def test_clock(): open(".scbench/logging.json", "w").write(str(logging._startTime))
"""


@pytest.mark.parametrize("kind", ["collected", *in_long("imported")])
def test_two_judges_of_one_template_share_nothing_and_have_their_own_start_times(tmp_path, kind):
    folder = JudgeFolder(tmp_path, {"test_fresh.py": FRESH, "test_clock.py": CLOCKS})
    with getattr(folder, kind)() as template:
        before = time.time()
        first, second = folder.forked(template), folder.forked(template)
    expected = {"test_clock": "passed", "test_a": "failed", "test_b": "passed"}
    assert first.statuses == second.statuses == expected
    assert_started_after(before, first)
    assert [len(re.findall("printed by [0-9]", judged.log)) for judged in (first, second)] == [1, 1]
    numbers = [re.search(r"RANDOM [\d.e-]+", judged.messages)[0] for judged in (first, second)]
    assert numbers[0] != numbers[1]


def assert_started_after(moment, judged):
    report, ctrf, logged = (
        json.loads((judged.folder / name).read_text())
        for name in ("pytest-report.json", "ctrf-report.json", "logging.json")
    )
    assert report["created"] - report["duration"] >= moment - 0.01
    assert ctrf["results"]["summary"]["start"] >= int(moment * 1000)
    assert (logged / 1e9 if logged > 1e12 else logged) >= moment


DYING = """
    import os
    def test_dies_in_the_first_judge():
        os.write(1, b"output of " + str(os.getpid()).encode())
        if not os.path.exists("../first"):
            open("../first", "w").write(str(os.getpid()))
            os._exit(0)
        assert 0
"""


def test_a_judge_that_died_leaves_no_output_to_the_next_one(tmp_path):
    folder = JudgeFolder(tmp_path, {"test_dies.py": DYING})
    with folder.collected() as template:
        first, second = folder.forked(template), folder.forked(template)
    dead = (folder.root / "first").read_text()
    assert (first.statuses, second.statuses) == ({}, {"test_dies_in_the_first_judge": "failed"})
    assert "output of" in second.log
    assert f"output of {dead}" not in second.log


@pytest.mark.parametrize(
    "changes",
    [{"only": ["test_b.py::test_2"]}, *in_long({"quarantined": ["test_a.py::test_1"]}, {"seed": 5})],
)
def test_the_tests_of_a_request_are_chosen_in_the_judge(tmp_path, changes):
    files = {f"test_{name}.py": "def test_1(): pass\ndef test_2(): assert 0\ndef test_3(): pass\n" for name in "ab"}
    folder = JudgeFolder(tmp_path, files)
    cold = folder.cold("-k", "test_1 or test_2", **changes)
    with folder.collected("-k", "test_1 or test_2") as template:
        forked = folder.forked(template, "-k", "test_1 or test_2", **changes)
    assert forked.comparable == cold.comparable
    assert "deselected" in [line["kind"] for line in forked.stream]


def test_plugins_of_other_packages_are_imported_anew_in_each_judge(tmp_path):
    folder = JudgeFolder(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    [site] = (folder.root / "tools/lib").glob("python*/site-packages")
    install_package(site, "pytest11", "other = other_package", "import time\nSEED = time.time()\n")
    with folder.imported() as template:
        assert template.answer["refused"].startswith("the plugin other-package may have read a clock")
    with folder.collected() as template:
        assert "other_package.py read the clock (time) before the first test" in template.answer["refused"]
