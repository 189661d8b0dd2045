"""The examples that ship: their references, the recorded runs, and an empty submission."""

import contextlib
import functools
from pathlib import Path

import pytest
import yaml

from slop_code.evaluation import ProblemConfig
from tests.e2e.python_image import image_with
from tests.factories import statuses

EXAMPLES = Path(__file__).parents[2] / "examples"
CONTAINERS = ("docker", "runsc")
TOTALS = {
    ("larder", 1): (8, 6, 12, 0),
    ("larder", 2): (5, 8, 7, 27),
    ("larder", 3): (7, 8, 6, 48),
    ("corkboard", 1): (6, 3, 10, 0),
    ("corkboard", 2): (7, 3, 6, 20),
    ("hitcount", 1): (6, 4, 7, 0),
    ("hitcount", 2): (5, 3, 5, 18),
    ("rollcall", 1): (6, 9, 9, 0),
    ("rollcall", 2): (6, 11, 7, 25),
}
"""Core, Functionality, Error, Regression."""
LAST = [("larder", 3), ("corkboard", 2), ("hitcount", 2), ("rollcall", 2)]
"""With all tests of those before."""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def image(need_docker):
    """`image(">=3.12")`: the name of an image with such a Python, made once."""
    with contextlib.ExitStack() as at_end:

        @functools.cache
        def make(request):
            need_docker()
            return at_end.enter_context(image_with(request))

        yield make


@pytest.fixture(scope="module")
def judged(evaluate, need_python, image):
    """Each combination is evaluated once, however many tests look at it."""
    done = {}

    def run(name, checkpoint, submission, sandbox="bubblewrap"):
        key = (name, checkpoint, submission, sandbox)
        if key not in done:
            folder = EXAMPLES / "problems" / name
            own = folder / "environment.yaml"
            environment = yaml.safe_load(own.read_text()) if own.exists() else {}
            environment = {key: value for key, value in environment.items() if key not in ("type", "isolation")}
            problem = ProblemConfig.from_yaml(folder)
            if (requires := problem.checkpoint(checkpoint).requires_python) is not None:
                need_python(requires)
                runtime = {"runtime": sandbox} if sandbox == "runsc" else {}
                environment |= {"docker": {"image": image(requires), **runtime}} if sandbox in CONTAINERS else {}
            done[key] = evaluate(problem, submission, checkpoint, sandbox=sandbox, environment=environment)
        return done[key]

    return run


def reference(name, checkpoint):
    return EXAMPLES / "problems" / name / "solutions" / f"checkpoint_{checkpoint}"


@pytest.mark.parametrize(("name", "checkpoint"), sorted(TOTALS))
def test_a_reference_passes_everything(judged, name, checkpoint):
    results = judged(name, checkpoint, reference(name, checkpoint))
    assert results.infrastructure_failure_reason is None
    assert tuple(results.total_counts.values()) == TOTALS[name, checkpoint]
    assert results.pass_counts == results.total_counts
    assert all(results.passed.values())
    assert results.isolation["judge_and_subject_apart"]
    assert results.warnings == []


@pytest.mark.parametrize(("name", "checkpoint"), LAST)
def test_an_empty_submission_passes_no_test(judged, make_submission, name, checkpoint):
    results = judged(name, checkpoint, make_submission({}))
    assert results.infrastructure_failure_reason is None
    assert tuple(results.total_counts.values()) == TOTALS[name, checkpoint]
    assert set(statuses(results).values()) <= {"failed", "error"}
    assert not any(results.passed.values())


@pytest.mark.parametrize(
    ("run", "checkpoint", "passed", "policies"),
    [
        ("drifting", 3, (7, 5, 6, 39), {"all-core-cases"}),
        ("steady", 3, (7, 8, 6, 48), {"all-cases", "all-non-error-cases", "all-core-cases"}),
        ("drifting", 2, (5, 5, 5, 27), {"all-core-cases"}),
    ],
)
def test_a_recorded_run_passes_the_recorded_tests(judged, run, checkpoint, passed, policies):
    snapshot = EXAMPLES / "runs" / run / "larder" / f"checkpoint_{checkpoint}" / "snapshot"
    results = judged("larder", checkpoint, snapshot)
    assert results.infrastructure_failure_reason is None
    assert tuple(results.total_counts.values()) == TOTALS["larder", checkpoint]
    assert tuple(results.pass_counts.values()) == passed
    every = {name for name, held in results.passed.items() if name.startswith("all") and held}
    assert every == policies


@pytest.mark.parametrize(
    ("name", "checkpoint", "submission"),
    [
        ("corkboard", 2, reference("corkboard", 2)),
        ("larder", 3, EXAMPLES / "runs" / "drifting" / "larder" / "checkpoint_3" / "snapshot"),
        ("hitcount", 2, reference("hitcount", 1)),
        ("rollcall", 2, reference("rollcall", 1)),
        ("rollcall", 2, reference("rollcall", 2)),
    ],
    ids=lambda value: "-".join(value.parts[-2:]) if isinstance(value, Path) else value,
)
@pytest.mark.parametrize("sandbox", ["docker", "runsc", "none"], ids="in {}".format)  # on one worker, to share results
def test_the_boxes_change_no_verdict(judged, name, checkpoint, submission, sandbox):
    """In `none` each is evaluated here alone: corkboard has one port, and the host's network is that of all tests."""
    boxed = judged(name, checkpoint, submission)
    other = judged(name, checkpoint, submission, sandbox)
    assert (boxed.infrastructure_failure_reason, other.infrastructure_failure_reason) == (None, None)
    assert boxed.isolation["sandbox"] == "bubblewrap"
    assert sandbox in (other.isolation["sandbox"], other.isolation.get("runtime"))
    assert boxed.isolation["judge_and_subject_apart"]
    assert other.isolation["judge_and_subject_apart"] == (sandbox != "none")
    assert statuses(other) == statuses(boxed)
    assert other.pytest_exit_code == boxed.pytest_exit_code
