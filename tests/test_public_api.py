"""The names and signatures that others build on."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import slop_code
import slop_code.evaluation as evaluation
import slop_code.execution as execution
from slop_code.errors import SlopCodeError, UsageError
from slop_code.evaluation import (
    CorrectnessResults,
    GroupType,
    MarkerConfig,
    PassPolicy,
    ProblemConfig,
    PytestRunner,
    TestResult,
)
from slop_code.evaluation.pytest_runner import BUILTIN_MARKERS, run_checkpoint_pytest
from tests.docs.pages import DOCS, PAGES, ROOT, section, table_rows

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PUBLIC_MODULES = {
    "slop_code", "slop_code.bridges.inspect", "slop_code.bridges.verifiers", "slop_code.evaluation",
    "slop_code.execution",
}  # fmt: skip
TESTS = {
    "test_checkpoint_1.py": """
    def test_old(run):
        assert run().stdout == "hello\\n"
    """,
    "test_checkpoint_2.py": """
    import pytest

    def test_new(run):
        assert run().returncode == 0

    @pytest.mark.slow
    def test_slow(run):
        assert run("x").returncode == 0
    """,
}
CONFIG = {
    "markers": {"slow": {"description": "takes a while", "group": "Functionality"}},
    "test_dependencies": ["pyyaml"],
    "timeout": 17,
}


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem(TESTS, config=CONFIG)


@pytest.fixture(scope="module")
def submission(make_submission):
    return make_submission({"main.py": "print('hello')\n"})


@pytest.fixture
def runner(problem, environment_spec, submission, cache) -> PytestRunner:
    environment = environment_spec(sandbox="none")
    checkpoint = problem.checkpoints["checkpoint_2"]
    return PytestRunner(
        problem=problem, checkpoint=checkpoint, environment=environment, submission_path=submission, cache=cache
    )


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (slop_code, "CheckpointConfig CheckpointFacts CheckpointLine ConfigError CorrectnessResults EnvironmentSpec "
                    "EvaluationCancelledError EvaluatorOutcome EvaluatorRequest Evaluator "
                    "GroupType InfrastructureError PassPolicy Policy ProblemConfig ResultError Retries RunControl "
                    "RunResults RunSummary Shard SlopCodeError StoredCheckpoint Submission SubmissionError "
                    "SubmissionOutcome TestResult UsageError __version__ evaluate evaluate_async evaluate_run "
                    "evaluate_run_async load_environment load_problem load_results parse_policy read_lines read_runs"),
        (evaluation, "PytestRunner run_checkpoint_pytest ProblemConfig CheckpointConfig MarkerConfig GroupType "
                     "PassPolicy TestResult CorrectnessResults ConfigError"),
        (execution, "Session EnvironmentSpec"),
    ],
    ids=["slop_code", "evaluation", "execution"],
)  # fmt: skip
def test_public_names_are_those_listed(module, names):
    assert set(module.__all__) == set(names.split())
    assert all(hasattr(module, name) for name in names.split())


def test_other_names_of_the_package_are_not_found():
    assert dir(slop_code) == slop_code.__all__
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = slop_code.no_such_name  # type: ignore[attr-defined]


def test_the_reference_lists_and_describes_exactly_the_exported_names():
    page = (DOCS / "reference/python.md").read_text(encoding="utf-8")
    listed = section("python.md", "Names")
    assert list(table_rows(listed)) == slop_code.__all__
    described = page.replace(listed, "")
    undescribed = {name for name in slop_code.__all__ if not re.search(rf"`{name}\b|^#+ .*\b{name}\b", described, re.M)}
    assert undescribed == {"__version__"}


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_documentation_imports_public_names_only(path):
    """Names of a module that is private may change at any time."""
    imports = re.findall(r"^ *(?:from|import) (slop_code[\w.]*)", path.read_text(encoding="utf-8"), re.M)
    assert {module for module in imports if module not in PUBLIC_MODULES} == set()


@pytest.mark.e2e
def test_importing_the_package_loads_no_layer():
    code = "import sys, slop_code; print([name for name in sys.modules if name.startswith(('slop_code.', 'pydantic'))])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['slop_code._lazy_names', 'slop_code._version']"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("pytest_runner", "PytestRunner"),
        ("report", "TestResult"),
        ("report", "CorrectnessResults"),
        ("config", "ProblemConfig"),
        ("config", "CheckpointConfig"),
        ("config", "MarkerConfig"),
        ("config", "ConfigError"),
    ],
)
def test_names_are_also_in_their_modules(module, name):
    home = importlib.import_module(f"slop_code.evaluation.{module}")
    assert getattr(home, name) is getattr(evaluation, name)


def parameters(function: Callable[..., object]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (PytestRunner.__init__, ["problem", "checkpoint", "environment", "submission_path"]),
        (PytestRunner.run, ["pytest_args"]),
        (run_checkpoint_pytest, ["submission_path", "problem", "checkpoint", "env_spec", "pytest_args"]),
        (PytestRunner._determine_group_type, ["test_checkpoint", "markers", "current_checkpoint"]),
        (PytestRunner._get_test_files, ["checkpoint_name", "include_prior_tests"]),
        (PytestRunner._copy_tests_from_problem, []),
        (PytestRunner._generate_pytest_ini, []),
        (PytestRunner._build_pytest_command, []),
        (PytestRunner._parse_ctrf_report, []),
        (ProblemConfig.from_yaml, ["problem_dir"]),
        (ProblemConfig.iterate_checkpoint_items, []),
    ],
)
def test_functions_begin_with_the_published_parameters(function, first):
    assert parameters(function)[: len(first)] == first


@pytest.mark.parametrize(
    ("function", "asynchronous"),
    [
        (slop_code.evaluate, slop_code.evaluate_async),
        (slop_code.evaluate_run, slop_code.evaluate_run_async),
        (slop_code.Evaluator.evaluate, slop_code.Evaluator.evaluate_async),
    ],
)
def test_asynchronous_functions_have_the_same_parameters(function, asynchronous):
    assert inspect.signature(asynchronous).parameters == inspect.signature(function).parameters


def test_an_evaluator_and_its_requests_take_what_evaluate_takes():
    published = list(inspect.signature(slop_code.evaluate).parameters.values())
    for callable_ in (slop_code.Evaluator.evaluate, slop_code.EvaluatorRequest):
        own = [each for name, each in inspect.signature(callable_).parameters.items() if name != "self"]
        assert [(each.name, each.kind, each.default) for each in own] == [
            (each.name, each.kind, each.default) for each in published
        ]


@pytest.mark.parametrize("function", [PytestRunner.run, run_checkpoint_pytest])
def test_pytest_args_may_be_left_out(function):
    assert inspect.signature(function).parameters["pytest_args"].default is None


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (TestResult, "id checkpoint group_type status duration_ms file_path markers failure_message"),
        (CorrectnessResults, "problem_name checkpoint_name duration tests pass_counts total_counts pytest_exit_code "
                             "infrastructure_failure infrastructure_failure_reason isolation phases provenance passed "
                             "schema_version"),
    ],
)  # fmt: skip
def test_models_have_the_published_fields(model, names):
    assert set(names.split()) <= {*model.model_fields, *model.model_computed_fields}


def test_enums_have_the_published_values():
    assert [group.value for group in GroupType] == ["Core", "Functionality", "Error", "Regression"]
    assert {policy.value for policy in PassPolicy} == {
        "any", "any-case", "all-cases", "all-non-error-cases", "core-cases", "any-core-cases", "all-core-cases",
    }  # fmt: skip
    assert issubclass(evaluation.ConfigError, SlopCodeError)
    assert {name: group for name, (_, group) in BUILTIN_MARKERS.items()} == {
        "error": GroupType.ERROR,
        "functionality": GroupType.FUNCTIONALITY,
        "regression": GroupType.REGRESSION,
    }


def test_checkpoints_come_in_order(make_problem):
    orders = {"b": {"order": 3}, "checkpoint_10": {"order": 1}, "a": {"order": 2}}
    problem = make_problem({"test_a.py": ""}, config={"checkpoints": orders})
    assert [name for name, _ in problem.iterate_checkpoint_items()] == ["checkpoint_10", "a", "b"]
    assert problem.checkpoints["a"].order == 2


def test_copy_tests_from_problem(runner, tmp_path):
    assert runner._copy_tests_from_problem(tmp_path) == ["test_checkpoint_1.py", "test_checkpoint_2.py"]
    names = sorted(path.name for path in (tmp_path / ".evaluation_tests").iterdir())
    assert names == ["conftest.py", "pytest.ini", "test_checkpoint_1.py", "test_checkpoint_2.py"]


def test_generate_pytest_ini(runner):
    lines = [line.strip() for line in runner._generate_pytest_ini().splitlines()]
    assert lines[0] == "[pytest]"
    assert {line.partition(":")[0] for line in lines if ":" in line} == {"error", "functionality", "regression", "slow"}
    assert "slow: takes a while" in lines


def test_build_pytest_command(runner):
    command = runner._build_pytest_command(["-x"])
    tools = ["pytest", "pytest-json-ctrf", "pytest-json-report", "pytest-timeout", "jsonschema", "deepdiff", "pyyaml"]
    assert command[0].endswith("/uvx")
    assert [word.removeprefix("--with=") for word in command if word.startswith("--with=")] == tools
    for word in (
        "pytest", "--timeout=17", "--checkpoint=checkpoint_2", "--ctrf=.scbench/ctrf-report.json", "--json-report",
        "--json-report-file=.scbench/pytest-report.json", "-vv", "-x",
    ):  # fmt: skip
        assert word in command
    assert command[-1] == ".evaluation_tests"
    entrypoint = next(word for word in command if word.startswith("--entrypoint="))
    assert entrypoint.split()[-1] == "main.py"


def test_parse_ctrf_report(runner):
    test = {"name": "test_new", "status": "passed", "duration": 5, "filePath": ".evaluation_tests/test_checkpoint_2.py"}
    report = {"results": {"tool": {"name": "pytest"}, "tests": [test]}}
    parsed = runner._parse_ctrf_report(json.dumps(report).encode())
    assert [(raw.nodeid, raw.status, raw.duration_ms) for raw in parsed] == [
        ("test_checkpoint_2.py::test_new", "passed", 5)
    ]


@pytest.mark.parametrize(
    ("home", "markers", "expected"),
    [
        ("checkpoint_1", ["error"], GroupType.REGRESSION),
        ("checkpoint_2", ["functionality", "error"], GroupType.ERROR),
        ("checkpoint_2", ["slow", "regression"], GroupType.REGRESSION),
        ("checkpoint_2", ["slow"], GroupType.FUNCTIONALITY),
        ("checkpoint_2", ["functionality"], GroupType.FUNCTIONALITY),
        ("checkpoint_2", [], GroupType.CORE),
    ],
)
def test_determine_group_type(runner, home, markers, expected):
    assert runner._determine_group_type(home, markers, "checkpoint_2") is expected


@pytest.mark.parametrize(
    ("file", "tags", "custom", "expected"),
    [
        ("test_checkpoint_1.py", ["error"], {}, GroupType.REGRESSION),
        (".evaluation_tests/test_checkpoint_2.py", ["functionality", "error"], {}, GroupType.ERROR),
        ("tests/test_checkpoint_2_more.py", ["regression"], {}, GroupType.REGRESSION),
        ("test_checkpoint_2.py", ["slow"], {"slow": MarkerConfig(group=GroupType.ERROR)}, GroupType.ERROR),
        ("test_checkpoint_2.py", ["slow"], {"slow": GroupType.ERROR}, GroupType.ERROR),
        ("test_checkpoint_2.py", ["functionality"], {}, GroupType.FUNCTIONALITY),
        ("test_checkpoint_2.py", [], {}, GroupType.CORE),
        ("test_checkpoint_2.py", None, {}, GroupType.CORE),
    ],
)
def test_a_ctrf_test_has_the_same_group(runner, file, tags, custom, expected):
    test = {"name": "test_x", "filePath": file, "tags": tags}
    assert runner._determine_group_type(test, "checkpoint_2", custom) is expected


@pytest.mark.parametrize(
    "arguments",
    [
        ({"tags": []}, "checkpoint_2", {}),
        ({"filePath": "test_checkpoint_2.py", "tags": "error"}, "checkpoint_2", {}),
        ({"filePath": "test_checkpoint_2.py"}, "checkpoint_2", ["slow"]),
        ({"filePath": "test_checkpoint_2.py"}, "checkpoint_9", {}),
        ("checkpoint_2", "error", "checkpoint_2"),
        ("checkpoint_2", ["error"], "checkpoint_9"),
        ("checkpoint_2", ["error"], {}),
        ("checkpoint_9", ["error"], "checkpoint_2"),
        ("", [], "checkpoint_2"),
        (5, [], "checkpoint_2"),
        *[
            ("checkpoint_2", markers, "checkpoint_2")
            for markers in (b"error", [b"error"], [None], None, 5, [["error"]], {"error": 1})
        ],
        *[
            ({"filePath": "test_checkpoint_2.py", "tags": tags}, "checkpoint_2", {})
            for tags in ([b"error"], [["error"]], [None], {}, "", 0)
        ],
        *[
            ({"filePath": "test_checkpoint_2.py"}, "checkpoint_2", custom)
            for custom in (None, {"slow": "Slow"}, {"slow": 5}, {"slow": None}, {5: GroupType.ERROR})
        ],
        ({"filePath": "test_checkpoint_2.py"}, 10**5000, {}),
    ],
)
def test_a_call_that_has_no_group_is_refused(runner, arguments):
    with pytest.raises(UsageError):
        runner._determine_group_type(*arguments)


def test_get_test_files(runner):
    own = ["test_checkpoint_2.py", "conftest.py"]
    assert runner._get_test_files("checkpoint_2", False) == own
    assert runner._get_test_files("checkpoint_2", True) == [own[0], "test_checkpoint_1.py", own[1]]
    assert runner._get_test_files("checkpoint_1", True) == ["test_checkpoint_1.py", "conftest.py"]


def test_the_methods_need_no_arguments(runner, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runner._copy_tests_from_problem() == ["test_checkpoint_1.py", "test_checkpoint_2.py"]
    assert (runner.workspace / ".evaluation_tests" / "pytest.ini").read_text() == runner._generate_pytest_ini()
    assert runner._build_pytest_command()[-1] == ".evaluation_tests"
    with pytest.raises(UsageError, match="no CTRF report"):
        runner._parse_ctrf_report()


class OwnFiles(PytestRunner):
    def _get_test_files(self, checkpoint_name, include_prior_tests):
        return super()._get_test_files(checkpoint_name, False)


class OwnIni(PytestRunner):
    def _generate_pytest_ini(self):
        return super()._generate_pytest_ini() + "python_functions = test_new\n"


class OwnCopy(PytestRunner):
    added = "test_added"

    def _copy_tests_from_problem(self, workspace=None):
        names = super()._copy_tests_from_problem(workspace)
        with (self.workspace / ".evaluation_tests" / "test_checkpoint_2.py").open("a") as file:
            file.write(f"\ndef {self.added}():\n    pass\n")
        return names


class OtherCopy(OwnCopy):
    added = "test_other"


class OwnCommand(PytestRunner):
    def _build_pytest_command(self, pytest_args=()):
        *command, tests = super()._build_pytest_command(pytest_args)
        return [*command, "-o", "python_functions=test_old test_slow", tests]


class OwnFilesAndGroups(OwnFiles):
    def _determine_group_type(self, test_checkpoint, markers, current_checkpoint):
        group = super()._determine_group_type(test_checkpoint, markers, current_checkpoint)
        return GroupType.ERROR if group is GroupType.CORE else group


ALL = {"test_old": "Regression", "test_new": "Core", "test_slow": "Functionality"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (OwnFilesAndGroups, {"test_new": "Error", "test_slow": "Functionality"}),
        (OwnIni, {"test_new": "Core"}),
        (OwnCopy, {**ALL, "test_added": "Core"}),
        (OtherCopy, {**ALL, "test_other": "Core"}),
        (OwnCommand, {"test_old": "Regression", "test_slow": "Functionality"}),
    ],
)
def test_a_method_that_is_overridden_has_its_effect(kind, expected, problem, environment_spec, submission, cache):
    """Though the tests are staged once per content."""
    checkpoint = problem.checkpoints["checkpoint_2"]
    results = kind(problem, checkpoint, environment_spec(sandbox="none"), submission, cache=cache).run()
    assert results.infrastructure_failure_reason is None
    assert {test.id: test.group_type.value for test in results.tests} == expected
    assert {test.status for test in results.tests} == {"passed"}


class OwnReport(PytestRunner):
    """Without the other report, so that this one is read."""

    def _build_pytest_command(self, pytest_args=()):
        return [word for word in super()._build_pytest_command(pytest_args) if not word.startswith("--json-report")]

    def _parse_ctrf_report(self, report=None):
        return [replace(test, duration_ms=12345.0) for test in super()._parse_ctrf_report(report)]


def test_an_overridden_parser_of_the_ctrf_report_has_its_effect(
    problem, environment_spec, submission, cache, tmp_path, caplog
):
    checkpoint, environment = problem.checkpoints["checkpoint_2"], environment_spec(sandbox="none")
    runner = OwnReport(problem, checkpoint, environment, submission, cache=cache, output_dir=tmp_path, verbose=True)
    results = runner.run()
    assert (results.infrastructure_failure_reason, results.evidence) == (None, "ctrf")
    assert {test.duration_ms for test in results.tests} == {12345.0}
    assert {test.nodeid.partition("::")[2] for test in runner._parse_ctrf_report()} == set(ALL)
    assert any("--checkpoint=checkpoint_2" in message for message in caplog.messages)


def test_both_ways_to_run_log_nothing_without_verbose(
    runner, problem, submission, environment_spec, cache, monkeypatch, caplog
):
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
    function = run_checkpoint_pytest(
        submission_path=submission,
        problem=problem,
        checkpoint=problem.checkpoints["checkpoint_2"],
        env_spec=environment_spec(sandbox="none"),
        pytest_args=["-k", "not slow"],
    )
    method = runner.run(["-k", "not slow"])
    for results in (function, method):
        assert {test.id: (test.group_type, test.status) for test in results.tests} == {
            "test_old": (GroupType.REGRESSION, "passed"),
            "test_new": (GroupType.CORE, "passed"),
        }
    everything = runner.run()
    assert {test.id: test.group_type.value for test in everything.tests} == ALL
    assert {test.status for test in everything.tests} == {"passed"}
    assert caplog.messages == []
