"""The submission's Python: chosen by environment and problem, whatever slop-code runs on."""

from __future__ import annotations

import platform

import pytest
from pydantic import ValidationError

from slop_code.errors import ConfigError
from slop_code.evaluation.report import Digests
from slop_code.execution.dependencies.find_dependencies import python_requests
from slop_code.execution.environment import EnvironmentSpec
from slop_code.execution.python_version import (
    combined_request,
    fits,
    installed_pythons,
    normal_request,
    search_environment,
)
from slop_code.runs.result_cache_key import result_cache_key
from tests.conftest import without
from tests.factories import DIGESTS, LOCAL
from tests.marks import in_long

OWN = platform.python_version()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", "==3.*"),
        ("3.12", "==3.12.*"),
        (" 3.12.4 ", "==3.12.4"),
        (">=3.12", ">=3.12"),
        (">= 3.11 , < 3.14", ">=3.11,<3.14"),
        ("~=3.12", "~=3.12"),
        ("==3.12.*,!=3.12.1", "==3.12.*,!=3.12.1"),
        ("", None),
        ("python3.12", None),
        (">=3.12.*", None),
        ("~=3", None),
        ("3.12;", None),
        ("-e .", None),
        ("3.12\n--index", None),
        (">=3.12,", None),
    ],
)
def test_requests_become_specifiers(text, expected):
    assert normal_request(text) == expected


@pytest.mark.parametrize(
    ("version", "request_text", "expected"),
    [
        ("3.12.1", "3.12", True),
        ("3.12.1", "3.1", False),
        ("3.12.1", "3.12.1", True),
        ("3.12.1", "3.12.2", False),
        ("3.12.1", ">=3.12", True),
        ("3.11.7", ">=3.12", False),
        ("3.12.1", ">3.12", True),
        ("3.12.0", ">3.12", False),
        ("3.14.0rc1", ">=3.14", True),
        ("3.12.1", "~=3.11", True),
        ("4.0.0", "~=3.11", False),
        ("3.12.1", "~=3.12.0", True),
        ("3.13.0", "~=3.12.0", False),
        ("3.12.1", "==3.12.*,!=3.12.1", False),
        ("3.12.1", "nonsense", False),
    ],
)
def test_versions_fit_requests(version, request_text, expected):
    assert fits(version, request_text) is expected


def test_versions_of_pyenv_are_searched_from_the_newest(tmp_path, monkeypatch):
    for version in ("3.9.18", "3.12.1", "3.13-dev", "2.7.18", "3.12.10"):
        (tmp_path / "versions" / version).mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/pyenv/shims")
    first, *others = search_environment()["PATH"].split(":")
    names = [folder.removeprefix(f"{tmp_path}/versions/") for folder in others]
    assert (first, names) == ("/usr/bin", ["3.13-dev/bin", "3.12.10/bin", "3.12.1/bin", "3.9.18/bin"])


def test_requests_are_combined():
    assert combined_request([None, "3.12", ">=3.11", "3.12"]) == "==3.12.*,>=3.11"
    assert combined_request([None, None]) is None


@pytest.mark.parametrize("value", [3.12, 3, "three", ["3.12"], True])
def test_a_request_is_text(value):
    with pytest.raises(ValidationError, match="in quotes"):
        EnvironmentSpec.model_validate({"type": "local", "name": "test", "python": value})


@pytest.mark.parametrize(
    ("keys", "requires", "expected"),
    [
        ({}, None, None),
        ({"python": "3.12"}, None, "==3.12.*"),
        ({"python": "3.12"}, ">=3.11", "==3.12.*,>=3.11"),
        ({}, ">=3.11", ">=3.11"),
        ({"commands": {"command": "python3.11 -u"}}, ">=3.10", ">=3.10,==3.11.*"),
        ({"commands": {"command": "uv run"}, "python": "3.12"}, None, "==3.12.*"),
        ({"commands": {"command": "sh"}, "python": "3.12"}, ">=3.12", None),
    ],
)
def test_environment_problem_and_command_ask_for_a_python(keys, requires, expected):
    spec = EnvironmentSpec.model_validate({"type": "local", "name": "test", **keys})
    assert spec.requiring(requires).python_request() == expected


def test_checkpoints_inherit_the_python_of_the_problem(make_problem):
    problem = make_problem(
        {"test_checkpoint_1.py": "", "test_checkpoint_2.py": ""},
        config={
            "requires_python": ">=3.8",
            "checkpoints": {"checkpoint_1": {}, "checkpoint_2": {"requires_python": ">=3.9"}},
        },
    )
    assert [problem.checkpoint(number).requires_python for number in (1, 2)] == [">=3.8", ">=3.9"]


def test_the_submission_s_python_is_part_of_the_result_cache_key():
    first, second = (Digests(**DIGESTS, python=version) for version in ("3.11.7", "3.12.1"))
    assert result_cache_key(LOCAL, first) != result_cache_key(LOCAL, second)


@pytest.fixture(scope="session")
def other_python(cache):
    """Another version than slop-code's own, new enough for today's packages."""
    versions = [python.version for python in installed_pythons()]
    own = ".".join(OWN.split(".")[:2])
    other = [version for version in versions if not fits(version, own) and fits(version, ">=3.9")]
    if not other:
        without("there is one version of Python here", "CI_OTHER_PYTHONS")
    return other[0]


PRINTS = "import os, sys\nprint('.'.join(map(str, sys.version_info[:3])), os.path.realpath(sys.executable))\n"
TESTS = {
    "test_checkpoint_1.py": """
    def test_version(run):
        assert run().stdout.split()[0] == EXPECTED
    """
}


@pytest.mark.parametrize("source", ["environment", "problem"])
@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("none")])
def test_the_submission_runs_on_the_python_that_is_asked_for(
    evaluate, make_problem, make_submission, other_python, sandbox, source
):
    wanted = ".".join(other_python.split(".")[:2])
    tests = {name: text.replace("EXPECTED", repr(other_python)) for name, text in TESTS.items()}
    problem = make_problem(tests, config={"requires_python": f"=={wanted}.*"} if source == "problem" else {})
    submission = make_submission({"main.py": PRINTS, ".python-version": OWN, "requirements.txt": "six\n"})
    environment = {"python": wanted} if source == "environment" else {}
    results = evaluate(problem, submission, sandbox=sandbox, environment=environment)
    assert [test.status for test in results.tests] == ["passed"], results.tests[0].failure_message
    assert (results.provenance.digests.python, results.provenance.python) == (other_python, OWN)
    warning = f"the submission asks for Python {OWN} (.python-version), and ran on {other_python}"
    assert warning in results.warnings


@pytest.mark.long
def test_judges_that_are_forked_open_boxes_with_either_interpreter(
    evaluate, make_problem, make_submission, other_python
):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run):\n    assert run().stdout\n"})
    submission, wanted = make_submission({"main.py": PRINTS}), ".".join(other_python.split(".")[:2])
    judged = [evaluate(problem, submission, environment=keys) for keys in ({}, {}, {"python": wanted}) * 2]
    assert [test.status for results in judged for test in results.tests] == ["passed"] * 6
    assert [results.isolation["judge"] for results in judged[-2:]] == ["collected"] * 2


@pytest.mark.long
def test_a_box_shows_no_other_interpreter(evaluate, make_problem, make_submission, other_python):
    """Where interpreters lie side by side, as with pyenv, the submission sees its own only."""
    text = "def test_it(run):\n    assert run().stdout == 'False\\n', run().stderr\n"
    own = next(python.path for python in installed_pythons() if python.version == OWN)
    if own.startswith("/usr/"):
        pytest.skip("slop-code's own interpreter is the system's, which every box shows")
    problem = make_problem({"test_checkpoint_1.py": text})
    submission = make_submission({"main.py": f"import os\nprint(os.path.exists({own!r}))\n"})
    results = evaluate(problem, submission, environment={"python": ".".join(other_python.split(".")[:2])})
    assert [test.status for test in results.tests] == ["passed"], results.tests[0].failure_message


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker", *in_long("none")])
def test_no_python_that_fits_is_a_configuration_error(evaluate, make_problem, make_submission, sandbox):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(): pass\n"}, config={"requires_python": ">=3.99"})
    with pytest.raises(ConfigError, match=r"no Python .* fits >=3\.99"):
        evaluate(problem, make_submission({"main.py": ""}), sandbox=sandbox)


NEWER = ">=3.99"
SCRIPT = f"# /// script\n# requires-python = '{NEWER}'\n# ///\n"
PROJECT = f"[project]\nname = 'x'\nversion = '1'\nrequires-python = '{NEWER}'\n"


@pytest.mark.parametrize(
    ("files", "warned"),
    [
        (
            {"pyproject.toml": PROJECT, "main.py": SCRIPT, ".python-version": "3.99\n"},
            ["requires-python in pyproject.toml", "requires-python in main.py", ".python-version"],
        ),
        ({".python-version": f"cpython-{OWN}\n", "pyproject.toml": "[project]\nrequires-python = '>=3'\n"}, []),
        ({".python-version": "pypy3.10\n", "pyproject.toml": "[project\n"}, []),
    ],
)
def test_a_python_that_the_submission_did_not_get_is_a_warning(evaluate, make_problem, make_submission, files, warned):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(): pass\n"})
    results = evaluate(problem, make_submission({"main.py": "", **files}), sandbox="none")
    warnings = [warning for warning in results.warnings if "asks for Python" in warning]
    assert len(warnings) == len(warned)
    assert all(f"({file})" in warning for file, warning in zip(warned, warnings, strict=True)), warnings
    assert results.passed["all-cases"]


def test_a_blank_python_version_asks_for_nothing(make_submission):
    assert python_requests(make_submission({"main.py": "", ".python-version": "\n"}), "main.py") == []
