"""Stored results of real evaluations are consistent, however the evaluations ended."""

from pathlib import Path

import pytest
import yaml

from slop_code.errors import ResultError
from slop_code.evaluation import ProblemConfig
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify
from tests.marks import in_long

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTS = {
    "test_checkpoint_1.py": """
        import pytest
        def test_a(run): assert run("a").stdout == "a\\n"
        @pytest.mark.parametrize("word", ["b::c", "d[0]", "\\x1b[2J"])
        def test_words(run, word): assert run(word).stdout == word
    """,
    "test_checkpoint_2.py": """
        import pytest
        def test_first(): pass
        @pytest.mark.error
        @pytest.mark.xfail(reason="not yet")
        def test_expected(): assert False
        @pytest.mark.xfail
        def test_unexpected(): pass
        @pytest.fixture
        def broken(): raise ValueError("no luck")
        @pytest.mark.mine
        def test_error(broken): pass
    """,
}
KINDS = """
    import unittest
    import pytest
    @pytest.fixture
    def broken(): raise ValueError("no luck")
    @pytest.fixture
    def untidy():
        yield
        raise ValueError("no end")
    def test_failed(): assert 0
    def test_error(broken): pass
    def test_ends_badly(untidy): pass
    def test_failed_and_ends_badly(untidy): assert 0
    def test_skipped_and_ends_badly(untidy): pytest.skip("x")
    def test_error_twice(untidy, broken): pass
    @pytest.mark.xfail
    def test_xfailed_and_ends_badly(untidy): assert 0
    @pytest.mark.xfail
    def test_xpassed_and_ends_badly(untidy): pass
    @pytest.mark.xfail
    def test_xfailed_before(broken): pass
    @pytest.mark.xfail(strict=True)
    def test_xpassed_strictly(): pass
    @pytest.mark.xfail(condition=False, reason="no")
    def test_not_expected(): pass
    @pytest.mark.xfail("1 == 2", reason="no")
    def test_not_expected_in_words(): pass
    @pytest.mark.xfail(run=False)
    def test_not_run(): pass
    def test_expected_late(request): request.node.add_marker(pytest.mark.xfail(reason="q"))
    def test_xfails(): pytest.xfail("z")
    def test_parts(subtests):
        with subtests.test("a"): pass
        with subtests.test("b"): assert 0
    def test_skipped_part(subtests):
        with subtests.test("a"): pytest.skip("s")
    class TestUnits(unittest.TestCase):
        @classmethod
        def tearDownClass(cls): raise ValueError("k")
        def test_parts(self):
            for number in range(3):
                with self.subTest(number=number): self.assertEqual(number, 0)
        @unittest.expectedFailure
        def test_xpassed(self): pass
        def test_z_failed(self): self.fail()
    def test_leaves(): raise SystemExit(3)
"""
OWN = {"markers": {"mine": {"description": "", "group": "Functionality"}}}
SAYS = {"main.py": "import sys\nprint(*sys.argv[1:])\n"}


def findings(folder, results, problem):
    """Of a result as it was stored; how its pytest ended is always known."""
    results.save(folder / "evaluation.json")
    found = verify(folder, read_document(folder / "evaluation.json"), problem)
    assert found.unchecked == ["provenance.digests.submission: no snapshot beside the result"]
    return found.findings


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "checkpoint", "submission"),
    [
        ("larder", 3, "runs/drifting/larder/checkpoint_3/snapshot"),
        ("corkboard", 2, "problems/corkboard/solutions/checkpoint_1"),
        ("hitcount", 2, "problems/hitcount/solutions/checkpoint_1"),
    ],
)
def test_results_of_the_examples_are_verified(evaluate, tmp_path, name, checkpoint, submission):
    own = EXAMPLES / "problems" / name / "environment.yaml"
    keys = yaml.safe_load(own.read_text()) if own.exists() else {}
    problem = ProblemConfig.from_yaml(EXAMPLES / "problems" / name)
    results = evaluate(problem, EXAMPLES / submission, checkpoint, environment=keys, output_dir=tmp_path)
    assert {"passed", "failed"} <= {test.status for test in results.tests}
    assert findings(tmp_path, results, problem) == []


def test_every_way_a_test_can_end(make_problem, submission, evaluate, tmp_path):
    """However differently the reports' formats put it."""
    problem = make_problem({"test_checkpoint_1.py": KINDS})
    results = evaluate(problem, submission, 1, output_dir=tmp_path)
    assert {test.status for test in results.tests} == {"passed", "failed", "skipped", "error"}
    assert "failed, " in last_words(tmp_path)
    assert findings(tmp_path, results, problem) == []


def last_words(folder):
    return (folder / ".scbench" / "pytest.log").read_text().splitlines()[-1]


@pytest.fixture(scope="module")
def submission(make_submission):
    return make_submission(SAYS)


@pytest.fixture(scope="module")
def alone(make_problem):
    return make_problem(TESTS, config=OWN)


@pytest.fixture(scope="module")
def paired(make_problem):
    return make_problem(TESTS, config={**OWN, "parallel": 2})


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("alone", ["-k", "words"]),
        ("paired", ["-k", "words"]),
        *in_long(
            ("alone", []),
            ("alone", ["-k", "nothing_at_all"]),
            ("alone", ["-x"]),
            ("alone", ["test_checkpoint_1.py", "-l"]),
            ("paired", ["--group", "Core"]),
            ("paired", []),
        ),
    ],
)
def test_results_with_pytest_arguments_are_verified(request, submission, evaluate, tmp_path, kind, arguments):
    problem = request.getfixturevalue(kind)
    results = evaluate(problem, submission, 2, output_dir=tmp_path, pytest_args=arguments)
    assert (results.deselected > 0) == results.partial == (arguments not in ([], ["-x"]))
    assert findings(tmp_path, results, problem) == []


def test_results_without_a_sandbox_are_verified(alone, submission, evaluate, tmp_path):
    results = evaluate(alone, submission, 2, output_dir=tmp_path, sandbox="none")
    assert findings(tmp_path, results, alone) == []


ENDS = {
    "killed": "import os\ndef test_one(): pass\ndef test_ends(): os.kill(os.getpid(), 9)\ndef test_last(): pass\n",
    "leaves": "import os\ndef test_one(): assert False\ndef test_ends(): os._exit(0)\ndef test_last(): pass\n",
    "hangs": "import signal, threading\ndef test_one(): pass\n"
    "def test_ends():\n    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n    threading.Event().wait()\n",
    "stays": "import threading\ndef test_one(): threading.Thread(target=threading.Event().wait).start()\n",
    "exits": "import pytest\ndef test_one(): pytest.exit('enough')\ndef test_last(): pass\n",
    "refuses": "import os\nassert not os.path.exists('main.py'), 'a submission'\ndef test_one(): pass\n",
    "changes": "import os, pytest\n"
    "@pytest.mark.parametrize('word', ['a', 'b'] if os.path.exists('main.py') else ['a', 'c'])\n"
    "def test_one(word): pass\n",
}


@pytest.mark.parametrize(
    ("name", "pairs"),
    [("killed", 2), ("changes", 1), *in_long(*((name, 1) for name in ENDS if name != "changes"), ("refuses", 2))],
)
def test_what_came_to_no_verdict(make_problem, submission, evaluate, tmp_path, name, pairs):
    tests = {
        "test_checkpoint_1.py": "def test_a(): pass\ndef test_b(): assert False\n",
        "test_checkpoint_2.py": ENDS[name],
    }
    problem = make_problem(tests, config={"session_timeout": 3, "parallel": pairs})
    results = evaluate(problem, submission, 2, output_dir=tmp_path)
    assert results.infrastructure_failure
    assert findings(tmp_path, results, problem) == []


def test_where_pytest_never_ran(alone, submission, evaluate, tmp_path):
    environment = {"setup": {"commands": ["false"], "on_failure": "infrastructure"}}
    results = evaluate(alone, submission, output_dir=tmp_path, environment=environment)
    with pytest.raises(ResultError, match="pytest never ran: set-up: `false` exited with 1"):
        findings(tmp_path, results, alone)
