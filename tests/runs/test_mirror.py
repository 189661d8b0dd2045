"""Mirrored trees: a layout for one run, another for several, and one evaluator for what they have in common."""

import pytest

from slop_code.errors import InfrastructureError, UsageError
from slop_code.execution.cache import Cache
from slop_code.runs import discover
from slop_code.runs.run_evaluation import RunSettings, open_runs


@pytest.fixture
def out(world):
    world.problem(count=1)
    for name in ("monday", "tuesday", "friday"):
        world.run(name, {"words": [name]})
    return world.folder / "out"


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        (["monday"], ["monday"], None),
        (["monday"], ["monday", "tuesday"], "holds the results of a single run"),
        (["monday", "tuesday"], ["monday"], "holds the results of several runs"),
        (["monday", "tuesday"], ["tuesday", "friday"], None),
    ],
)
def test_a_tree_has_one_layout(world, out, before, after, refused):
    for run in world.discover(*before, output=out):
        world.finish(run.submissions[0])
    if refused is None:
        assert len(world.discover(*after, output=out)) == len(after)
    else:
        with pytest.raises(UsageError, match=refused):
            world.discover(*after, output=out)


def test_a_problem_has_the_layout_of_a_single_run(world, out):
    for run in world.discover("monday", "tuesday", output=out):
        world.finish(run.submissions[0])
    problem = run.submissions[0].problem
    with pytest.raises(UsageError, match="holds the results of several runs"):
        discover.discover_problem(world.folder / "friday/words", problem, output=out)


def test_the_common_summary_has_one_writer_at_a_time(world, out):
    cache, settings = Cache(world.folder / "cache"), RunSettings(output=out)
    first = world.discover("monday", "tuesday", output=out)
    second = world.discover("friday", "tuesday", output=out)
    with open_runs(first, cache, settings):
        with pytest.raises(InfrastructureError, match=r"out: held by process \d+"), open_runs(second, cache, settings):
            pass
        with open_runs(second, cache, settings, lock=False):
            pass
    with open_runs(second, cache, settings):
        pass


def test_a_tree_that_cannot_be_made_is_named(world, out):
    runs = world.discover("monday", "tuesday", output=out)
    out.write_text("")
    settings = RunSettings(output=out)
    with pytest.raises(InfrastructureError, match=r"out: results cannot be written there"):
        with open_runs(runs, Cache(world.folder / "cache"), settings):
            pass
