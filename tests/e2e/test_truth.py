"""Every outcome of a test and every end of pytest, with the result that has to follow."""

import re

import pytest

from tests.conftest import PROBLEM_CONFTEST
from tests.factories import statuses_by_id
from tests.marks import in_long

pytestmark = pytest.mark.e2e

EVERY_OUTCOME = """
    import pytest

    @pytest.fixture
    def broken():
        raise RuntimeError("no set-up")

    @pytest.fixture
    def untidy():
        yield
        raise RuntimeError("no tear-down")

    def test_passes(): pass
    def test_fails(): assert 1 == 2
    def test_skips(): pytest.skip("not today")
    @pytest.mark.skip(reason="not today")
    def test_marked_skip(): pass
    @pytest.mark.skipif("True", reason="not here")
    def test_skipif(): pass
    @pytest.mark.xfail
    def test_xfails(): assert False
    @pytest.mark.xfail
    def test_xpasses(): pass
    @pytest.mark.xfail(strict=True)
    def test_strict_xpasses(): pass
    @pytest.mark.xfail(raises=ValueError)
    def test_xfails_otherwise(): raise KeyError
    def test_setup_error(broken): pass
    def test_teardown_error(untidy): pass
    def test_fails_and_teardown_error(untidy): assert False
    def test_exits(): raise SystemExit(0)
    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_even(n): assert n % 2 == 0
    @pytest.mark.parametrize("text", ["a::b", "c/d", "", "ü", "x y", "[z]"])
    def test_odd_ids(text): pass
    class TestClass:
        class TestInner:
            def test_method(self): pass
        def test_method(self): assert False
    def test_warns():
        import warnings
        warnings.warn("careful")
    async def test_async(): pass
"""
OUTCOMES = {
    "test_passes": "passed",
    "test_fails": "failed",
    "test_skips": "skipped",
    "test_marked_skip": "skipped",
    "test_skipif": "skipped",
    "test_xfails": "skipped",
    "test_xpasses": "failed",
    "test_strict_xpasses": "failed",
    "test_xfails_otherwise": "failed",
    "test_setup_error": "error",
    "test_teardown_error": "error",
    "test_fails_and_teardown_error": "error",
    "test_exits": "failed",
    "test_even[1]": "failed",
    "test_even[2]": "passed",
    "test_even[3]": "failed",
    "test_odd_ids[a::b]": "passed",
    "test_odd_ids[c/d]": "passed",
    "test_odd_ids[]": "passed",
    "test_odd_ids[\\xfc]": "passed",
    "test_odd_ids[x y]": "passed",
    "test_odd_ids[[z]]": "passed",
    "TestClass::TestInner::test_method": "passed",
    "TestClass::test_method": "failed",
    "test_warns": "passed",
    "test_async": "failed",
}


@pytest.fixture(scope="module")
def empty(make_submission):
    return make_submission({})


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
def test_every_outcome_of_pytest_has_its_status(make_problem, evaluate, empty, sandbox):
    results = evaluate(make_problem({"test_checkpoint_1.py": EVERY_OUTCOME}), empty, sandbox=sandbox)
    assert results.infrastructure_failure_reason is None
    assert results.pytest_exit_code == 1
    assert statuses_by_id(results) == OUTCOMES
    messages = {test.id: test.failure_message for test in results.tests}
    assert "assert 1 == 2" in messages["test_fails"]
    assert "no set-up" in messages["test_setup_error"]
    assert "no tear-down" in messages["test_teardown_error"]
    assert messages["test_skips"] == "not today"
    assert messages["test_passes"] is None


def test_groups_come_from_markers_and_files(make_problem, evaluate, empty):
    tests = {
        "test_checkpoint_1.py": """
            import pytest
            def test_old(): pass
            @pytest.mark.error
            def test_old_error(): assert False
        """,
        "test_checkpoint_2.py": """
            import pytest
            def test_new(): pass
            @pytest.mark.functionality
            def test_extra(): pass
            @pytest.mark.functionality
            @pytest.mark.error
            def test_error(): pass
            @pytest.mark.regression
            def test_again(): pass
            @pytest.mark.slow
            def test_slow(): pass
        """,
    }
    results = evaluate(make_problem(tests, config={"markers": {"slow": {"group": "Functionality"}}}), empty, 2)
    assert {test.id: test.group_type.value for test in results.tests} == {
        "test_old": "Regression",
        "test_old_error": "Regression",
        "test_new": "Core",
        "test_extra": "Functionality",
        "test_error": "Error",
        "test_again": "Regression",
        "test_slow": "Functionality",
    }
    assert results.passed["all-core-cases"]
    assert not results.passed["all-cases"]


HOOKS = """
    import os
    import pytest

    def pytest_addoption(parser):
        parser.addoption("--entrypoint")
        parser.addoption("--checkpoint")

"""
TWO = """
    def test_one(): pass
    def test_two(): pass
"""


def hook(text):
    return {"conftest.py": HOOKS + text, "test_checkpoint_1.py": TWO}


def current(text):
    return {"test_checkpoint_1.py": text}


ENDS = {
    "passed": (current(TWO), (), 0, None, {"test_one": "passed", "test_two": "passed"}),
    "failed": (
        current("def test_one(): pass\ndef test_two(): assert False\n"),
        (),
        1,
        None,
        {"test_one": "passed", "test_two": "failed"},
    ),
    "all deselected": (current(TWO), ("-k", "nothing"), 5, "select none of the tests", {}),
    "stopped at the first failure": (
        current("def test_one(): assert False\ndef test_two(): pass\n"),
        ("-x",),
        1,
        "1 of 2 tests left no result",
        {"test_one": "failed", "test_two": "error"},
    ),
    "bad argument": (current(TWO), ("--tb=no-such-style",), 4, "refused its arguments", {"test_one": "error"}),
    "no test is run": (
        {**current(TWO), "conftest.py": f"{PROBLEM_CONFTEST}\n\ndef pytest_runtestloop():\n    return True\n"},
        (),
        0,
        "left no result",
        {"test_one": "error"},
    ),
    "pytest.exit": (
        current("import pytest\ndef test_one(): pass\ndef test_two(): pytest.exit('enough')\ndef test_three(): pass\n"),
        (),
        2,
        "interrupted",
        {"test_one": "passed", "test_two": "error", "test_three": "error"},
    ),
    "pytest.exit as if all was well": (
        current("import pytest\ndef test_one(): pass\ndef test_two(): pytest.exit('enough', returncode=0)\n"),
        (),
        0,
        "ended with 0 while its report has failures",
        {"test_one": "passed", "test_two": "error"},
    ),
    "os._exit in a test": (
        current("import os\ndef test_one(): pass\ndef test_two(): os._exit(0)\n"),
        (),
        0,
        "no usable report",
        {"test_one": "passed", "test_two": "error"},
    ),
    "os._exit in conftest": (hook("    os._exit(77)\n"), (), 77, "77", {}),
    "os._exit at the end": (
        hook("    def pytest_sessionfinish(): os._exit(77)\n"),
        (),
        77,
        "77",
        {},
    ),
    "os._exit when a test starts": (
        hook("    def pytest_runtest_setup(item):\n        if item.name == 'test_two': os._exit(77)\n"),
        (),
        77,
        "77",
        {"test_one": "passed", "test_two": "error"},
    ),
    "internal error": (
        hook("    def pytest_runtest_logreport(): raise RuntimeError('broken hook')\n"),
        (),
        3,
        "internal error",
        {"test_one": "error", "test_two": "error"},
    ),
    "an exit status that lies": (
        hook("    def pytest_sessionfinish(session): session.exitstatus = 0\n")
        | current("def test_one(): pass\ndef test_two(): assert False\n"),
        (),
        0,
        "",
        {"test_two": "failed"},
    ),
    "syntax error": (current("def test_one(:\n"), (), 2, "test_checkpoint_1.py.*SyntaxError", {}),
    "import error": (current("import no_such_module\n"), (), 2, "no_such_module", {}),
    "import error in conftest": (hook("    import no_such_module\n"), (), 4, "no_such_module", {}),
    "import error in an earlier file": (
        {"test_checkpoint_0.py": "import no_such_module\n", **current(TWO)},
        (),
        2,
        "test_checkpoint_0.py.*no_such_module",
        {},
    ),
    "no tests in the file": (current("X = 1\n"), (), 5, "no tests", {}),
    "ids by chance": (
        current("import pytest, uuid\n@pytest.mark.parametrize('x', [uuid.uuid4().hex])\ndef test_one(x): pass\n"),
        (),
        0,
        "not among the tests",
        {},
    ),
}


@pytest.fixture(scope="module")
def problem_of(make_problem):
    """One for each folder of tests, which several of the ends share."""
    made = {}

    def find(tests):
        key = tuple(tests.items())
        return made.get(key) or made.setdefault(key, make_problem(tests))

    return find


def test_a_part_of_the_tests_is_no_verdict(problem_of, evaluate, empty):
    results = evaluate(problem_of(current(TWO)), empty, pytest_args=("-k", "one"))
    assert (results.pytest_exit_code, results.infrastructure_failure_reason, results.deselected) == (0, None, 1)
    assert statuses_by_id(results) == {"test_one": "passed"}
    assert not any(results.passed.values())


NEAR_COPIES = ["os._exit at the end", "os._exit when a test starts", "import error in an earlier file"]


@pytest.mark.parametrize("name", [*(name for name in ENDS if name not in NEAR_COPIES), *in_long(*NEAR_COPIES)])
def test_every_end_of_pytest_has_its_verdict(problem_of, evaluate, empty, name):
    tests, arguments, exit_code, reason, expected = ENDS[name]
    results = evaluate(problem_of(tests), empty, "checkpoint_1", pytest_args=arguments)
    assert results.pytest_exit_code == exit_code
    assert expected.items() <= statuses_by_id(results).items()
    if reason is None:
        assert results.infrastructure_failure_reason is None
        assert statuses_by_id(results) == expected
    else:
        assert re.search(reason, results.infrastructure_failure_reason or "", re.DOTALL)
        assert not any(results.passed.values())
