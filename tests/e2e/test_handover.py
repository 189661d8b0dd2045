"""Handover of files and folders that tests name, and refusals of test code."""

from __future__ import annotations

import pytest

from tests.factories import statuses_by_id
from tests.marks import in_long

SUBMISSION = """
import json, os, sys

def content(path):
    if os.path.isdir(path):
        return {name: content(os.path.join(path, name)) for name in sorted(os.listdir(path))}
    return open(path).read() if os.path.exists(path) else None

print(json.dumps({os.path.basename(path): content(path) for path in sys.argv[1:]}))
"""

TESTS = """
import json
from pathlib import Path

HERE = Path(__file__).parent
REFUSED = "slop-code: not handed over: "
ITS_CODE = "it is test code: the tests load it, or it has the content of a file that they load"

def look(run, *paths, **options):
    done = run(*paths, **options)
    return json.loads(done.stdout), done.stderr

def test_sources_to_work_on(run):
    assert look(run, HERE / "project") == ({"project": {
        "conftest.py": "import no_such_module", "helpers.py": "print('the same name')", "main.py": "import helpers",
        "pytest.ini": "[pytest]", "setup.cfg": "", "test_main.py": "def test_main(): ...",
    }}, "")

def test_one_source(run):
    assert look(run, HERE / "single" / "program.py") == ({"program.py": "print(1)"}, "")

def test_a_folder_with_imported_code(run):
    from mixed.checks import right
    said, errors = look(run, HERE / "mixed")
    assert said == {"mixed": {"input.py": "x = 1"}}
    assert right()
    assert errors.startswith(f"{REFUSED}{HERE / 'mixed/checks.py'}: it is test code")

def test_code(run):
    for name in ("helpers.py", "test_checkpoint_1.py", "conftest.py", "copy_of_helpers.txt", "pytest.ini"):
        said, errors = look(run, HERE / name)
        assert said == {name: None}
        assert errors.startswith(f"{REFUSED}{HERE / name}: ")

def test_the_whole_folder(run):
    said, errors = look(run, HERE)
    assert "helpers.py" not in said[HERE.name]
    assert errors == f"{REFUSED}{HERE}: it is the whole tests folder, which is never handed over\\n"

def test_a_path_that_is_named_often_hides_no_other(run):
    _, errors = look(run, *[HERE / "helpers.py"] * 30, HERE / "pytest.ini")
    assert errors.count(REFUSED) == 2

def test_variables_of_calls(run):
    import os
    variables = {**os.environ, "CODE": str(HERE / "helpers.py"), "DATA": str(HERE / "other")}
    said, errors = look(run, HERE / "other", HERE / "helpers.py", env=variables)
    assert said == {"other": {"data.py": "y = 2"}, "helpers.py": None}
    assert errors.count(REFUSED) == 1

def test_a_variable_alone(run):
    import os
    variables = {**os.environ, "CODE": f"{HERE / 'mixed' / 'checks.py'}:{HERE / 'mixed' / 'input.py'}"}
    said, errors = look(run, HERE / "mixed" / "input.py", env=variables)
    assert said == {"input.py": "x = 1"}
    assert errors == f"{REFUSED}{HERE / 'mixed/checks.py'}: {ITS_CODE}\\n"

def test_folders_of_a_variable(run):
    import os
    variables = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE / 'mixed'}"}
    assert look(run, HERE / "other", env=variables) == ({"other": {"data.py": "y = 2"}}, "")
    assert look(run, HERE / "mixed", env=variables)[1] == f"{REFUSED}{HERE / 'mixed/checks.py'}: {ITS_CODE}\\n"

def test_folders_that_no_argument_names(run):
    import os
    variables = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE / 'mixed'}"}
    assert look(run, env=variables) == ({}, "")
    for folder in (HERE, HERE / "mixed"):
        assert REFUSED not in run(cwd=folder).stderr
"""

FILES = {
    "tests/deep/conftest.py": "import pytest\n\n@pytest.fixture\ndef deep(): return 1\n",
    "tests/deep/test_checkpoint_1_deep.py": "def test_deep(deep): assert deep == 1\n",
    "tests/helpers.py": "def help(): return 1\n",
    "tests/copy_of_helpers.txt": "def help(): return 1\n",
    "tests/mixed/checks.py": "def right(): return True\n",
    "tests/mixed/input.py": "x = 1",
    "tests/other/data.py": "y = 2",
    "tests/single/program.py": "print(1)",
    "tests/project/conftest.py": "import no_such_module",
    "tests/project/helpers.py": "print('the same name')",
    "tests/project/main.py": "import helpers",
    "tests/project/pytest.ini": "[pytest]",
    "tests/project/setup.cfg": "",
    "tests/project/test_main.py": "def test_main(): ...",
}


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_everything_but_test_code_is_handed_over(sandbox, make_problem, make_submission, evaluate):
    problem = make_problem({"test_checkpoint_1.py": "import helpers\n" + TESTS}, files=FILES)
    results = evaluate(problem, make_submission({"main.py": SUBMISSION}), sandbox=sandbox)
    assert {test.id: test.failure_message for test in results.tests if test.status != "passed"} == {}
    assert len(statuses_by_id(results)) == 11
    refused = {test.id: [path.path for path in test.refused_paths] for test in results.tests if test.refused_paths}
    assert refused == {
        "test_a_folder_with_imported_code": ["mixed/checks.py"],
        "test_code": ["helpers.py", "test_checkpoint_1.py", "conftest.py", "copy_of_helpers.txt", "pytest.ini"],
        "test_the_whole_folder": ["."],
        "test_a_path_that_is_named_often_hides_no_other": ["helpers.py", "pytest.ini"],
        "test_a_variable_alone": ["mixed/checks.py"],
        "test_folders_of_a_variable": ["mixed/checks.py"],
        "test_variables_of_calls": ["helpers.py"],
    }
    first = "tests/mixed/checks.py was not handed over to the submission in test_checkpoint_1.py::test_a_folder_with_"
    assert any(warning.startswith(first) for warning in results.warnings)
    assert any("test_checkpoint_1.py::test_code and 1 more: it is test code" in warning for warning in results.warnings)


def test_code_that_is_loaded_by_a_computed_name_hides_every_source(make_problem, make_submission, evaluate):
    """What cannot be told counts as test code, except what the problem declares visible."""
    tests = """
    import importlib, json
    from pathlib import Path

    HERE = Path(__file__).parent

    def test_computed(run):
        importlib.import_module("hel" + "pers")
        done = run(HERE / "single" / "program.py", HERE / "other", HERE / "project" / "setup.cfg")
        assert json.loads(done.stdout) == {"program.py": None, "other": {"data.py": "y = 2"}, "setup.cfg": ""}
        assert "computes the name of what it imports" in done.stderr
    """
    problem = make_problem({"test_checkpoint_1.py": tests}, files=FILES, config={"visible": ["other/*.py"]})
    results = evaluate(problem, make_submission({"main.py": SUBMISSION}))
    assert {test.id: test.failure_message for test in results.tests if test.status != "passed"} == {}
    [refused] = [path for test in results.tests for path in test.refused_paths]
    assert refused.path == "single/program.py"
    assert refused.reason.startswith("it is test code: a test computes the name of what it imports, so every .py file")
    assert any(warning.endswith(refused.reason) for warning in results.warnings)
