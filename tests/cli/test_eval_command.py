"""`eval`, `eval-problem` and `merge` as a user meets them: exit statuses, what is said and what is written."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from slop_code.cli.main import run
from slop_code.cli.shared_options import merge_command
from slop_code.cli.signals import interrupts
from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.folders.run_lock import STATE_DIR
from slop_code.runs.jobs.run_control import RunControl
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.summary import RunSummary
from tests.command import SLOP_CODE
from tests.plugin_packages import install_package
from tests.reporting.html_runs import data_of

TESTS = {
    "test_checkpoint_1.py": """
        def test_upper(run):
            assert run("abc").stdout == "ABC\\n"
    """,
    "test_checkpoint_2.py": """
        def test_two_words(run):
            assert run("abc", "def").stdout == "ABC DEF\\n"
    """,
}
GOOD = "import sys\nprint(*[word.upper() for word in sys.argv[1:]])\n"
POOR = "import sys\nprint(sys.argv[1].upper() if len(sys.argv) == 2 else '')\n"
BROKEN = "print()\n"


def make_run(folder, *contents, problem="words"):
    for number, content in enumerate(contents, start=1):
        snapshot = folder / problem / f"checkpoint_{number}" / "snapshot"
        snapshot.mkdir(parents=True)
        (snapshot / "main.py").write_text(content)
    return folder


@pytest.fixture(scope="module")
def evaluated(make_problem, cache, need_bubblewrap, tmp_path_factory):
    """Two runs, evaluated by one command: what it said, and the folder with `good`, `poor` and `problems`."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("evaluated")
    shutil.copytree(make_problem(TESTS, config={"name": "words"}).path, folder / "problems/words")
    make_run(folder / "good", GOOD, GOOD)
    make_run(folder / "poor", POOR, POOR)
    argv = [SLOP_CODE, "eval", "good", "poor", "--problems-dir", "problems", "-j", "2"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=250)
    assert "Traceback" not in done.stderr
    mirrored = subprocess.run([*argv, "-o", "both/of them"], cwd=folder, capture_output=True, text=True, timeout=250)
    assert (mirrored.returncode, mirrored.stdout) == (done.returncode, done.stdout)
    return folder, done


@pytest.fixture
def folder(evaluated, tmp_path, monkeypatch):
    """A copy of them, to work in."""
    shutil.copytree(evaluated[0], tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", "problems")
    return tmp_path / "here"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A run that nobody has evaluated, in a cache of its own: for what ends before anything runs."""
    config = "{name: words, version: 1, description: '', tags: [], entry_file: a.py, checkpoints: {checkpoint_1: {}}}"
    (tmp_path / "problems/words/tests").mkdir(parents=True)
    (tmp_path / "problems/words/config.yaml").write_text(config)
    (tmp_path / "problems/words/tests/test_checkpoint_1.py").write_text("")
    make_run(tmp_path / "good", GOOD)
    make_run(tmp_path / "other/good", GOOD)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", "problems")
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def everything(folder):
    """Files and when they were written, but for what is ours alone."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path: path.stat().st_mtime_ns for path in found if STATE_DIR not in path.parts and "cache" not in path.parts
    }


def test_two_runs_are_evaluated_by_one_command(evaluated):
    folder, done = evaluated
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("NOT PASSED (all-cases): 3 of 4 checkpoints")
    assert "\x1b" not in done.stdout + done.stderr
    for name, states in (("good", [True, True]), ("poor", [True, False])):
        lines = read_lines(folder / name / LINES_FILE)
        assert [line.passed["all-cases"] for line in lines] == states
        assert {line.run for line in lines} == {name}
        assert all((folder / name / line.evaluation).is_file() for line in lines)
        assert list(RunSummary.load(folder / name / SUMMARY_FILE).runs) == [name]
    both = RunSummary.load(folder / "both/of them" / SUMMARY_FILE)
    assert list(both.runs) == ["good", "poor"]
    assert both.totals.checkpoints.evaluated == 4


def test_the_combined_lines_lead_to_the_results(evaluated):
    """From where they lie."""
    output = evaluated[0] / "both/of them"
    lines = read_lines(output / LINES_FILE)
    assert len(lines) == 4
    assert all((output / line.evaluation).is_file() for line in lines)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["good"], 0),
        (["poor"], 1),
        (["poor", "--pass-policy", "any"], 0),
        (["good", "poor"], 1),
        (["poor", "--problem", "words"], 1),
        (["good", "--shard", "2/2"], 0),
        (["poor", "--shard", "1/2"], 0),
        (["poor", "--shard", "2/2"], 1),
    ],
)
def test_the_exit_status_of_up_to_date_results_follows_the_policy(folder, slop_code, arguments, status):
    before = everything(folder / "good" / "words")
    assert slop_code("eval", *arguments)[0] == status
    assert everything(folder / "good" / "words") == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["good"], "· nothing to do: 2 up to date\n"),
        (["good", "poor"], "· nothing to do: 4 up to date\n"),
        (["good", "--json"], "· nothing to do: 2 up to date\n"),
        (["good", "--dry-run"], None),
    ],
)
def test_up_to_date_runs_say_that_nothing_is_to_do(folder, slop_code, arguments, line):
    err = slop_code("eval", *arguments)[2]
    assert line in err if line else "nothing to do" not in err
    assert "nothing to do" not in slop_code("-q", "eval", *arguments)[2]


def test_the_report_of_up_to_date_runs_is_that_of_the_stored_results(folder, slop_code):
    status, _, err = slop_code("eval", "good", "poor", "--report", "live.html")
    assert status == 1
    assert f"written, and kept current until the end: {(folder / 'live.html').as_uri()}" in err
    assert slop_code("report", "good", "poor", "-o", "stored.html")[0] == 0
    assert data_of(folder / "live.html") == data_of(folder / "stored.html")
    assert slop_code("-q", "eval-problem", "poor/words", "--report", "live.html")[0] == 1
    assert data_of(folder / "live.html")["live"] is None


def test_a_report_that_cannot_be_written_changes_no_exit_status(folder, slop_code):
    name = "x" * 250  # there is no room for the name of the temporary file
    status, out, err = slop_code("eval", "good", "--report", name)
    assert (status, "PASSED (all-cases)" in out) == (0, True)
    assert err.count(f"warning: the report cannot be written: {name}") == 1
    assert "kept current" not in err


def test_a_wrong_path_of_a_report_is_refused_before_anything_is_evaluated(folder, slop_code):
    (folder / "file").write_text("no folder")
    before = everything(folder)
    for path, reason in [("file/live.html", "file is not a folder"), ("x" * 300, "File name too long")]:
        status, out, err = slop_code("eval", "good", "--overwrite", "--report", path)
        assert (status, out) == (2, "")
        assert f"{reason}; give another path with --report" in err
    assert everything(folder) == before


def test_json_is_the_summary(folder, slop_code):
    status, out, _ = slop_code("eval", "poor", "--json")
    assert status == 1
    assert json.loads(out) == json.loads((folder / "poor" / SUMMARY_FILE).read_text())


def test_a_dry_run_changes_nothing(folder, slop_code):
    (folder / "poor/words/checkpoint_2/snapshot/main.py").write_text(BROKEN)
    (folder / "good/words/checkpoint_1/evaluation.json").unlink()
    before = everything(folder)
    status, out, _ = slop_code("eval", "good", "poor", "--dry-run", "--json")
    assert status == 0
    plan = json.loads(out)
    assert {job["submissions"][0]: (job["action"], job["reason"]) for job in plan["jobs"]} == {
        "good/words/checkpoint_1": ("store", "no result yet"),
        "poor/words/checkpoint_2": ("run", "the submission changed"),
    }
    assert all(job["expected_seconds"] > 0 for job in plan["jobs"])
    assert sorted(plan["up_to_date"]) == ["good/words/checkpoint_2", "poor/words/checkpoint_1"]
    status, out, _ = slop_code("eval", "good", "poor", "--dry-run")
    assert status == 0
    assert "poor/words/checkpoint_2" in out
    assert "the submission changed" in out
    assert everything(folder) == before


def test_a_missing_snapshot_is_an_infrastructure_failure(folder, slop_code):
    shutil.rmtree(folder / "good/words/checkpoint_2/snapshot")
    status, out, _ = slop_code("eval", "good")
    assert status == 3
    assert "no snapshot" in out
    summary = RunSummary.load(folder / "good" / SUMMARY_FILE)
    counted = summary.totals.checkpoints
    assert (counted.planned, counted.evaluated, counted.not_looked_at_again) == (2, 2, 1)
    assert [issue.label for issue in summary.issues] == ["good/words/checkpoint_2"]
    status, out, _ = slop_code("eval", "good", "--dry-run", "--json")
    assert (status, [issue["label"] for issue in json.loads(out)["issues"]]) == (3, ["good/words/checkpoint_2"])


def test_a_bad_run_does_not_affect_another(folder, slop_code):
    (folder / "poor/environment.yaml").write_text("type: nonsense\n")
    before = everything(folder / "poor/words")
    status, out, _ = slop_code("eval", "good", "poor")
    assert status == 3
    assert "environment.yaml" in out
    assert RunSummary.load(folder / "good" / SUMMARY_FILE).totals.checkpoints.evaluated == 2
    assert everything(folder / "poor/words") == before
    counted = RunSummary.load(folder / "poor" / SUMMARY_FILE).totals.checkpoints
    assert (counted.planned, counted.evaluated, counted.not_looked_at_again) == (2, 2, 2)


def test_an_empty_run_does_not_affect_another(folder, slop_code):
    (folder / "empty").mkdir()
    (folder / "good" / SUMMARY_FILE).unlink()
    status, out, _ = slop_code("eval", "good", "empty")
    assert status == 3
    assert "issue empty: empty: nothing to evaluate" in out
    assert out.splitlines()[-1] == "NO VERDICT on the whole: 1 issue; 2 of 2 checkpoints passed (all-cases)"
    assert (folder / "good" / SUMMARY_FILE).is_file()
    assert list((folder / "empty").iterdir()) == []


def test_a_run_without_any_snapshot_has_a_summary_that_says_so(folder, slop_code):
    for path in (folder / "good/words").glob("*/snapshot"):
        shutil.rmtree(path)
        (path.parent / "evaluation.json").unlink()
    assert slop_code("eval", "good")[0] == 3
    counted = RunSummary.load(folder / "good" / SUMMARY_FILE).totals.checkpoints
    assert (counted.planned, counted.evaluated) == (2, 0)
    assert [line.order for line in read_lines(folder / "good" / LINES_FILE)] == [1, 2]


def test_results_that_were_handed_on_without_snapshots_keep_their_summary(folder, slop_code):
    for path in (folder / "good/words").glob("*/snapshot"):
        shutil.rmtree(path)
    before = everything(folder / "good")
    status, out, err = slop_code("eval", "good")
    assert (status, out) == (2, "")
    assert "`slop-code report good`" in err
    assert "`slop-code verify good`" in err
    status, _, err = slop_code("eval", "good", "poor")
    assert status == 3
    assert "warning: good: results, but no snapshot to evaluate" in err
    assert everything(folder / "good") == before


def test_one_problem_alone_does_not_replace_the_summary(folder, slop_code):
    before = everything(folder)
    status, out, err = slop_code("eval", "poor", "--problem", "words/", "-e", "local")
    assert status == 1
    assert out.splitlines()[-1] == "NOT PASSED (all-cases): 1 of 2 checkpoints"
    assert "`slop-code merge RUN_DIR -e local` writes that of the whole" in err
    assert everything(folder) == before


def test_after_a_part_was_regraded_elsewhere_the_next_step_leaves_the_run_as_it_is(folder, slop_code):
    assert slop_code("eval", "good", "-o", "out of it")[0] == 0
    before = files_of(folder / "good")
    status, _, err = slop_code("regrade", "good", "-o", "out of it", "--problem", "words")
    assert (status, "`slop-code merge RUN_DIR -o 'out of it'` writes that of the whole run" in err) == (0, True)
    assert slop_code("merge", "good", "-o", "out of it")[0] == 0
    assert files_of(folder / "good") == before


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ({}, "slop-code merge RUN_DIR"),
        ({"environment": "a b", "output": Path("out")}, "slop-code merge RUN_DIR -e 'a b' -o out"),
        ({"snapshot_dir": "code"}, "slop-code merge RUN_DIR --snapshot-dir code"),
    ],
)
def test_the_command_that_merges_has_the_options_that_matter(options, command):
    defaults = {"environment": None, "output": None, "snapshot_dir": "snapshot"}
    assert merge_command(argparse.Namespace(**{**defaults, **options})) == command


def test_an_executor_that_is_not_there_is_refused_even_if_nothing_is_to_run(folder, slop_code):
    status, out, err = slop_code("eval", "good", "--executor", "nothing")
    assert (status, out) == (2, "")
    assert "no executor 'nothing'" in err


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_probable_mistake_is_one_warning(folder, slop_code, options):
    (folder / "good/environment.yml").write_text("")
    _, out, err = slop_code("eval", "good", "poor", *options)
    [warning] = [line for line in err.splitlines() if "warning" in line]
    assert warning == "· warning: good/environment.yml: ignored; an environment is called environment.yaml"
    assert "warning" not in out


def test_a_shard_compares_nothing_and_estimates_nothing(folder, slop_code):
    status, out, _ = slop_code("eval", "good", "poor", "--shard", "1/2")
    assert status == 0
    assert "broke -, recovered -" in out
    assert "pass@" not in out
    assert json.loads(slop_code("eval", "good", "poor", "--shard", "1/2", "--json")[1])["samples"] is None
    assert slop_code("eval", "good", "--shard", "3/3")[:2] == (0, "nothing in this shard\n")


@pytest.mark.parametrize(("ignored", "stopped"), [(False, True), (True, False)])
def test_a_terminal_that_goes_away_ends_what_runs(ignored, stopped):
    """Unless it was told not to mind, as by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    control = RunControl()
    try:
        with interrupts(control, lambda: None):
            signal.raise_signal(signal.SIGHUP)
        assert control.stopped is stopped
        assert signal.getsignal(signal.SIGHUP) is (signal.SIG_IGN if ignored else signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_infrastructure_failure_has_exit_status_3(folder, slop_code):
    (folder / "problems/words/tests/test_checkpoint_2.py").write_text("import no_such_module\n")
    (folder / "good/words/checkpoint_2/snapshot/new.txt").touch()  # there is no verdict on it yet
    status, out, _ = slop_code("eval", "good", "--retries", 0)
    assert status == 3
    assert "no_such_module" in out
    lines = read_lines(folder / "good" / LINES_FILE)
    assert [line.state for line in lines] == ["evaluated", "infrastructure_failure"]
    assert "no_such_module" in lines[1].reason
    assert (folder / "good" / lines[1].evaluation).is_file()


def test_an_environment_that_this_machine_cannot_have(folder, slop_code):
    """Costs the run that wants it; alone, it is said before anything begins."""
    spec = "{type: docker, name: none, docker: {image: none, binary: no-such-engine}}"
    (folder / "poor/environment.yaml").write_text(spec)
    (folder / "good/words/checkpoint_1/snapshot/new.txt").write_text(uuid.uuid4().hex)  # in no store yet
    assert slop_code("eval", "good", "poor", "--retries", 0)[0] == 3
    assert [line.state for line in read_lines(folder / "good" / LINES_FILE)] == ["evaluated"] * 2
    lines = read_lines(folder / "poor" / LINES_FILE)
    assert all("no-such-engine" in line.not_looked_at_again for line in lines)
    assert [line.state for line in lines] == ["evaluated"] * 2, "the verdicts of the earlier environment stay"
    status, out, err = slop_code("eval", "poor")
    assert (status, out) == (3, "")
    assert "no-such-engine" in err


def test_only_what_changed_runs_again(folder, slop_code):
    (folder / "good/words/checkpoint_2/snapshot/main.py").write_text(POOR)
    before = everything(folder / "good/words/checkpoint_1")
    status, _, err = slop_code("eval", "good", "--no-live-progress")
    assert status == 1
    assert "good/words/checkpoint_2" in err
    assert "good/words/checkpoint_1" not in err
    assert everything(folder / "good/words/checkpoint_1") == before
    [line] = [line for line in read_lines(folder / "good" / LINES_FILE) if line.checkpoint == "checkpoint_2"]
    assert (line.passed["all-cases"], line.regressions.introduced) == (False, 0)


def test_a_tree_beyond_the_limits_is_a_verdict_that_is_not_repeated(folder, slop_code):
    (folder / "good/words/checkpoint_2/snapshot/large").touch()
    os.truncate(folder / "good/words/checkpoint_2/snapshot/large", 17 << 30)
    status, out, err = slop_code("eval", "good", "--no-live-progress")
    assert (status, "NO VERDICT" in out, "1 to evaluate, 1 up to date" in err) == (1, False, True)
    status, _, err = slop_code("eval", "good", "--no-live-progress")
    assert (status, "to evaluate" in err) == (1, False)
    stored = CorrectnessResults.load(folder / "good/words/checkpoint_2" / RESULT_FILE)
    reason = "set-up failed: the tree has more than 16 GiB, including holes in files"
    assert (stored.setup_failure, {test.status for test in stored.tests}) == (reason, {"failed"})
    status, out, _ = slop_code("verify", "good")
    assert (status, "2 of 2 results verified" in out, "digests.submission" in out) == (0, True, False)


@pytest.mark.parametrize("arguments", [["good/words"], ["moved", "-p", "words"], ["moved", "-p", "problems/words"]])
def test_eval_problem_evaluates_one_problem_of_a_run(folder, slop_code, arguments):
    if arguments[0] == "moved":
        shutil.move(folder / "good/words", folder / "moved")
    status, out, _ = slop_code("eval-problem", *arguments, "--json")
    assert status == 0
    assert json.loads(out)["totals"]["checkpoints"]["evaluated"] == 2
    assert (folder / arguments[0] / SUMMARY_FILE).is_file()


def test_shards_are_merged_to_a_whole_run(folder, slop_code):
    """A shard writes no summary: it knows a part of the run alone."""
    for name in (LINES_FILE, SUMMARY_FILE):
        (folder / "poor" / name).unlink()
    for number in (1, 2):
        slop_code("eval", "poor", "--shard", f"{number}/2")
        assert not (folder / "poor" / SUMMARY_FILE).exists()
    assert slop_code("merge", "poor")[0] == 1
    assert RunSummary.load(folder / "poor" / SUMMARY_FILE).totals.checkpoints.evaluated == 2


def test_merge_takes_results_from_copies_of_the_run(folder, slop_code):
    shutil.copytree(folder / "good", folder / "copy")
    results = [folder / "good/words" / f"checkpoint_{number}" / "evaluation.json" for number in (1, 2)]
    for path in results:
        path.unlink()
    (folder / "copy/words/checkpoint_2/evaluation.json").unlink()
    status, out, _ = slop_code("merge", "good", "copy")
    assert status == 3
    assert "no result yet" in out
    assert [path.exists() for path in results] == [True, False], "nothing is evaluated, nor taken from the store"
    assert slop_code("merge", "good", "nowhere")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["eval", "nowhere"],
            "nowhere: there is no such folder; give the folder that holds <problem>/<checkpoint>/snapshot",
        ),
        (["eval", "good", "nowhere"], "nowhere: there is no such folder"),
        (["eval", "file"], "file: not a folder"),
        (["eval", "empty"], "empty: nothing to evaluate; expected <problem>/<checkpoint>/snapshot"),
        (["merge", "good", "--problems-dir", "nosuch"], "nosuch: there is no such folder of problems"),
        (["eval", "good", "good"], "given twice"),
        (["eval", "good", "--problem", "wrods"], "no problem 'wrods' in good; did you mean 'words'?"),
        (["eval", "good/words/checkpoint_1/snapshot"], "lies in a snapshot, where nothing is ever written"),
        (["eval-problem", "good/words/checkpoint_1/snapshot", "-p", "words"], "lies in a snapshot"),
        (["merge", "good/words/checkpoint_1/snapshot"], "lies in a snapshot"),
        (["eval", "good", "-o", "good/words/checkpoint_1/snapshot/out"], "lies in the snapshot good/words"),
        (["eval", "good", "-o", "file"], "file: not a folder"),
        (["eval", "good", "-o", "good"], "good: good would lie in the run good; give a folder outside of the runs"),
        (["eval", "good", "-o", "good/out"], "would lie in the run good"),
        (["eval", "good", "other/good", "-o", "out"], "another run has the same name; evaluate each with an -o of its"),
        (["eval", "good", "empty", "-o", "."], "would lie in the run good"),
        (["eval-problem", "good/words", "-o", "good/words/checkpoint_1/snapshot"], "lies in the snapshot"),
        (["merge", "good", "-o", "good"], "would lie in the run good"),
        (["eval", "good", "--snapshot-dir", "a/b"], "--snapshot-dir a/b: expected the name of a folder"),
        (["eval", "good", "-e", "nothing"], "nothing: no such environment"),
        (["eval", "good", "-e", ""], "no such environment"),
        *[
            (["eval", "good", "--shard", text], f"--shard {text}: expected i/N")
            for text in ("0/3", "4/3", "x", "1", "", "1/0")
        ],
        (["eval", "good", "--executor", "nothing"], "no executor 'nothing'"),
        (["eval", "good", "--ray-address", "x"], "the executor threads uses this machine alone"),
        (["eval-problem", "good/words", "-p", "nothing"], "no problem 'nothing'"),
        (
            ["eval-problem", "good"],
            "expected <checkpoint>/snapshot; this is a run: evaluate it with",
        ),
        (["eval-problem", "nowhere"], "nowhere: there is no such folder"),
        (["eval-problem", "nowhere", "-p", "words"], "nowhere: there is no such folder"),
        (["merge", "nowhere"], "nowhere: there is no such folder"),
        (["merge", "empty"], "nothing to evaluate"),
        (["merge", "good", "nowhere"], "nowhere: there is no such folder"),
    ],
)
def test_wrong_use_is_one_line(bare, slop_code, arguments, words):
    before = everything(bare)
    status, out, err = slop_code(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.startswith("slop-code: ")
    assert err.count("\n") == 1
    assert everything(bare) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval"], ["merge"], ["eval-problem"], ["eval-problem", "good", "other"], ["eval", "good", "-j", "0"],
        ["eval", "good", "-j", "two"], ["eval", "good", "--retries", "-1"], ["eval", "good", "--retries", "²"],
        ["eval", "good", "-j", "1025"], ["eval", "good", "--retries", "1001"],
        ["eval", "good", "--pass-policy", "most"], ["eval", "good", "--dry"], ["merge", "good", "--overwrite"],
    ],
)  # fmt: skip
def test_wrong_options_are_usage_errors(bare, slop_code, arguments):
    status, out, err = slop_code(*arguments)
    assert (status, out) == (2, "")
    assert "error: " in err.splitlines()[-1]


def test_the_wrong_folder_of_problems_is_a_usage_error_and_changes_nothing(bare, slop_code):
    before = everything(bare)
    status, out, err = slop_code("eval", "good", "--problems-dir", "empty")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "slop-code: words: no such problem in empty; give the folder that holds it as --problems-dir"
    ]
    assert everything(bare) == before


@pytest.mark.parametrize("taken", ["results", "summary"])
def test_a_summary_that_cannot_be_written(folder, slop_code, taken):
    for path in (folder / "taken" / LINES_FILE, folder / "good" / LINES_FILE):
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)
    arguments = ["eval", "good"] if taken == "results" else ["eval", "poor", "-o", "taken"]
    status, out, err = slop_code(*arguments)
    assert (status, out) == (3, "")
    assert "the summary cannot be written" in err
    assert err.splitlines()[-1].startswith("slop-code: ")


def test_a_folder_that_another_evaluator_has(folder, slop_code):
    with (folder / "good" / STATE_DIR / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = everything(folder)
        status, out, _ = slop_code("eval", "good")
        assert status == 3
        assert "held by another evaluator; wait for its end, or end it" in out
        assert slop_code("eval", "good", "--dry-run")[0] == 0, "looking disturbs nobody"
        status, out, _ = slop_code("eval-problem", "good/words")
        assert status == 3
        assert "good: held by another evaluator" in out
        assert everything(folder) == before


def test_a_name_that_is_no_text(folder):
    """Nor is it markup, nor a command to a terminal."""
    name = os.fsdecode(b"\xff[red]\x1b[31m\n")
    (folder / "good").rename(folder / name)
    argv = [SLOP_CODE, "eval", name, "poor"]
    done = subprocess.run(argv, capture_output=True, timeout=600, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout
    assert b"[red]" in done.stdout
    done = subprocess.run([*argv, "--json", "-o", "out"], capture_output=True, timeout=600, cwd=folder)
    assert len(json.loads(done.stdout)["runs"]) == 2
    assert len(read_lines(folder / "out" / LINES_FILE)) == 4


@pytest.mark.parametrize(("option", "limits"), [("-j", "from 1 to 1024"), ("--retries", "from 0 to 1000")])
def test_a_number_out_of_range_names_the_limits(bare, slop_code, option, limits):
    assert f"expected a whole number {limits}" in slop_code("eval", "good", option, "99999")[2]


EXECUTOR = """
    from concurrent.futures import Future

    from slop_code.runs.jobs.job_records import JobResult

    class Refusing:
        def __init__(self, slots, address, progress, cache):
            self.slots = slots or 1
            self.address = address

        def prepare(self, wanted):
            assert [submission.label for submission in wanted] == ["good/words/checkpoint_1"]

        def submit(self, work):
            future = Future()
            future.set_result(JobResult.failed(f"{work.checkpoint} refused at {self.address}", final=True))
            return future

        def stop(self, future):
            raise AssertionError("a finished job is never stopped")

        def close(self):
            pass
"""


def test_another_package_brings_an_executor(bare, slop_code, monkeypatch):
    site = install_package(bare / "site", "slop_code.executors", "refusing = other_package:Refusing", EXECUTOR)
    monkeypatch.delitem(sys.modules, "other_package", raising=False)
    monkeypatch.syspath_prepend(site)
    status, out, _ = slop_code("eval", "good", "--executor", "refusing", "--ray-address", "nowhere")
    assert status == 3
    assert "no verdict good/words/checkpoint_1: checkpoint_1 refused at nowhere" in out.splitlines()
    assert slop_code("eval", "good", "--executor", "nothing")[2].endswith("there are threads, ray, refusing\n")


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "status", "lines"),
    [
        (
            ["eval", "poor", "--group", "Core"],
            1,
            ["poor/words/checkpoint_1: PART ONLY, no verdict: 1 of 1 chosen tests passed, 0 left out",
             "poor/words/checkpoint_2: PART ONLY, no verdict: 0 of 1 chosen tests passed, 1 left out",
             "  FAILED Core test_checkpoint_2.py::test_two_words: assert '\\n' == 'ABC DEF\\n'"],
        ),
        (
            ["eval", "good", "--test", "test_checkpoint_2.py::test_two_words"],
            0,
            ["good/words/checkpoint_2: PART ONLY, no verdict: 1 of 1 chosen tests passed, 1 left out"],
        ),
        (
            ["eval-problem", "good/words", "-k", "two_words"],
            0,
            ["words/checkpoint_2: PART ONLY, no verdict: 1 of 1 chosen tests passed, 1 left out"],
        ),
    ],
)  # fmt: skip
def test_a_part_of_the_tests_leaves_the_results_of_a_run_as_they_are(folder, capsys, arguments, status, lines):
    before = {name: files_of(folder / name) for name in ("good", "poor")}
    assert run([*arguments, "--no-live-progress"]) == status
    assert [line.removeprefix("good/") if "eval-problem" in arguments else line
            for line in capsys.readouterr().out.splitlines()] == lines  # fmt: skip
    assert {name: files_of(folder / name) for name in ("good", "poor")} == before


def test_the_results_of_a_part_are_stored_on_request(folder, capsys):
    assert run(["eval", "good", "--group", "Core", "-o", "part", "--json", "--no-live-progress"]) == 0
    (first, second) = json.loads(capsys.readouterr().out)
    assert (first["submission"], first["left_out"], first["reason"]) == ("good/words/checkpoint_1", 0, None)
    assert second["tests"] == {"test_checkpoint_2.py::test_two_words": "passed"}
    stored = json.loads((folder / "part" / second["submission"] / "evaluation.json").read_text())
    assert (stored["deselected"], any(stored["passed"].values())) == (1, False)


def test_a_part_without_a_result_is_not_that_of_an_earlier_command(folder, slop_code):
    assert slop_code("eval", "good", "--group", "Core", "-o", "part")[0] == 0
    before = files_of(folder / "part")
    status, out, err = slop_code("eval", "good", "--test", "gone.py", "-o", "part")
    assert (status, out) == (2, "")
    assert "no checkpoint has a test that was selected" in err
    assert files_of(folder / "part") == before


def test_the_parts_of_two_runs_of_one_name_leave_both_runs_as_they_are(folder, slop_code):
    """Such runs go by their paths, which name no folder of the results."""
    runs = [folder / parent / "good" for parent in ("a", "b")]
    for path in runs:
        shutil.copytree(folder / "good", path)
    before = files_of(folder)
    status, out, _ = slop_code("eval", *runs, "--group", "Core")
    assert status == 0
    assert [line.split(": ")[0] for line in out.splitlines()] == [
        f"{path}/words/checkpoint_{number}" for path in runs for number in (1, 2)
    ]
    status, _, err = slop_code("eval", *runs, "--group", "Core", "-o", "part")
    assert (status, "another run has the same name" in err) == (2, True)
    assert files_of(folder) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--test", "gone.py"], "no checkpoint has a test that was selected"),
        (["--test=-x"], "--test -x: expected a node id"),
        (["--group", "Core", "--overwrite"], "cannot be used with a selection of tests"),
    ],
)
def test_a_selection_that_makes_no_sense_is_wrong_use(folder, capsys, arguments, message):
    assert run(["eval", "good", *arguments, "--no-live-progress"]) == 2
    assert message in capsys.readouterr().err


def test_a_failure_of_the_tests_themselves_is_not_retried(folder, capsys):
    """A syntax error in the tests stays one, however often it is tried."""
    (folder / "problems/words/tests/test_checkpoint_2.py").write_text("def test_two_words(:\n")
    assert run(["eval", "good", "--no-live-progress"]) == 3
    shown = capsys.readouterr()
    assert "RETRYING" not in shown.out + shown.err
    (line,) = [line for line in read_lines(folder / "good" / LINES_FILE) if line.checkpoint == "checkpoint_2"]
    assert (line.state, line.attempts) == ("evaluated", 1)
    assert line.not_looked_at_again.startswith("infrastructure failure: ")
    kept = folder / "good/words/checkpoint_2/.scbench/attempt-1"
    assert "SyntaxError" in (kept / "collection-pytest.log").read_text()
