import os

import pytest

from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.workbench import (
    EvaluationRequest,
    evaluate_with_retry,
    results_or_raise,
)
from slop_code.authoring.check.workbench import Workbench as Bench
from slop_code.authoring.problem_folders import environment_for
from slop_code.errors import InfrastructureError
from tests.authoring.reference_results import case, judged

GOOD = judged(case("a"))
ENDED = judged(reason="pytest exited with 2")
TIMEOUT = judged(reason="session timeout").model_copy(update={"pytest_exit_code": -1})
ERROR = InfrastructureError("no memory")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([GOOD, ENDED], [], [GOOD, ENDED]),
        ([GOOD, ERROR, ENDED], [GOOD], [GOOD, GOOD, ENDED]),
        ([TIMEOUT, ERROR], [GOOD, ERROR], [GOOD, ERROR]),
        ([TIMEOUT, GOOD], [TIMEOUT], [TIMEOUT, GOOD]),
        ([], [], []),
    ],
)
def test_what_pytest_did_not_end_is_tried_once_more(bench, first, second, found):
    own = bench()
    trials = [EvaluationRequest(own.checkpoints[0], own.problem.path, seed=number) for number in range(len(first))]
    asked, answers = [], [list(first), list(second)]

    def evaluate_all(wanted):
        asked.append([trial.seed for trial in wanted])
        return answers.pop(0)

    assert evaluate_with_retry(evaluate_all, trials) == found
    assert asked[1] == [number for number, one in enumerate(first) if one in (TIMEOUT, ERROR)]


def test_an_error_among_results_is_raised():
    assert results_or_raise([GOOD, ENDED]) == [GOOD, ENDED]
    with pytest.raises(InfrastructureError, match="no memory"):
        results_or_raise([GOOD, ERROR])


@pytest.mark.parametrize(
    ("files", "named", "file"),
    [
        ({}, None, None),
        ({"environment.yaml": "type: local\nname: own\n"}, None, "environment.yaml"),
        ({"environment.yaml": "type: local\nname: own\n"}, "local", None),
    ],
)
def test_the_file_of_an_environment_is_the_problem_s_own_only_if_it_came_from_there(bench, files, named, file):
    problem = bench(files).problem
    assert Bench(problem, environment_for(problem, named), named_environment=named).environment_file == file


def test_a_place_follows_a_file_that_changes(authored):
    folder = authored()
    before = location_of_test(folder, "test_checkpoint_1.py::test_one_word")
    file = folder / "tests" / "test_checkpoint_1.py"
    file.write_text(f"# more\n{file.read_text()}")
    assert location_of_test(folder, "test_checkpoint_1.py::test_one_word").line == before.line + 1
    os.unlink(file)
    assert location_of_test(folder, "test_checkpoint_1.py::test_one_word").line is None
