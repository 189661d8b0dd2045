"""Real pytest processes with the real report plugins, judged from what they leave behind."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest

from slop_code.evaluation.command import judge_sources
from slop_code.evaluation.evidence import Evidence
from slop_code.evaluation.grading import GradingRules, grade
from slop_code.evaluation.groups import QUARANTINED, GroupType
from slop_code.evaluation.infrastructure import infrastructure_failure
from slop_code.evaluation.judge import plugin, shown_files
from slop_code.evaluation.reports.stream import Stream, read_stream
from slop_code.evaluation.result_files.evidence_files import SHOWN
from slop_code.evaluation.roster import Roster
from slop_code.evaluation.staging import SETTINGS_VARIABLE
from tests.evidence_records import exit_of, roster_of

pytestmark = pytest.mark.e2e

ONE_CHECKPOINT = GradingRules.with_markers(["checkpoint_1"], "checkpoint_1", {})
SOURCE = Path(__file__).parents[1] / "data" / "reports" / "source"


@dataclass(frozen=True)
class JudgeResult:
    exit_code: int
    folder: Path
    log: str

    @property
    def evidence(self) -> Evidence:
        return self.of_roster(Roster(()))

    def of_roster(self, roster: Roster) -> Evidence:
        return Evidence(roster, exit_of(self.exit_code)).with_reports(self.folder)

    @property
    def stream(self) -> Stream:
        return read_stream(self.folder / "stream.jsonl")

    @property
    def statuses(self) -> dict[str, str]:
        return {test.nodeid.partition("::")[2]: test.status for test in self.evidence.tests}

    def failure(self, expected) -> str | None:
        return infrastructure_failure(self.of_roster(roster_of(*expected)))


class Judge:
    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.tests = self.workspace / ".evaluation_tests"
        self.tmpdir = root / "tmp"
        self.runs = 0
        self.root = root
        for folder in (self.tests, self.tmpdir, root / "path"):
            folder.mkdir(parents=True)
        for name, source in judge_sources().items():
            if "/" not in name:
                shutil.copy(source, root / "path" / name)

    def write(self, name: str, text: str) -> None:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def test(self, text: str, name: str = "test_checkpoint_1.py") -> None:
        self.write(f".evaluation_tests/{name}", text)

    def run(self, *args: str, rootdir: Path | None = None, configured: bool = True, **changes) -> JudgeResult:
        self.runs += 1
        out = self.root / f"out-{self.runs}"
        out.mkdir()
        settings = {
            "stream": str(out / "stream.jsonl"),
            "environment": {"PATH": os.environ["PATH"], "SEEN": "by the tests"},
            "tmpdir": str(self.tmpdir),
            "guard": [str(self.workspace), str(self.tmpdir)],
            "tests": str(self.tests),
            "test_folders": ["."],
            "in_process": False,
            **changes,
        }
        (out / "settings.json").write_text(json.dumps(settings))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.root / "path"), "HIDDEN": "1"}
        environment["PYTHONSAFEPATH"] = "1"
        if configured:
            environment[plugin.VARIABLE] = str(out / "settings.json")
        command = [
            *(sys.executable, "-m", "pytest", "-p", "slop_code_judge", "-p", "no:cacheprovider"),
            # The environment of the test tools has none of them; loading them takes half of the time.
            *(word for name in ("anyio", "hypothesispytest", "slop_code", "xdist") for word in ("-p", f"no:{name}")),
            *("-c", os.devnull, f"--rootdir={rootdir or self.tests}", f"--confcutdir={self.tests}"),
            *("-vv", "--timeout=60", f"--ctrf={out / 'ctrf-report.json'}"),
            *("--json-report", f"--json-report-file={out / 'pytest-report.json'}", *args, str(self.tests)),
        ]
        with (out / "pytest.log").open("wb") as log:
            done = subprocess.run(
                command, cwd=self.workspace, env=environment, stdout=log, stderr=log, check=False, timeout=600
            )
        return JudgeResult(done.returncode, out, (out / "pytest.log").read_text("utf-8", "replace"))


@pytest.fixture
def judge(tmp_path):
    return Judge(tmp_path)


def test_every_outcome_from_collection_to_grades(judge):
    for file in SOURCE.iterdir():
        shutil.copy(file, judge.tests)
    roster = Roster(judge.run("--collect-only").stream.collected)
    judged = judge.run()
    evidence = judged.evidence
    assert (judged.exit_code, evidence.source, evidence.faults) == (1, "json-report", ())
    assert judged.failure(roster.nodeids) is None
    stream = {test.nodeid: test.status for test in judged.stream.results.values()}
    assert stream == {test.nodeid: test.status for test in evidence.tests}
    (judged.folder / "pytest-report.json").unlink()
    assert judged.evidence.source == "ctrf"
    assert judged.failure(roster.nodeids) is None
    rules = GradingRules.with_markers(["checkpoint_1", "checkpoint_2"], "checkpoint_2", {"slow": GroupType.ERROR})
    results = grade([judged.of_roster(roster)], roster, rules).tests
    groups = {result.id: result.group_type for result in results}
    assert groups["test_old_error"] is GroupType.REGRESSION
    assert groups["TestGroup::test_each[nan]"] is GroupType.ERROR
    assert groups["TestGroup::test_custom"] is GroupType.ERROR
    assert groups["test_marked_regression"] is GroupType.REGRESSION
    assert groups["test_core"] is GroupType.CORE
    hostile = next(result for result in results if result.id == "test_hostile_output")
    assert "\\x1b[2J" in hostile.failure_message
    assert "\x1b" not in hostile.failure_message


PASSES = "def test_one(): pass\n"
EXITS = {
    "2-collection": (PASSES + "import not_there\n", (), 2, "No module named 'not_there'"),
    "2-syntax": ("def test_one(: pass\n", (), 2, "collection failed"),
    "2-interrupt": ("def test_one(): raise KeyboardInterrupt\n", (), 2, "interrupted"),
    "3": (PASSES, ("-p", "broken_plugin"), 3, "internal error"),
    "4": (PASSES, ("--no-such-option",), 4, "refused its arguments"),
    "5": (PASSES, ("-k", "nothing"), 5, "select none of the tests"),
    "0-left-early": (
        "import pytest\ndef test_one(): pytest.exit('done', returncode=0)\n",
        (),
        0,
        "its report has failures",
    ),
    "1-left-early": ("import os\ndef test_one(): os._exit(1)\n", (), 1, "no usable report"),
    "7": ("import os\ndef test_one(): os._exit(7)\n", (), 7, "none of its exit codes"),
}


@pytest.mark.parametrize(("text", "args", "exit_code", "words"), EXITS.values(), ids=EXITS)
def test_exit_codes_of_pytest_become_reasons(judge, text, args, exit_code, words):
    judge.test(text)
    (judge.root / "path" / "broken_plugin.py").write_text(
        "def pytest_runtest_protocol(item): raise RuntimeError('broken')\n"
    )
    judged = judge.run(*args)
    reason = judged.failure(["test_checkpoint_1.py::test_one"])
    assert judged.exit_code == exit_code
    assert reason is not None
    assert words in reason


def test_without_settings_nothing_runs(judge):
    judge.test(PASSES)
    judged = judge.run(configured=False)
    assert judged.exit_code == 4
    assert plugin.VARIABLE in judged.log


def test_a_kill_leaves_what_came_before(judge):
    judge.test(
        """
        import os
        def test_one(): pass
        def test_two(): os.kill(os.getpid(), 9)
        def test_three(): pass
        """
    )
    roster = roster_of(*(f"test_checkpoint_1.py::test_{name}" for name in ("one", "two", "three")))
    judged = judge.run()
    assert judged.exit_code == -9
    assert "SIGKILL" in (judged.failure(roster.nodeids) or "")
    assert (judged.evidence.source, judged.statuses) == ("stream", {"test_one": "passed"})
    results = grade([judged.of_roster(roster)], roster, ONE_CHECKPOINT).tests
    killed = "pytest was killed by signal 9 (SIGKILL), while running test_checkpoint_1.py::test_two"
    assert [(result.status, result.failure_message) for result in results] == [
        ("passed", None),
        ("error", f"{killed} (this test was running)"),
        ("error", killed),
    ]


def test_roster_markers_and_deselection(judge):
    judge.test(
        """
        import pytest
        pytestmark = [pytest.mark.far, pytest.mark.both]
        @pytest.mark.near
        class TestX:
            @pytest.mark.both
            @pytest.mark.parametrize("p", ["a", "b/c.py::d"])
            def test_y(self, p): pass
        def test_z(): pass
        """,
        name="sub/test_checkpoint_1.py",
    )
    stream = judge.run("--collect-only", "-k", "test_y").stream
    markers = ("parametrize", "both", "near", "far")
    assert [(entry.nodeid, entry.markers) for entry in stream.collected] == [
        ("sub/test_checkpoint_1.py::TestX::test_y[a]", markers),
        ("sub/test_checkpoint_1.py::TestX::test_y[b/c.py::d]", markers),
    ]
    assert stream.deselected == {"sub/test_checkpoint_1.py::test_z"}
    assert (stream.results, stream.faults) == ({}, [])


def test_a_rootdir_above_the_tests_gives_the_same_names(judge):
    judge.test("import pytest\n@pytest.mark.parametrize('p', ['a::b'])\ndef test_one(p): pass\n")
    judged = judge.run(rootdir=judge.workspace)
    names = {"test_checkpoint_1.py::test_one[a::b]"}
    assert {entry.nodeid for entry in judged.stream.collected} == names
    assert judged.failure(names) is None
    (judged.folder / "pytest-report.json").unlink()
    assert judged.failure(names) is None


TOGETHER = {
    "test_environment.py": """
        import os, subprocess, tempfile
        def test_environment(tmp_path):
            seen = subprocess.run(["env"], capture_output=True, text=True).stdout
            assert os.environ["SEEN"] == "by the tests"
            for name in ("HIDDEN", "PYTHONPATH", "SLOP_CODE_JUDGE"):
                assert name not in os.environ
                assert name + "=" not in seen
            folder = os.environ["TMPDIR"]
            assert tempfile.gettempdir() == folder
            assert str(tmp_path).startswith(folder)
        """,
    "test_parts.py": """
        import pytest, unittest
        class TestParts(unittest.TestCase):
            def test_first_fails(self):
                for number in range(3):
                    with self.subTest(number=number):
                        self.assertGreater(number, 0)
            def test_all_pass(self):
                for number in range(3):
                    with self.subTest(number=number):
                        pass
        def test_skips_last(subtests):
            with subtests.test("wrong"):
                assert False
            with subtests.test("skipped"):
                pytest.skip("not here")
        """,
    "test_floods.py": """
        import os, re
        from pathlib import Path
        def test_floods():
            os.write(1, b"HEAD")
            os.ftruncate(1, 1 << 30)
            os.lseek(1, 0, os.SEEK_END)
            os.write(1, b"TAIL")
            assert False
        def test_memory():
            # not getrusage's: that begins with what the process that started this one had
            peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
            assert int(peak[1]) < 300_000
        """,
    "test_captured.py": """
        import os
        def test_capfd(capfd):
            os.write(1, b"x" * 1_000_000)
            assert capfd.readouterr().out == "x" * 1_000_000
            os.write(2, bytes([0xff]))
            assert capfd.readouterr() == ("", chr(0xfffd))
        def test_capfdbinary(capfdbinary):
            os.write(1, bytes([0xff, 0]) * 300_000)
            assert capfdbinary.readouterr().out == bytes([0xff, 0]) * 300_000
        """,
}


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """One run of files that have nothing to do with each other."""
    judge = Judge(tmp_path_factory.mktemp("together"))
    for name, text in TOGETHER.items():
        judge.test(text, name)
    return judge.run()


def statuses_of(judged, file):
    return {
        test.nodeid.partition("::")[2]: test.status for test in judged.evidence.tests if test.nodeid.startswith(file)
    }


def test_environment_and_temporary_folder(together):
    assert statuses_of(together, "test_environment.py") == {"test_environment": "passed"}, together.log


def test_parts_that_pass_do_not_cover_a_part_that_failed(together, tmp_path):
    expected = {
        "TestParts::test_first_fails": "failed",
        "TestParts::test_all_pass": "passed",
        "test_skips_last": "failed",
    }
    judged = replace(together, folder=shutil.copytree(together.folder, tmp_path / "reports"))
    assert statuses_of(judged, "test_parts.py") == expected
    for name in ("pytest-report.json", "ctrf-report.json"):
        (judged.folder / name).unlink()
        assert statuses_of(judged, "test_parts.py") == expected


def test_a_gigabyte_of_output_stays_out_of_memory(together):
    assert statuses_of(together, "test_floods.py") == {"test_floods": "failed", "test_memory": "passed"}
    assert "HEAD" in together.log
    assert "TAIL" in together.log
    assert "bytes left out" in together.log
    assert sum(file.stat().st_size for file in together.folder.iterdir()) < 2_000_000


def test_a_fixture_gets_all_of_a_long_output(together):
    assert statuses_of(together, "test_captured.py") == {"test_capfd": "passed", "test_capfdbinary": "passed"}


def test_long_failures_are_bounded_in_every_report(judge):
    judge.test(
        """
        import logging, pytest
        @pytest.mark.parametrize("n", range(60))
        def test_long(n):
            print("z" * 200_000)
            logging.warning("y" * 300_000)
            raise AssertionError("HEAD" + chr(27) * 1_000_000 + "TAIL")
        def test_skip():
            pytest.skip("s" * 1_000_000)
        """
    )
    judged = judge.run("--tb=short")
    assert judged.evidence.source == "json-report"
    assert set(judged.statuses.values()) == {"failed", "skipped"}
    for test in (judged.evidence.tests[0], next(iter(judged.stream.results.values()))):
        assert "left out" in test.message
        assert test.message.endswith("TAIL")
        assert len(test.message) < 70_000
    for name in ("pytest-report.json", "ctrf-report.json", "stream.jsonl"):
        assert (judged.folder / name).stat().st_size < 48 << 20


INTO_THE_JUDGE = {
    "import": "sys.path.insert(0, WORKSPACE); import main",
    "package": "sys.path.insert(0, WORKSPACE); import package.inner",
    "relative": "sys.path.insert(0, ''); import main",
    "linked": "sys.path.insert(0, WORKSPACE); import linked",
    "outside_link": "sys.path.insert(0, OUTSIDE); import pointer",
    "forged_bytecode": "sys.path.insert(0, WORKSPACE); import forged",
    "spec": "s = util.spec_from_file_location('m', MAIN); s.loader.exec_module(util.module_from_spec(s))",
    "run_path": "runpy.run_path(MAIN)",
    "exec": "exec(compile(open(MAIN).read(), MAIN, 'exec'))",
    "exec_relative": "exec(compile(open('main.py').read(), 'main.py', 'exec'))",
    "extension": "util.module_from_spec(util.spec_from_file_location('ext', EXTENSION))",
    "dlopen": "ctypes.CDLL(EXTENSION)",
}


def test_the_submission_is_kept_out_of_the_judge(judge):
    outside = judge.root / "outside"
    outside.mkdir()
    main = judge.workspace / "main.py"
    main.write_text("print('ran in', 'the judge')\n")
    judge.write("package/__init__.py", "")
    judge.write("package/inner.py", main.read_text())
    judge.write("ext.so", "no library")
    judge.test(main.read_text(), name="helper.py")
    (judge.workspace / "linked.py").symlink_to(judge.tests / "helper.py")
    (outside / "pointer.py").symlink_to(main)
    forged = judge.workspace / "forged.pyc"
    py_compile.compile(str(main), str(forged), dfile=str(judge.tests / "helper.py"))
    head = f"""
        import ctypes, pytest, runpy, sys
        from importlib import util
        OUTSIDE, WORKSPACE, MAIN = {str(outside)!r}, {str(judge.workspace)!r}, {str(main)!r}
        EXTENSION = WORKSPACE + "/ext.so"
        @pytest.fixture(autouse=True)
        def same_path(monkeypatch):
            monkeypatch.setattr(sys, "path", sys.path[:])
        """
    tests = [f"def test_{name}():\n    {code}\n" for name, code in INTO_THE_JUDGE.items()]
    judge.write(".evaluation_tests/test_checkpoint_1.py", dedent(head) + "".join(tests))
    judged = judge.run()
    assert judged.statuses == {f"test_{name}": "failed" for name in INTO_THE_JUDGE}
    assert "ran in the judge" not in judged.log
    for test in judged.evidence.tests:
        assert "into the judge's process" in test.message, test.nodeid
        assert "set in_process: true in the problem's config.yaml" in test.message


def test_in_process_problems_may_import_the_submission(judge):
    judge.write("main.py", "ANSWER = 42\n")
    judge.test("import sys\nsys.path.insert(0, '')\nimport main\ndef test_one(): assert main.ANSWER == 42\n")
    assert judge.run().exit_code == 2
    assert judge.run(in_process=True).exit_code == 0


def test_what_the_judge_needs_keeps_working(judge):
    for name in ("__init__.py", "conftest.py", "pytest.py", "json.py", "test_planted.py"):
        judge.write(name, "raise SystemExit('planted')\n")
    judge.test("", name="__init__.py")
    judge.test("VALUE = 1\n", name="helper.py")
    judge.test("import pytest\n@pytest.fixture\ndef one(): return 1\n", name="conftest.py")
    judge.test(
        """
        import collections, dataclasses, json, subprocess, sys
        from pathlib import Path
        sys.path.insert(0, str(Path(__file__).parent))
        import helper
        @dataclasses.dataclass
        class Data:
            value: int
        def test_one(one):
            point = collections.namedtuple("Point", "x y")(1, 2)
            assert Data(helper.VALUE).value == one == eval("point.x", {"point": point})
            exec(compile("x = 1", "generated", "exec"))
        def test_black_box():
            done = subprocess.run([sys.executable, "-I", "-c", "print(7)"], capture_output=True, text=True)
            assert done.stdout == "7" + chr(10)
        """
    )
    judged = judge.run()
    assert judged.statuses == {"test_one": "passed", "test_black_box": "passed"}, judged.log


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "ab\n[... 2 characters left out ...]\nef"),
        ("", 0, ""),
    ],
)
def test_a_bounded_text_keeps_its_head_and_tail(text, limit, expected):
    assert plugin.bounded(text, limit) == expected


ONLY = ["sub/test_checkpoint_2.py::test_c", "test_checkpoint_1.py::TestX::test_b[é::1]", "test_checkpoint_1.py::test_a"]
OTHERS = ["sub/test_checkpoint_2.py::test_d", "test_checkpoint_1.py::TestX::test_b[2]"]
UNESCAPED = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"


def write_shared(judge):
    judge.test(
        """
        import pytest

        def test_a(): pass

        class TestX:
            @pytest.mark.parametrize("number", [1, 2], ids=["é::1", "2"])
            def test_b(self, number): assert number == 1
        """
    )
    judge.test("def test_c(): pass\ndef test_d(): pass\n", "sub/test_checkpoint_2.py")
    judge.test(
        """
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(items, config):
            assert len(items) == 5 or config.option.keyword
            items.reverse()
        """,
        "conftest.py",
    )


def test_only_its_own_tests_run_in_the_order_that_all_would(judge):
    write_shared(judge)
    everything = judge.run("-o", UNESCAPED)
    order = [entry.nodeid for entry in everything.stream.collected]
    assert sorted(order) == sorted([*ONLY, *OTHERS])
    assert everything.exit_code == 1
    for rootdir in (None, judge.workspace):
        judged = judge.run("-o", UNESCAPED, rootdir=rootdir, only=ONLY)
        assert [test.nodeid for test in judged.evidence.tests] == [nodeid for nodeid in order if nodeid in ONLY]
        assert judged.stream.deselected == frozenset()
        assert (judged.exit_code, judged.failure(ONLY)) == (0, None)


def test_what_arguments_leave_out_is_what_it_would_be_for_all(judge):
    write_shared(judge)
    mine, rest = ["sub/test_checkpoint_2.py::test_d"], ["test_checkpoint_1.py::test_a"]
    chosen, emptied = judge.run("-k", "test_d", only=mine), judge.run("-k", "test_d", only=rest)
    assert (chosen.exit_code, emptied.exit_code) == (0, 5)
    assert chosen.failure(mine) is None
    everything = judge.run("-k", "test_d")
    assert chosen.stream.deselected == emptied.stream.deselected == everything.stream.deselected
    assert len(everything.stream.deselected) == 4


def test_a_seed_decides_the_order_and_the_chance(judge):
    judge.test(
        """
        import random

        def test_a(): assert 0, f"drew {random.random()}"
        def test_b(): pass
        def test_c(): pass

        class TestStory:
            def test_first(self): pass
            def test_then(self): pass
        """
    )
    judge.test("def test_d(): pass\ndef test_e(): pass\n", "test_checkpoint_2.py")
    runs = [judge.run(seed=seed) for seed in (7, 7, 8, 0)]
    orders = [[test.nodeid for test in run.evidence.tests] for run in runs]
    drawn = [test.message for run in runs for test in run.evidence.tests if test.nodeid.endswith("test_a")]
    assert orders[0] == orders[1]
    assert drawn[0] == drawn[1]
    assert len({tuple(order) for order in orders}) > 1
    assert len(set(drawn)) == 3
    for order in orders:
        assert len(order) == 7
        files = [nodeid.partition("::")[0] for nodeid in order]
        assert files == sorted(files, key=files.index)
        story = order.index("test_checkpoint_1.py::TestStory::test_first")
        assert order[story + 1] == "test_checkpoint_1.py::TestStory::test_then"
    in_reverse = ["test_e", "test_d", "TestStory::test_first", "TestStory::test_then", "test_c", "test_b", "test_a"]
    assert [nodeid.partition("::")[2] for nodeid in orders[3]] == in_reverse


def test_a_test_under_quarantine_is_marked(judge):
    judge.test("import pytest\n\n@pytest.mark.error\ndef test_a(): pass\n\ndef test_b(): pass\n")
    judged = judge.run("--strict-markers", "-o", "markers=error", quarantined=["test_checkpoint_1.py::test_a"])
    assert judged.exit_code == 0
    assert [entry.markers for entry in judged.stream.collected] == [("quarantined", "error"), ()]


def test_no_test_puts_itself_under_quarantine(judge):
    judge.test(
        """
        import pytest

        @pytest.mark.quarantined
        @pytest.mark.error
        def test_a(): pass

        @pytest.mark.quarantined
        class TestStory:
            def test_b(self): pass
        """
    )
    judge.test("def pytest_collection_modifyitems(items): items[1].add_marker('quarantined')\n", "conftest.py")
    judged = judge.run(quarantined=["test_checkpoint_1.py::test_a"])
    assert [entry.markers for entry in judged.stream.collected] == [("quarantined", "error"), ()]


def test_what_the_judge_cannot_import_it_calls_by_the_same_names():
    assert (plugin.QUARANTINED, plugin.VARIABLE) == (QUARANTINED, SETTINGS_VARIABLE)
    assert shown_files.FILE == SHOWN


def test_what_a_failed_test_ran_and_printed(judge):
    judge.test(
        """
        import subprocess, sys

        def call(*words):
            subprocess.run(["/box/launch", *words], check=False, executable="/bin/true")

        def test_fails():
            call("main.py", "add", "two words")
            subprocess.run("true && true", shell=True)
            print("said", chr(27), "<b>")
            print("beside", file=sys.stderr)
            assert 0

        def test_passes():
            call("main.py", "list")
            print("nothing of this")

        def test_fails_by_itself():
            assert 0

        def test_many():
            for number in range(30):
                call("x" * 5000, str(number))
            assert 0
        """
    )
    judged = judge.run(launcher="launch", command=["python"])
    found = {test.nodeid.partition("::")[2]: test for test in judged.evidence.tests}
    assert judged.evidence.source == "json-report"
    assert found["test_fails"].calls == ("python main.py add 'two words'", "/bin/sh -c 'true && true'")
    assert found["test_fails"].output == (
        "--- Captured stdout call ---\nsaid \x1b <b>\n--- Captured stderr call ---\nbeside\n"
    )
    assert (found["test_passes"].calls, found["test_passes"].output) == ((), None)
    assert (found["test_fails_by_itself"].calls, found["test_fails_by_itself"].output) == ((), None)
    many = found["test_many"].calls
    assert (len(many), many[-1]) == (plugin.MAX_CALLS + 1, "[... 10 more]")
    assert all(len(call) < plugin.CALL_LIMIT + 100 for call in many)
    roster = roster_of(*(test.nodeid for test in judged.evidence.tests))
    graded = {test.id: test for test in grade([judged.of_roster(roster)], roster, ONE_CHECKPOINT).tests}
    assert graded["test_fails"].calls == ["python main.py add 'two words'", "/bin/sh -c 'true && true'"]
    assert graded["test_fails"].output.splitlines()[1] == "said \\x1b <b>"
    assert (graded["test_passes"].calls, graded["test_passes"].output) == ([], None)


@pytest.mark.long
def test_thousands_of_tests_and_texts_that_grow_when_they_are_written(judge):
    judge.test(
        """
        import pytest

        @pytest.mark.parametrize("word", [f"{number}-" + "x" * 100 for number in range(6000)])
        def test_many(word): pass

        def test_loud():
            print("\U0001f600" * 20000)
            pytest.fail("\U0001f600" * 100000)
        """
    )
    collected = judge.run("--collect-only").stream
    assert (len(collected.collected), collected.faults) == (6001, [])
    judged = judge.run("-k", "loud")
    assert judged.stream.faults == []
    assert len(judged.stream.deselected) == 6000
    (test,) = judged.evidence.tests
    assert "\U0001f600" in test.output


def test_files_that_pytest_loaded_are_in_the_stream(judge):
    judge.test("import helper\n\n\ndef test_a():\n    import later\n")
    for name in ("conftest.py", "helper.py", "later.py", "data/project.py", "data/test_project.py", "deep/conftest.py"):
        judge.test("", name)
    judge.test("def test_b(): ...", "deep/test_checkpoint_1_b.py")
    options = ("--collect-only", "-o", "python_files=test_checkpoint_1*.py")
    stream = judge.run(*options, test_folders=[".", "deep"]).stream
    tests = ("test_checkpoint_1.py", "deep/test_checkpoint_1_b.py")
    assert stream.loaded == tuple(sorted(("conftest.py", "helper.py", "deep/conftest.py", *tests)))
    assert "." in stream.import_roots


def test_a_conftest_in_a_folder_without_tests_is_data(judge):
    judge.test("def test_a(): ...")
    for name in ("data/conftest.py", "data/project/tests/conftest.py"):
        judge.test("import no_such_module\n", name)
    judge.test("def test_b(): ...", "data/project/tests/test_b.py")
    judged = judge.run("--collect-only", "-o", "python_files=test_checkpoint_1.py")
    assert (judged.exit_code, judged.stream.loaded) == (0, ("test_checkpoint_1.py",))
