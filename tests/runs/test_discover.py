"""Discovery of runs: submissions and issues of run folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.environment import load_environment
from slop_code.runs.discover import discover, discover_problem
from slop_code.runs.folders.mirror import snapshot_around

AS_NOBODY = """
import json, os, sys
from pathlib import Path
from slop_code.execution.environment import load_environment
from slop_code.runs.discover import discover

spec, problems = load_environment("local"), Path(sys.argv[1])
for user in (0, 65534):  # first as root, who can import what is needed from where it lies
    os.seteuid(user)
    runs = [discover([Path(name)], problems_dir=problems, environment=spec)[0] for name in sys.argv[2:]]
found = [[len(run.submissions), [[issue.label, issue.reason] for issue in run.issues]] for run in runs]
print(json.dumps(found))
"""


STEP = "give the folder that holds it as --problems-dir"
OF_RUN = "type: local\nname: run\n"


@pytest.fixture
def monday(world):
    world.problem()
    return world.run()


def labels(run):
    return [submission.label for submission in run.submissions]


def issues(run):
    return {issue.label: issue.reason for issue in run.issues}


def test_each_snapshot_in_the_order_of_the_checkpoints(world):
    world.problem("words", checkpoints={"last": {"order": 9}, "a10": {"order": 1}, "a2": {"order": 2}})
    world.problem("ants", 1)
    world.write({f"monday/words/{name}/snapshot/main.py": name for name in ("last", "a10", "a2")})
    world.run(snapshots={"ants": ["x"]})
    [run] = world.discover()
    assert labels(run) == [
        "monday/ants/checkpoint_1", "monday/words/a10", "monday/words/a2", "monday/words/last",
    ]  # fmt: skip
    assert (run.name, run.folder, run.issues) == ("monday", world.folder / "monday", ())
    first = run.submissions[0]
    assert first.output == world.folder / "monday/ants/checkpoint_1"
    assert first.path == first.output / "snapshot"
    assert first.environment == load_environment("local")


def test_a_folder_of_no_problem_is_ignored(world, monday):
    world.write({
        "monday/logs/agent.log": "", "monday/notes.txt": "", "monday/.git/words/snapshot/main.py": "",
        "monday/.words/checkpoint_1/snapshot/main.py": "", "monday/words/.tmp/snapshot/main.py": "",
        "monday/words/drafts/main.py": "", "monday/words/evaluation.log": "", "monday/summary.json": "{}",
    })  # fmt: skip
    (monday / "gone").symlink_to("nowhere")
    (monday / "loop").symlink_to("loop")
    (monday / "words" / "loop").symlink_to("loop")
    os.mkfifo(monday / "pipe")
    [run] = world.discover()
    assert len(run.submissions) == 3
    assert issues(run) == {}


def test_an_unknown_problem_with_snapshots_is_an_issue(world, monday):
    world.run(snapshots={"other": ["x"]})
    [run] = world.discover()
    assert len(run.submissions) == 3
    assert issues(run) == {"monday/other/checkpoint_1": f"no such problem in {world.problems}; {STEP}"}


@pytest.mark.parametrize(
    ("given", "folder_name", "reason"),
    [
        (True, "problems", f"no such problem in {{}}; {STEP}"),
        (False, "problems", "no such problem in problems; give --problems-dir"),
        (False, "nowhere", "problems: there is no such folder of problems; give --problems-dir"),
        (True, "problems/words", "{} is itself a problem; give the folder that holds it as --problems-dir"),
    ],
)
def test_the_issue_says_why_a_problem_is_unknown(world, monday, monkeypatch, given, folder_name, reason):
    """Each checkpoint on disk is planned, and none is evaluated."""
    world.run("tuesday", {"other": [str(number) for number in range(11)]})
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    if folder_name == "nowhere" and not given:
        (world.folder / "empty").mkdir()
    monkeypatch.chdir(world.folder / "empty" if folder_name == "nowhere" and not given else world.folder)
    [run] = discover([world.folder / "tuesday"], problems_dir=world.folder / folder_name if given else None)
    assert {one.reason for one in run.issues} == {reason.format(world.folder / folder_name)}
    assert [(one.checkpoint, one.order) for one in run.issues] == [(f"checkpoint_{n}", n) for n in range(1, 12)]


def test_an_error_in_a_problem_skips_that_problem_alone(world, monday):
    world.problem("broken", timeout="soon")
    world.run(snapshots={"broken": ["x"]})
    (world.problems / "empty").mkdir()
    world.run(snapshots={"empty": ["x"]})
    [run] = world.discover()
    assert len(run.submissions) == 3
    assert set(issues(run)) == {"monday/broken/checkpoint_1", "monday/empty/checkpoint_1"}
    assert "timeout" in issues(run)["monday/broken/checkpoint_1"]


def remove(checkpoint):
    shutil.rmtree(checkpoint)


def no_snapshot(checkpoint):
    shutil.rmtree(checkpoint / "snapshot")


def a_file(checkpoint):
    no_snapshot(checkpoint)
    (checkpoint / "snapshot").write_text("")


def a_broken_link(checkpoint):
    no_snapshot(checkpoint)
    (checkpoint / "snapshot").symlink_to("nowhere")


def a_loop(checkpoint):
    no_snapshot(checkpoint)
    (checkpoint / "snapshot").symlink_to("snapshot")


def a_checkpoint_that_loops(checkpoint):
    remove(checkpoint)
    checkpoint.symlink_to(checkpoint.name)


def a_checkpoint_that_is_a_file(checkpoint):
    remove(checkpoint)
    checkpoint.write_text("")


@pytest.mark.parametrize(
    "spoil",
    [remove, no_snapshot, a_file, a_broken_link, a_loop, a_checkpoint_that_loops, a_checkpoint_that_is_a_file],
)
def test_a_checkpoint_without_a_snapshot_is_an_issue(world, monday, spoil):
    checkpoint = monday / "words" / "checkpoint_2"
    spoil(checkpoint)
    [run] = world.discover()
    assert labels(run) == ["monday/words/checkpoint_1", "monday/words/checkpoint_3"]
    assert list(issues(run)) == ["monday/words/checkpoint_2"]
    assert issues(run)["monday/words/checkpoint_2"] == f"{checkpoint / 'snapshot'}: no snapshot"


@pytest.mark.parametrize("spoil", ["file", "broken link", "loop"])
def test_a_known_problem_whose_folder_is_none(world, monday, spoil):
    """It is said: otherwise a whole problem would be missing from the numbers."""
    shutil.rmtree(monday / "words")
    if spoil == "file":
        (monday / "words").write_text("")
    else:
        (monday / "words").symlink_to("nowhere" if spoil == "broken link" else "words")
    for only in ((), ("words",)):
        [run] = world.discover(only=only)
        assert (labels(run), list(issues(run))) == ([], ["monday/words"])
        assert f"{monday / 'words'}: cannot be read" in issues(run)["monday/words"]


def test_a_checkpoint_that_the_problem_lacks_is_an_issue(world, monday):
    world.write({"monday/words/checkpoint_9/snapshot/main.py": ""})
    [run] = world.discover()
    assert len(run.submissions) == 3
    stranger = monday / "words" / "checkpoint_9"
    assert issues(run) == {"monday/words": f"{stranger}: the problem has no such checkpoint"}


def test_a_name_that_is_too_long_is_an_issue(world):
    world.problem(checkpoints={"a" * 255: {}, "b" * 256: {}})
    world.write({f"monday/words/{'a' * 255}/snapshot/main.py": ""})
    [run] = world.discover()
    assert len(run.submissions) == 1
    [(label, reason)] = issues(run).items()
    assert label.endswith("b" * 256)
    assert "name too long" in reason


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, for whom the folder is closed")
def test_a_folder_that_cannot_be_read_is_an_issue():
    """In a folder of its own, since pytest's are closed for others."""
    cases = {
        "": (0, "monday"),
        "words": (0, "monday/words"),
        "words/checkpoint_1": (1, "monday/words/checkpoint_1"),
        "words/checkpoint_1/snapshot": (1, "monday/words/checkpoint_1"),
    }
    config = "{name: words, version: 1, description: '', tags: [], entry_file: main.py, checkpoints: {%s}}"
    names = ["checkpoint_1", "checkpoint_2"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "words").mkdir()
        (folder / "words/config.yaml").write_text(config % ", ".join(f"{name}: {{}}" for name in names))
        runs = [folder / str(number) / "monday" for number in range(len(cases))]
        for run, closed in zip(runs, cases, strict=True):
            for checkpoint in names:
                (run / "words" / checkpoint / "snapshot").mkdir(parents=True)
            (run / closed).chmod(0o700)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, folder, *runs], capture_output=True, text=True, timeout=60, check=True
        )
    found = json.loads(done.stdout)
    assert [(count, *(label for label, _ in said)) for count, said in found] == list(cases.values())
    for _, [[_, reason]] in found:
        assert reason.endswith("cannot be read: Permission denied; let this user read it")


def test_the_run_s_own_environment(world, monday):
    world.write({"monday/environment.yaml": "type: local\nname: own\nisolation: none\n"})
    [run] = world.discover()
    assert {submission.environment.name for submission in run.submissions} == {"own"}
    [run] = world.discover(environment=load_environment("local"))
    assert {submission.environment.name for submission in run.submissions} == {"local"}


@pytest.mark.parametrize("content", ["type: nonsense\nname: x\n", ": [", "", None])
def test_an_error_in_an_environment_skips_its_run_alone(world, monday, content):
    world.run("tuesday")
    if content is None:
        (monday / "environment.yaml").symlink_to("nowhere")
    else:
        world.write({"monday/environment.yaml": content})
    first, second = world.discover("monday", "tuesday")
    expected = [f"monday/words/checkpoint_{number}" for number in (1, 2, 3)]
    assert (labels(first), list(issues(first))) == ([], expected)
    assert all("environment.yaml" in reason for reason in issues(first).values())
    assert len(second.submissions) == 3
    [run] = world.discover(environment=load_environment("local"))
    assert len(run.submissions) == 3


def test_the_environment_of_one_problem_goes_before_that_of_the_run(world, monday):
    world.problem("ants", 1)
    world.run(snapshots={"ants": ["x"]})
    world.write({"monday/environment.yaml": OF_RUN, "monday/ants/environment.yaml": "type: local\nname: nearer\n"})

    def environments(**options):
        [run] = world.discover(**options)
        return {one.problem.name: one.environment.name for one in run.submissions}

    assert environments() == {"ants": "nearer", "words": "run"}
    assert environments(environment=load_environment("local")) == {"ants": "local", "words": "local"}
    world.write({"monday/environment.yaml": "type: nonsense\n"})
    assert environments() == {"ants": "nearer"}
    world.write({"monday/environment.yaml": OF_RUN, "monday/ants/environment.yaml": "type: nonsense\n"})
    assert environments() == {"words": "run"}
    assert list(issues(world.discover()[0])) == ["monday/ants/checkpoint_1"]
    assert environments(environment=load_environment("local")) == {"ants": "local", "words": "local"}


def test_a_problem_s_own_environment_goes_before_the_usual_one_alone(world, monday):
    (world.problems / "words" / "environment.yaml").write_text("type: local\nname: problem\n")

    def environments(**options):
        [run] = world.discover(**options)
        return {one.environment.name for one in run.submissions}

    assert environments() == {"problem"}
    assert environments(environment=load_environment("local")) == {"local"}
    world.write({"monday/environment.yaml": OF_RUN})
    assert environments() == {"run"}


def test_probable_mistakes_are_warnings(world, monday):
    world.problem("ants", 1, tymeout=3)
    world.run(snapshots={"ants": ["x"]})
    world.write({
        "monday/environment.yaml": f"{OF_RUN}colour: red\n", "monday/environment.yml": OF_RUN,
        "monday/words/environment.yml": OF_RUN,
    })  # fmt: skip
    [run] = world.discover()
    lines = (world.problems / "ants/config.yaml").read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(lines) if "tymeout" in text)
    assert run.warnings == [
        f"{monday}/environment.yml: ignored; an environment is called environment.yaml",
        f"{monday}/words/environment.yml: ignored; an environment is called environment.yaml",
        f"{world.problems}/ants/config.yaml:{line}: unknown key tymeout (ignored); did you mean 'timeout'?",
        f"{monday}/environment.yaml:{len(OF_RUN.splitlines()) + 1}: unknown key colour (ignored)",
    ]
    assert {one.environment.name for one in run.submissions} == {"run"}


def test_an_empty_run_does_not_stop_the_others(world, monday):
    (world.folder / "empty").mkdir()
    first, second = world.discover("monday", "empty")
    assert (len(first.submissions), first.issues) == (3, ())
    reason = f"{world.folder / 'empty'}: nothing to evaluate; expected <problem>/<checkpoint>/snapshot"
    assert issues(second).keys() == {"empty"}
    assert issues(second)["empty"].startswith(reason)
    assert world.discover("empty")[0].issues == (), "alone, it is for the caller to refuse"


@pytest.mark.parametrize("path", ["snapshot", "snapshot/deep", "link"])
def test_a_folder_in_a_snapshot_is_refused(world, monday, path):
    """Results would be written into what is evaluated."""
    inside = monday / "words/checkpoint_1"
    (inside / "snapshot/deep").mkdir()
    (inside / "link").symlink_to("snapshot/deep")
    with pytest.raises(UsageError, match="lies in a snapshot, where nothing is ever written"):
        discover([inside / path], problems_dir=world.problems)
    with pytest.raises(UsageError, match="lies in a snapshot, where nothing is ever written"):
        discover_problem(inside / path, ProblemConfig.from_yaml(world.problems / "words"))


@pytest.mark.parametrize(
    ("path", "snapshot"),
    [
        ("monday/words/checkpoint_1/snapshot", "monday/words/checkpoint_1/snapshot"),
        ("monday/words/checkpoint_1/snapshot/not/there", "monday/words/checkpoint_1/snapshot"),
        ("monday/words/checkpoint_9/snapshot/x", "monday/words/checkpoint_9/snapshot"),
        ("elsewhere/x", "monday/words/checkpoint_2/snapshot"),
        ("loop/x", None),
        ("monday/out", None),
        ("monday/words/checkpoint_1/out", None),
        ("snapshot/out", None),
    ],
)
def test_what_lies_in_a_snapshot(world, monday, path, snapshot):
    shutil.move(monday / "words/checkpoint_2/snapshot", world.folder / "elsewhere")
    (monday / "words/checkpoint_2/snapshot").symlink_to(world.folder / "elsewhere")
    (world.folder / "loop").symlink_to("loop")
    assert snapshot_around(world.folder / path, world.discover()) == (snapshot and world.folder / snapshot)


@pytest.mark.parametrize(
    ("path", "snapshot"),
    [("words/checkpoint_9/code/x", "words/checkpoint_9/code"), ("words/checkpoint_9/snapshot/x", None)],
)
def test_what_lies_in_a_snapshot_of_another_name(world, monday, path, snapshot):
    runs = world.discover(snapshot_dir="code")
    assert snapshot_around(monday / path, runs) == (snapshot and monday / snapshot)


def test_two_runs_of_one_name_go_by_their_paths(world, monday, monkeypatch):
    for name in ("a/monday", "b/monday", "tuesday"):
        world.run(name)
    monkeypatch.chdir(world.folder)
    folders = [Path("a/monday"), Path("b/monday"), Path("tuesday")]
    assert [run.name for run in discover(folders, problems_dir=world.problems)] == ["a/monday", "b/monday", "tuesday"]


def test_every_run_has_a_name_of_its_own(world, monday, monkeypatch):
    for name in ("a/monday", "b/monday", "c/link"):
        world.run(name)
    (world.folder / "link").symlink_to("a/monday")
    monkeypatch.chdir(world.folder)
    folders = [Path("link"), Path("b/monday"), Path("c/link")]
    names = [run.name for run in discover(folders, problems_dir=world.problems)]
    assert len(set(names)) == 3


def test_the_name_of_a_run_is_text(world, monday):
    name = os.fsdecode(b"\xff-monday")
    monday.rename(world.folder / name)
    assert [run.name for run in world.discover(name)] == ["\\xff-monday"]


@pytest.mark.parametrize("again", ["monday", "monday/../monday", "link"])
def test_a_run_that_is_given_twice_is_rejected(world, monday, again):
    (world.folder / "link").symlink_to("monday")
    with pytest.raises(UsageError, match=f"{monday}: given twice"):
        world.discover("monday", again)


@pytest.mark.parametrize(
    ("name", "words"),
    [("nothing", "there is no such folder"), ("file", "not a folder"), ("gone", "not a folder"), ("loop", "not a")],
)
def test_a_file_in_place_of_a_run_folder_is_rejected(world, monday, name, words):
    (world.folder / "file").write_text("")
    (world.folder / "gone").symlink_to("nowhere")
    (world.folder / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match=f"{name}: {words}"):
        world.discover("monday", name)
    with pytest.raises(UsageError, match=f"{name}: {words}"):
        discover_problem(world.folder / name, ProblemConfig.from_yaml(world.problems / "words"))


def test_the_same_problem_under_two_folders(world, monday):
    """By the name in its config.yaml it would be counted once."""
    shutil.copytree(world.problems / "words", world.problems / "again")
    shutil.copytree(monday / "words", monday / "again")
    shutil.rmtree(monday / "again" / "checkpoint_3")
    [run] = world.discover()
    assert labels(run) == ["monday/words/checkpoint_3"]
    assert issues(run)["monday/words/checkpoint_1"] == "two folders of this run hold this problem"


def test_two_checkpoints_that_are_one_folder(world, monday):
    """Each would overwrite the result of the other."""
    shutil.rmtree(monday / "words" / "checkpoint_2")
    (monday / "words" / "checkpoint_2").symlink_to("checkpoint_1")
    [run] = world.discover()
    assert labels(run) == ["monday/words/checkpoint_3"]
    assert set(issues(run)) == {"monday/words/checkpoint_1", "monday/words/checkpoint_2"}


def test_only_the_chosen_problems_are_discovered(world, monday):
    world.problem("ants", 1)
    world.run(snapshots={"ants": ["x"], "other": ["x"]})
    (monday / "logs").mkdir()
    [run] = world.discover(only=["ants"])
    assert (labels(run), issues(run)) == (["monday/ants/checkpoint_1"], {})
    world.run("tuesday", {"nothing": ["x"]})
    run, _ = world.discover("monday", "tuesday", only=["ants", "nothing", "logs", "other"])
    assert labels(run) == ["monday/ants/checkpoint_1"]
    assert {label: reason.partition(" in ")[0] for label, reason in issues(run).items()} == {
        "monday/nothing": "no such problem", "monday/logs": "no such problem",
        "monday/other/checkpoint_1": "no such problem",
    }  # fmt: skip


def test_a_problem_that_no_run_has_is_a_mistake(world, monday):
    world.run("tuesday")
    world.write({"monday/notes.txt": ""})
    with pytest.raises(
        UsageError, match=f"no problem 'wrods' in {monday}, {world.folder / 'tuesday'}; did you mean 'words'\\?$"
    ):
        world.discover("monday", "tuesday", only=["words", "wrods"])


@pytest.mark.parametrize("name", ["", ".", "..", "words/checkpoint_1", "/"])
def test_what_is_no_name_of_a_problem(world, monday, name):
    with pytest.raises(UsageError, match="no problem "):
        world.discover(only=[name])


def test_a_problem_may_be_called_as_a_folder_is(world, monday):
    assert len(world.discover(only=["words/"])[0].submissions) == 3


def test_one_problem_s_folder_belongs_to_its_run(world, monday):
    problem = ProblemConfig.from_yaml(world.problems / "words")
    run = discover_problem(monday / "words", problem)
    assert (run.name, run.folder, labels(run)) == ("monday", monday / "words", labels(world.discover()[0]))
    world.write({"monday/environment.yaml": "type: local\nname: run\n"})
    assert discover_problem(monday / "words", problem).submissions[0].environment.name == "run"
    world.write({"monday/words/environment.yaml": "type: local\nname: nearer\n"})
    assert discover_problem(monday / "words", problem).submissions[0].environment.name == "nearer"
    given = discover_problem(monday / "words", problem, load_environment("local"))
    assert given.submissions[0].environment.name == "local"
    world.write({"monday/words/environment.yaml": "type: nonsense\n"})
    assert list(issues(discover_problem(monday / "words", problem))) == labels(given)
    assert given.within == monday
