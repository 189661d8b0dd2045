"""Differences between sides: truth tables, and run folders as evaluations leave them."""

import json

import pytest

from slop_code.comparison.diff import ObservedStatus, change_of, compare_sides
from slop_code.comparison.load import JudgeInputs
from slop_code.comparison.records import Comparison
from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, parse_policy

pytestmark = pytest.mark.e2e

OLD, NEW = JudgeInputs("1", "3.11", "x"), JudgeInputs("2", "3.11", "x")


def observed(words):
    """`"p f:a s:a@2"`: a letter, then the inputs, then another judge."""
    found = []
    for word in words.split():
        word, _, judge = word.partition("@")
        letter, _, inputs = word.partition(":")
        found.append(ObservedStatus(letter, inputs or None, NEW if judge else OLD))
    return found


@pytest.mark.parametrize(
    ("base", "other", "change"),
    [
        ("p", "p", None),
        ("f", "p", "gained"),
        ("p", "f", "lost"),
        ("p", "s", "lost"),  # skipped is not passed
        ("s", "p", "gained"),
        ("e", "p", "gained"),
        ("f", "e", None),
        ("f", "s", None),
        ("", "p", "added"),
        ("", "f", "added"),
        ("p", "", "removed"),
        ("", "", None),
        # other inputs, or inputs that are not known, are no reason to doubt
        ("p:a", "f:b", "lost"),
        ("p:a", "f", "lost"),
        # the same inputs
        ("p:a", "p:a", None),
        ("p:a", "f:a", "flaky"),
        ("f:a", "p:a", "flaky"),
        ("f:a", "e:a", "flaky"),
        # the same inputs, but another judge
        ("p:a", "p:a@2", None),
        ("p:a", "f:a@2", "rejudged"),
        ("f:a", "p:a@2", "rejudged"),
        ("p:a", "f:b@2", "lost"),
        # several runs: by share
        ("p f", "p p", "gained"),
        ("p p", "p f", "lost"),
        ("p f", "p f p f", None),
        ("p f f", "p", "gained"),
        # several runs, some of the same inputs
        ("p:a f:a", "p:b p:c", "flaky"),  # within one side, and nothing else is known of it
        ("p:a f:a", "p:a p:a", "flaky"),
        ("p:a f:a p:b", "f:c f:d", "lost"),  # left out, the others still differ
        ("p:a p:b", "f:a p:c", "flaky"),
        ("p:a f:a@2 p:b", "p:c", "rejudged"),
        ("p:a f:a p:b e:b@2", "p:c", "flaky"),
    ],
)  # fmt: skip
def test_the_change_of_a_test_follows_from_its_statuses(base, other, change):
    assert change_of(observed(base), observed(other)) == change


@pytest.mark.parametrize(("change", "back"), [("gained", "lost"), ("added", "removed"), ("flaky", "flaky")])
def test_the_other_way_round(change, back):
    words = {"gained": ("f", "p"), "added": ("", "p"), "flaky": ("f:a", "p:a")}[change]
    sides = [observed(word) for word in words]
    assert (change_of(*sides), change_of(*reversed(sides))) == (change, back)


@pytest.fixture
def evaluated(world):
    """`evaluated("a", {"words": ["++", "+-"]}, "text")`: marks of the tests at each checkpoint. The same text and
    number are the same submission. A mark of "!" is an infrastructure failure."""

    def make(name, problems, text=None, **keys):
        for problem, marks in problems.items():
            world.problem(problem, len(marks))
        world.run(name, {problem: [text or name] * len(marks) for problem, marks in problems.items()})
        (run,) = world.discover(name)
        for submission in run.submissions:
            number = list(submission.problem.checkpoints).index(submission.checkpoint.name)
            marks = problems[submission.problem.name][number]
            failed = {"infrastructure_failure_reason": "killed"} if marks == "!" else {}
            world.finish(submission, "+" if failed else marks, **failed, **keys)
        return world.folder / name

    return make


def compared(*folders, policy=PassPolicy.ALL_CASES):
    return compare_sides(folders, policy, samples=True)[0]


def kinds(pair):
    return [(test.checkpoint, test.id, test.change) for test in pair.tests]


def some(counts):
    return {kind: count for kind, count in counts.items() if count}


def test_tests_of_two_runs_are_gained_or_lost(evaluated):
    base = evaluated("base", {"words": ["+-", "++-", "+"]})
    other = evaluated("other", {"words": ["++", "+-+", "++"]})
    (pair,) = compared(base, other).pairs
    assert kinds(pair) == [
        ("checkpoint_1", "test_1", "gained"),
        ("checkpoint_2", "test_1", "lost"),
        ("checkpoint_2", "test_2", "gained"),
        ("checkpoint_3", "test_1", "added"),
    ]
    assert some(pair.changed_tests) == {"gained": 2, "lost": 1, "added": 1}
    assert [one.change for one in pair.checkpoints] == ["gained", None, None]
    assert some(pair.changed_checkpoints) == {"gained": 1}
    assert [(one.base.passed, one.other.passed, one.base.runs) for one in pair.checkpoints] == [
        (0, 1, 1),
        (0, 0, 1),
        (1, 1, 1),
    ]
    assert pair.tests[1].base == {"passed": 1}
    assert pair.tests[1].other == {"failed": 1}
    assert pair.tests[3].base == {}
    assert pair.lost
    assert not compared(evaluated("better", {"words": ["+-", "+++", "+"]}), base).pairs[0].changed_tests["gained"]


def test_the_policy_decides_what_a_checkpoint_is(evaluated):
    base, other = evaluated("base", {"words": ["+---"]}), evaluated("other", {"words": ["++--"]})
    verdicts = [
        compared(base, other, policy=parse_policy(policy)).pairs[0].checkpoints[0].change
        for policy in ("all-cases", "any", "core >= 50%")
    ]
    assert verdicts == [None, None, "gained"]


def test_the_same_submission_that_differs_is_flaky(evaluated):
    base, other = evaluated("base", {"words": ["+-"]}, "x"), evaluated("other", {"words": ["++"]}, "x")
    comparison = compared(base, other)
    assert kinds(comparison.pairs[0]) == [("checkpoint_1", "test_1", "flaky")]
    assert comparison.pairs[0].checkpoints[0].change == "flaky"
    assert not compared(other, base).lost
    assert compared(other, evaluated("third", {"words": ["+-"]}, "y")).lost


@pytest.mark.parametrize("field", ["evaluation_version", "python", "test_dependencies"])
def test_the_same_submission_before_another_judge_is_not_flaky(evaluated, field):
    base, other = evaluated("base", {"words": ["++", "+"]}, "x"), evaluated("other", {"words": ["+-", "+"]}, "x")
    path = other / "words/checkpoint_1/evaluation.json"
    document = json.loads(path.read_text())
    document["provenance"][field] = {"pytest": "1"} if field == "test_dependencies" else "another"
    path.write_text(json.dumps(document))
    (pair,) = compared(base, other).pairs
    assert kinds(pair) == [("checkpoint_1", "test_1", "rejudged")]
    assert pair.checkpoints[0].change == "rejudged"
    assert not pair.lost
    (said,) = pair.other_judge
    assert {"evaluation_version": "rules", "python": "Python", "test_dependencies": "dependencies"}[field] in said


def with_digest(folder, digest, checkpoint="checkpoint_1"):
    path = folder / "words" / checkpoint / "evaluation.json"
    document = json.loads(path.read_text())
    document["provenance"]["digests"][digest] = "another"
    path.write_text(json.dumps(document))


def test_another_submission_is_no_reason_to_call_it_flaky(evaluated):
    base, other = evaluated("base", {"words": ["++"]}, "x"), evaluated("other", {"words": ["+-"]}, "x")
    with_digest(other, "submission")
    assert kinds(compared(base, other).pairs[0]) == [("checkpoint_1", "test_1", "lost")]


@pytest.mark.parametrize("digest", ["tests", "config", "environment", "image"])
def test_the_same_submission_in_another_place_is_rejudged(evaluated, digest):
    base, other = evaluated("base", {"words": ["++"]}, "x"), evaluated("other", {"words": ["+-"]}, "x")
    with_digest(other, digest)
    (pair,) = compared(base, other).pairs
    assert kinds(pair) == [("checkpoint_1", "test_1", "rejudged")]
    assert (pair.checkpoints[0].change, pair.lost) == ("rejudged", False)
    (said,) = pair.other_judge
    assert digest in said


@pytest.mark.e2e
def test_other_tests_are_warned_of(evaluated):
    base, other, third = (evaluated(name, {"words": ["++"] * 7}) for name in ("base", "other", "third"))
    assert compared(base, other, third).warnings == []
    with_digest(other, "tests", "checkpoint_2")
    assert compared(base, other, third).warnings == ["base and other have other tests at words/checkpoint_2"]
    for number in range(1, 8):
        with_digest(third, "tests", f"checkpoint_{number}")
    (said,) = compared(base, third).warnings
    assert said.startswith("base and third have other tests at words/checkpoint_1, ")
    assert said.endswith("words/checkpoint_5 and 2 more")
    for number in range(1, 8):
        with_digest(base, "config", f"checkpoint_{number}")
    assert len(compared(base, third).warnings) == 1


@pytest.mark.parametrize("digest", ["submission", "tests"])
def test_inputs_that_are_not_known_are_not_the_same(evaluated, digest):
    folders = [evaluated(name, {"words": [marks]}, "x") for name, marks in (("base", "++"), ("other", "+-"))]
    for folder in folders:
        path = folder / "words/checkpoint_1/evaluation.json"
        document = json.loads(path.read_text())
        document["provenance"]["digests"][digest] = None
        path.write_text(json.dumps(document))
    assert kinds(compared(*folders).pairs[0]) == [("checkpoint_1", "test_1", "lost")]


@pytest.mark.parametrize(("before", "after"), [("+", "!"), ("!", "+"), ("!", "!")])
def test_without_a_verdict_nothing_is_gained_or_lost(evaluated, before, after):
    base = evaluated("base", {"words": [before, "+"]})
    other = evaluated("other", {"words": [after, "+"]})
    (pair,) = compared(base, other).pairs
    assert pair.tests == []
    assert not any(pair.changed_checkpoints.values())
    assert [one.compared for one in pair.checkpoints] == [False, True]
    assert {(one.run, one.checkpoint, one.reason) for one in pair.no_verdicts} == {
        (name, "checkpoint_1", "killed") for name, marks in (("base", before), ("other", after)) if marks == "!"
    }


@pytest.mark.parametrize(
    ("before", "after", "unanswered"),
    [
        (["+", "+"], ["+", "!"], True),
        (["+", "+"], ["+"], True),
        (["+", "!"], ["+", "+"], False),
        (["+", "!"], ["+", "!"], False),
        (["+", "+"], ["-", "-"], False),
    ],
)
def test_what_the_other_has_no_verdict_on_is_unanswered(evaluated, before, after, unanswered):
    (pair,) = compared(evaluated("a", {"words": before}), evaluated("b", {"words": after})).pairs
    assert pair.unanswered == unanswered


def test_only_common_problems_are_compared(evaluated):
    base = evaluated("base", {"words": ["+"], "sums": ["+"]})
    other = evaluated("other", {"words": ["-"], "maps": ["+"]})
    (pair,) = compared(base, other).pairs
    assert (pair.only_base, pair.only_other) == (["sums"], ["maps"])
    assert [one.problem for one in pair.checkpoints] == ["words"]


def test_a_checkpoint_that_one_side_lacks_is_set_apart(evaluated):
    base, other = evaluated("base", {"words": ["+"]}), evaluated("other", {"words": ["+", "+"]})
    (pair,) = compared(base, other).pairs
    assert [(one.checkpoint, one.change, one.compared) for one in pair.checkpoints] == [
        ("checkpoint_1", None, True),
        ("checkpoint_2", None, False),
    ]
    assert [(one.side, one.reason) for one in pair.no_verdicts] == [("base", "the run does not have this checkpoint")]


def test_several_are_compared_with_the_first(evaluated):
    folders = [evaluated(name, {"words": [marks]}) for name, marks in (("a", "+-"), ("b", "-+"), ("c", "+-"))]
    comparison = compared(*folders)
    assert [(pair.base, pair.other, len(pair.tests)) for pair in comparison.pairs] == [("a", "b", 2), ("a", "c", 0)]
    assert comparison.lost


def test_sides_are_called_as_their_folders(evaluated):
    folders = [evaluated(f"{agent}/results", {"words": ["+"]}) for agent in ("a", "b")]
    assert [side.name for side in compared(*folders).sides] == [str(folder) for folder in folders]


def test_folders_of_runs_are_samples(evaluated, world):
    marks = {"weak": ["+-", "+-", "++"], "strong": ["++", "++", "++", "+-"]}
    for side, runs in marks.items():
        for number, one in enumerate(runs):
            evaluated(f"{side}/run_{number}", {"words": [one, "+-"]})
    comparison = compared(world.folder / "weak", world.folder / "strong")
    assert [len(side.runs) for side in comparison.sides] == [3, 4]
    (pair,) = comparison.pairs
    (test,) = pair.tests
    assert (test.change, test.base, test.other) == (
        "gained",
        {"passed": 1, "failed": 2},
        {"passed": 3, "failed": 1},
    )
    first, second = pair.checkpoints
    assert (first.base.passed, first.base.runs, first.other.passed, first.other.runs) == (1, 3, 3, 4)
    # By hand: of the 35 ways to place four passes among seven runs, 12 are like this one, 1 and 4 are rarer.
    assert first.p == pytest.approx(17 / 35)
    assert (first.p_adjusted, second.p, second.p_adjusted) == (pytest.approx(34 / 35), 1.0, 1.0)
    found = pair.significance
    assert (found.checkpoints.base, found.checkpoints.other) == (pytest.approx(1 / 6), pytest.approx(3 / 8))
    assert (found.checkpoints.p, found.checkpoints.arrangements) == (pytest.approx(17 / 35), 35)
    assert found.checkpoints.seed is None
    assert found.problems.p == 1.0
    assert found.smallest_p == pytest.approx(1 / 35)


def test_the_overall_test_is_of_what_every_run_has_a_verdict_on(evaluated, world):
    """Checkpoints differ in how hard they are: a run is not judged by fewer of them."""
    for side, first in (("a", "!"), ("b", "+")):
        for number in range(2):
            marks = first if number == 0 else "+"
            evaluated(f"{side}/run_{number}", {"words": [marks, "+-"], "sums": ["+", "+"]})
    (pair,) = compared(world.folder / "a", world.folder / "b").pairs
    assert pair.significance.checkpoints.tasks == 3
    assert pair.significance.problems.tasks == 1
    words = pair.checkpoints[2]
    assert (words.problem, words.base.runs, words.p) == ("words", 1, None)


def test_one_run_gives_no_p(evaluated, world):
    for number in range(2):
        evaluated(f"a/run_{number}", {"words": ["+"]})
    (pair,) = compared(world.folder / "a", evaluated("b", {"words": ["-"]})).pairs
    assert pair.significance is None
    assert pair.no_significance.startswith("b is one run")
    assert pair.checkpoints[0].p is None
    assert pair.changed_tests["lost"] == 1


def test_copies_of_a_run_are_no_samples(evaluated, world):
    for number, text in enumerate("xyx"):
        evaluated(f"a/run_{number}", {"words": ["+"]}, text)
    comparison = compared(world.folder / "a", evaluated("b", {"words": ["+"]}))
    assert comparison.warnings == [
        "a: run_2 has the same submissions as another run, so it counts as no further sample"
    ]
    assert [(side.runs, side.copies) for side in comparison.sides] == [
        (["run_0", "run_1", "run_2"], ["run_2"]),
        (["b"], []),
    ]


def test_a_run_whose_submissions_are_not_all_known_is_no_copy(evaluated, world):
    for number in range(2):
        folder = evaluated(f"a/run_{number}", {"words": ["+", "+"]}, "x")
        path = folder / "words/checkpoint_2/evaluation.json"
        document = json.loads(path.read_text())
        document["provenance"]["digests"]["submission"] = None
        path.write_text(json.dumps(document))
    comparison = compared(world.folder / "a", evaluated("b", {"words": ["+"]}))
    assert comparison.sides[0].copies == []


def test_a_copy_without_a_verdict_is_a_copy(evaluated, world):
    for number, marks in enumerate("+!"):
        evaluated(f"a/run_{number}", {"words": [marks]}, "x")
    comparison = compared(world.folder / "a", evaluated("b", {"words": ["+"]}))
    assert comparison.sides[0].copies == ["run_1"]


def test_copies_of_a_run_change_no_p(evaluated, world):
    for number, text in enumerate("xyz"):
        evaluated(f"a/run_{number}", {"words": ["-"]}, text)
        evaluated(f"b/run_{number}", {"words": ["+"]}, f"other {text}")
    (before,) = compared(world.folder / "a", world.folder / "b").pairs
    evaluated("a/run_3", {"words": ["-"]}, "x")
    (after,) = compared(world.folder / "a", world.folder / "b").pairs
    assert (after.significance, after.checkpoints[0].p) == (before.significance, before.checkpoints[0].p)
    assert after.checkpoints[0].base.runs == 4, "the counts are of all runs"


def test_runs_of_a_folder_are_pooled_only_as_samples(evaluated, world):
    for number in range(2):
        evaluated(f"a/run_{number}", {"words": ["+"]}, str(number))
    with pytest.raises(UsageError, match="a: a folder of 2 runs; give --samples if all are samples of the same agent"):
        compare_sides([world.folder / "a", evaluated("b", {"words": ["+"]})], PassPolicy.ALL_CASES)


def test_a_comparison_loads_back(evaluated):
    comparison = compared(evaluated("a", {"words": ["+-", "!"]}), evaluated("b", {"words": ["-+", "+"]}))
    assert Comparison.model_validate_json(comparison.model_dump_json(), strict=True) == comparison


def test_one_side_alone_is_refused(evaluated):
    with pytest.raises(UsageError, match="two folders"):
        compared(evaluated("a", {"words": ["+"]}))
