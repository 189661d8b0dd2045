"""Search for the submission, problem and environment of a stored result."""

import pytest

from slop_code.errors import ConfigError, UsageError
from slop_code.execution.cache import Cache
from slop_code.runs.run_evaluation import RunSettings, open_runs
from slop_code.verification.rerun import RerunInputs, submission_of

LOCAL = "type: local\nname: {}\n"


@pytest.fixture
def stored(world):
    """A result in its run, with its folder."""
    world.problem()
    world.run()
    first = world.discover()[0].submissions[0]
    return world.results(first), first.output


def test_it_is_the_code_of_the_last_evaluation(world, stored):
    """With --snapshot-dir, and then without it."""
    results, folder = stored
    for checkpoint in ("checkpoint_1", "checkpoint_2", "checkpoint_3"):
        world.write({f"monday/words/{checkpoint}/final/main.py": "other"})
    for options, name in (({"snapshot_dir": "final"}, "final"), ({}, "snapshot")):
        runs = world.discover(**options)
        with open_runs(runs, Cache(world.folder / "cache"), RunSettings()) as evaluation:
            evaluation.remember_origins(None)
        found = submission_of(results, folder, RerunInputs())
        assert found.path == folder / name


def test_all_lies_beside_it(world, stored):
    results, folder = stored
    found = submission_of(results, folder, RerunInputs(problems_dir=world.problems))
    assert (found.path, found.problem.name, found.checkpoint.name) == (folder / "snapshot", "words", "checkpoint_1")
    assert (found.environment.name, found.output) == ("local", None)


@pytest.mark.parametrize(
    ("files", "given", "name"),
    [
        ([], None, "local"),
        (["monday/environment.yaml"], None, "monday/environment.yaml"),
        (["monday/words/environment.yaml", "monday/environment.yaml"], None, "monday/words/environment.yaml"),
        (["monday/environment.yaml", "mine.yaml"], "mine.yaml", "mine.yaml"),
    ],
)
def test_the_environment_is_the_given_one_or_the_nearest(world, stored, files, given, name):
    results, folder = stored
    world.write({file: LOCAL.format(file) for file in files})
    given = str(world.folder / given) if given else None
    found = submission_of(results, folder, RerunInputs(problems_dir=world.problems, environment=given))
    assert found.environment.name == name


def test_an_environment_that_is_wrong(world, stored):
    results, folder = stored
    world.write({"monday/environment.yaml": "type: cloud\n"})
    with pytest.raises(ConfigError, match=r"environment\.yaml"):
        submission_of(results, folder, RerunInputs(problems_dir=world.problems))


def test_another_snapshot_and_problem(world, stored):
    results, folder = stored
    world.write({"code/main.py": "x"})
    elsewhere = world.problems.rename(world.folder / "elsewhere")
    found = submission_of(
        results, folder, RerunInputs(snapshot=world.folder / "code", problem=str(elsewhere / "words"))
    )
    assert (found.path, found.problem.path) == (world.folder / "code", elsewhere / "words")


@pytest.mark.parametrize("given", ["here", "other/../here", "link", "link_above/here", "file", "next"])
def test_no_stored_result_is_written_over(world, stored, given):
    results, folder = stored
    stored_folder = folder.rename(folder.with_name("here"))
    for name in ("other", "file"):
        (stored_folder.parent / name).mkdir()
    (stored_folder / "snapshot").rename(world.folder / "code")
    (stored_folder.parent / "next" / "snapshot").mkdir(parents=True)
    (stored_folder.parent / "link").symlink_to("here")
    (stored_folder.parent / "link_above").symlink_to(".")
    (stored_folder.parent / "file" / "evaluation.json").symlink_to(stored_folder / "evaluation.json")
    found = {"snapshot": world.folder / "code", "problems_dir": world.problems}
    with pytest.raises(UsageError, match="a stored result or a submission lies there; give another folder with -o"):
        submission_of(results, stored_folder, RerunInputs(**found, output=stored_folder.parent / given))
    assert submission_of(results, stored_folder, RerunInputs(**found, output=stored_folder.parent / "other"))


@pytest.mark.parametrize(
    ("keys", "gone", "words"),
    [
        ({}, "snapshot", "no such folder; give --snapshot"),
        ({"problem_name": "deeds"}, None, "no problem 'deeds' in .*; give the path of its folder, or its parent"),
        ({"problem_name": "../words"}, None, "which is no name; give -p"),
        ({"checkpoint_name": "checkpoint_9"}, None, "no checkpoint 'checkpoint_9'"),
    ],
)
def test_a_missing_input_is_a_usage_error(world, stored, keys, gone, words):
    results, folder = stored
    if gone:
        (folder / gone).rename(folder / "elsewhere")
    with pytest.raises(UsageError, match=words):
        submission_of(results.model_copy(update=keys), folder, RerunInputs(problems_dir=world.problems))


def test_the_problem_of_another_result(world, stored):
    results, folder = stored
    other = world.problem("deeds")
    with pytest.raises(UsageError, match="this is 'deeds', and the result is of 'words'"):
        submission_of(results, folder, RerunInputs(problem=str(other)))
