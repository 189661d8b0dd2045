"""Runs that another program evaluated: not a byte of them changes, unless --replace renames its files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest

from slop_code import evaluate_run
from slop_code.errors import UsageError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files import foreign_files
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.input_signatures import SIGNATURES_FILE
from slop_code.runs.read_results import read_runs
from slop_code.runs.result_cache_key import ExpectedDigests, result_cache_key
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.scb.agent_facts import read_agent_identity
from slop_code.runs.summary import RunSummary
from tests.scb_run import AGENT, CATALOG, MODEL, expected_statuses, write_scb_run

pytestmark = pytest.mark.e2e  # no process is started, but each evaluates a whole run

OFFER = "evaluate with -o OUT to write all results there, or with --replace to rename these files and go on"


@pytest.fixture
def theirs(world, monkeypatch):
    """A run in their format with its problems; the result cache has a result for every snapshot, so nothing runs."""
    folder = write_scb_run(world.folder / "theirs", problems_dir=world.problems)
    monkeypatch.chdir(world.folder)
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(world.folder / "cache"))
    fill_cache(world, "theirs")
    return folder


def fill_cache(world, name):
    [discovered] = world.discover(name)
    for item in discovered.submissions:
        number = int(item.checkpoint.name.rpartition("_")[2])
        statuses = {name.rpartition("::")[2]: status for name, status in
                    expected_statuses(item.problem.name, number).items()}  # fmt: skip
        key = result_cache_key(item.environment, ExpectedDigests().digests(item))
        world.result_cache.put(key, world.archive(world.results(item, statuses)))


def tree(folder):
    """Every path below a folder, with a digest of each file; without the digests of inputs, which are kept later."""
    paths = sorted(path for path in folder.rglob("*") if path.name != SIGNATURES_FILE)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in paths
    }


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["eval", "theirs"], 8),
        (["eval", "theirs", "--dry-run"], 8),
        (["eval", "theirs", "--dry-run", "--overwrite"], 8),
        (["eval", "theirs", "--problem", "ledger"], 3),
        (["eval", "theirs", "--shard", "1/2"], 4),
        (["eval-problem", "theirs/ledger"], 3),
        (["merge", "theirs"], 8),
        (["merge", "theirs", "copy"], 8),
    ],
)
def test_in_place_nothing_is_evaluated_and_no_byte_changes(world, theirs, slop_code, arguments, count):
    shutil.copytree(theirs, world.folder / "copy")
    before = tree(theirs)
    status, out, err = slop_code(*arguments)
    first = "calendar" if "ledger" not in " ".join(arguments) else "ledger"
    more = f"theirs/{first}/checkpoint_1/{RESULT_FILE}, and {count - 1} more files"
    assert (status, out) == (2, "")
    assert err == f"slop-code: {more}: written by another program, and would be replaced; {OFFER}\n"
    assert tree(theirs) == before


def test_the_python_interface_stops_as_well(world, theirs):
    before = tree(theirs)
    with pytest.raises(UsageError, match="written by another program"):
        list(evaluate_run(theirs, problems_dir=world.problems))
    assert tree(theirs) == before
    outcomes = list(evaluate_run(theirs, problems_dir=world.problems, output=world.folder / "out"))
    assert (len(outcomes), tree(theirs)) == (7, before)
    assert len(read_lines(world.folder / "out" / LINES_FILE)) == 7


def test_a_mirrored_tree_has_all_results_and_the_run_stays_as_it_is(world, theirs, slop_code):
    before = tree(theirs)
    status, out, _ = slop_code("eval", theirs, "-o", "out", "--no-live-progress")
    assert (status, out.splitlines()[-1]) == (1, "NOT PASSED (all-cases): 2 of 7 checkpoints")
    assert tree(theirs) == before
    for path in theirs.glob(f"*/*/{RESULT_FILE}"):
        relative = path.relative_to(theirs)
        problem, checkpoint = relative.parts[:2]
        results = CorrectnessResults.load(world.folder / "out" / relative)
        statuses = {name.rpartition("::")[2]: status for name, status in
                    expected_statuses(problem, int(checkpoint[-1])).items()}  # fmt: skip
        assert {test.id: test.status for test in results.tests} == statuses
    assert len(read_lines(world.folder / "out" / LINES_FILE)) == 7
    results = tree(world.folder / "out")
    status, _, err = slop_code("eval", theirs, "-o", "out", "--no-live-progress")
    assert (status, "to evaluate" in err) == (1, False), "up-to-date results are kept"
    assert tree(world.folder / "out") == results


def test_a_mirrored_tree_has_what_the_agent_cost_and_who_it_is(world, theirs, slop_code):
    slop_code("eval", theirs, "-o", "out")
    lines = read_lines(world.folder / "out" / LINES_FILE)
    assert all(line.agent and line.agent.cost for line in lines)
    [stored] = read_runs(world.folder / "out")
    assert [entry.line.agent for entry in stored.entries()] == [line.agent for line in lines]
    summary = RunSummary.load(world.folder / "out" / SUMMARY_FILE)
    assert summary.totals.agent.recorded == 7
    assert summary.agents["theirs"] == read_agent_identity(theirs) == read_agent_identity(world.folder / "out")
    assert (summary.agents["theirs"].model, summary.agents["theirs"].agent) == (MODEL["name"], AGENT["type"])


def test_cost_comes_from_their_lines_where_the_agent_left_no_file(world, theirs, slop_code):
    for path in theirs.glob("*/*/inference_result.json"):
        path.unlink()
    slop_code("eval", theirs, "-o", "out")
    assert all(line.agent and line.agent.cost for line in read_lines(world.folder / "out" / LINES_FILE))
    assert "cost $0.81" in slop_code("show", "out/ledger/checkpoint_3")[1]
    slop_code("eval", theirs, "--replace")
    assert all(line.agent and line.agent.cost for line in read_lines(theirs / LINES_FILE))
    assert "cost $0.81" in slop_code("show", theirs / "ledger/checkpoint_3")[1]
    (theirs / LINES_FILE).unlink()
    assert "cost $0.81" in slop_code("show", theirs / "ledger/checkpoint_3")[1]


@pytest.mark.parametrize(
    "command", [["report", "out", "-o", "page.html"], ["show", "out/ledger/checkpoint_1"], ["compare", "theirs", "out"]]
)
def test_commands_read_a_mirrored_tree(theirs, slop_code, command):
    slop_code("eval", theirs, "-o", "out")
    assert slop_code(*command)[0] == 0


def test_several_runs_have_a_folder_each_and_a_common_summary(world, theirs, slop_code):
    shutil.copytree(theirs, world.folder / "again")
    before = tree(theirs), tree(world.folder / "again")
    assert slop_code("eval", theirs, "again", "-o", "out")[0] == 1
    assert (tree(theirs), tree(world.folder / "again")) == before
    out = world.folder / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        ".slop-code",
        "again",
        LINES_FILE,
        SUMMARY_FILE,
        "theirs",
    ]
    lines = read_lines(out / LINES_FILE)
    assert (len(lines), all((out / line.evaluation).is_file() for line in lines)) == (14, True)
    assert list(RunSummary.load(out / SUMMARY_FILE).agents) == ["theirs", "again"]
    assert [stored.name for stored in read_runs(out)] == ["again", "theirs"]
    assert slop_code("report", "out", "-o", "page.html")[0] == 0


def test_shards_with_folders_of_their_own_are_merged(world, theirs, slop_code):
    before = tree(theirs)
    for number in (1, 2):
        slop_code("eval", theirs, "--shard", f"{number}/2", "-o", f"part{number}")
        assert not (world.folder / f"part{number}" / SUMMARY_FILE).exists()
    status, out, _ = slop_code("merge", theirs, "part1", "part2", "-o", "whole", "--problems-dir", "problems")
    assert (status, out.splitlines()[-1]) == (1, "NOT PASSED (all-cases): 2 of 7 checkpoints")
    assert tree(theirs) == before


def test_eval_problem_mirrors_the_folder_of_the_problem(world, theirs, slop_code):
    before = tree(theirs)
    assert slop_code("eval-problem", "theirs/ledger", "-o", "out")[0] == 1
    assert slop_code("eval-problem", "theirs/router", "-o", "out")[0] == 1
    assert tree(theirs) == before
    assert {path.parent.parent.name for path in (world.folder / "out").glob(f"*/*/{RESULT_FILE}")} == {
        "ledger",
        "router",
    }
    [stored] = read_runs(world.folder / "out")
    assert len(list(stored.entries())) == 5


@pytest.mark.parametrize(("arguments", "status"), [([], 1), (["--exit-zero"], 0)])
def test_exit_zero_changes_the_status_of_tests_that_do_not_pass(theirs, slop_code, arguments, status):
    assert slop_code("eval", theirs, "-o", "out", *arguments)[0] == status
    assert slop_code("eval-problem", "theirs/ledger", "-o", "other", *arguments)[0] == status
    assert slop_code("eval", "nowhere", "--exit-zero")[0] == 2


def test_exit_zero_leaves_the_status_of_an_infrastructure_failure(theirs, slop_code):
    shutil.rmtree(theirs / "ledger/checkpoint_3/snapshot")
    assert slop_code("eval", theirs, "-o", "out", "--exit-zero")[0] == 3


def kept(before, folder):
    """Digests of their files under the names that --replace gives them."""
    names = {
        name.replace(RESULT_FILE, "evaluation.scb.json").replace("/evaluation/", "/evaluation.scb/"): digest
        for name, digest in before.items()
        if digest != "folder"
    }
    names = {{LINES_FILE: "checkpoint_results.scb.jsonl"}.get(name, name): digest for name, digest in names.items()}
    after = tree(folder)
    return {name: after.get(name) for name in names} == names


def test_replace_keeps_the_bytes_of_all_their_files(theirs, slop_code):
    before = tree(theirs)
    assert slop_code("eval", theirs, "--replace", "--dry-run")[0] == 0
    assert tree(theirs) == before, "a dry run renames nothing"
    status, out, _ = slop_code("eval", theirs, "--replace")
    assert (status, out.splitlines()[-1]) == (1, "NOT PASSED (all-cases): 2 of 7 checkpoints")
    assert kept(before, theirs)
    assert slop_code("eval", theirs)[0] == 1, "what is there now is ours"
    assert RunSummary.load(theirs / SUMMARY_FILE).agents["theirs"].model == MODEL["name"]


@pytest.mark.parametrize("renames", [0, 1, 2, 7, 14])
def test_an_interrupted_replace_loses_nothing_and_the_next_completes_it(theirs, slop_code, monkeypatch, renames):
    before, left, rename = tree(theirs), [renames], os.rename

    def interrupted(*paths):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        rename(*paths)

    monkeypatch.setattr(foreign_files.os, "rename", interrupted)
    assert slop_code("eval", theirs, "--replace")[0] == 130
    monkeypatch.setattr(foreign_files.os, "rename", rename)
    after = tree(theirs)
    assert sorted(before.values()) == sorted(value for name, value in after.items() if ".slop-code" not in name)
    assert slop_code("eval", theirs, "--replace")[0] == 1
    assert kept(before, theirs)


def test_a_second_replace_takes_no_name_that_exists(theirs, slop_code):
    slop_code("eval", theirs, "--replace")
    folder = theirs / "ledger/checkpoint_1"
    first = (folder / "evaluation.scb.json").read_bytes()
    (folder / RESULT_FILE).write_text('{"tests": {}}')
    assert slop_code("eval", theirs)[0] == 2
    assert slop_code("eval", theirs, "--replace")[0] == 1
    assert (folder / "evaluation.scb.json").read_bytes() == first
    assert (folder / "evaluation.scb.2.json").read_text() == '{"tests": {}}'


@pytest.mark.parametrize("text", ["", "{", "not of ours"])
def test_a_file_that_nobody_can_read_is_kept_where_nothing_of_ours_lies_beside_it(world, theirs, slop_code, text):
    for path in theirs.rglob("*.json*"):
        if path.name in (LINES_FILE, RESULT_FILE):
            path.write_text(text)
    before = tree(theirs)
    assert slop_code("eval", theirs)[0] == 2
    assert tree(theirs) == before


def test_eval_snapshot_replaces_no_result_of_another_program(theirs, slop_code):
    before = tree(theirs)
    snapshot, output = theirs / "ledger/checkpoint_1/snapshot", theirs / "ledger/checkpoint_1"
    status, _, err = slop_code("eval-snapshot", snapshot, "-p", "problems/ledger", "-c", 1, "-o", output)
    assert (status, tree(theirs)) == (2, before)
    assert f"{output / RESULT_FILE}: written by another program, and would be replaced; give another folder" in err


def test_a_release_of_other_problems_is_a_warning_in_the_summary(world, theirs, slop_code):
    (world.problems / "manifest.json").write_text(json.dumps({**CATALOG, "version": "v9", "commit": "f" * 40}))
    _, out, _ = slop_code("eval", theirs, "-o", "out")
    [warning] = RunSummary.load(world.folder / "out" / SUMMARY_FILE).warnings
    assert "the run used the problems v1.0 at 0123456789ab" in warning
    assert f"warning: {warning}" in out.splitlines()
    (world.problems / "manifest.json").write_text(json.dumps(CATALOG))
    slop_code("eval", theirs, "-o", "out")
    assert RunSummary.load(world.folder / "out" / SUMMARY_FILE).warnings == []


def test_a_mirrored_tree_remembers_the_problems_and_the_run_does_not(world, theirs, slop_code):
    (world.folder / "problems").rename(world.folder / "elsewhere")
    assert slop_code("eval", theirs, "-o", "out", "--problems-dir", "elsewhere")[0] == 1
    status, _, err = slop_code("eval", theirs, "-o", "out")
    assert (status, "problems as in the last evaluation" in err) == (1, True)
    assert slop_code("eval", theirs, "-o", "other")[0] == 2


def test_the_folder_of_the_run_comes_before_the_variable_for_the_path(world, theirs, slop_code, monkeypatch):
    (world.folder / "problems").rename(world.folder / "elsewhere")
    monkeypatch.setenv("SCBENCH_PROBLEMS_PATH", "elsewhere")
    _, _, err = slop_code("eval", theirs, "-o", "out")
    assert f"· problems: {world.folder / 'elsewhere'}; --problems-dir names another folder\n" in err
    monkeypatch.setenv("SCBENCH_PROBLEMS_PATH", "nowhere")
    assert slop_code("eval", theirs, "-o", "out")[0] == 1


def test_snapshots_may_have_another_name(world, theirs, slop_code):
    for path in theirs.glob("*/*/snapshot"):
        path.rename(path.with_name("code"))
    hostile = theirs / "ledger/checkpoint_3/code" / RESULT_FILE
    assert slop_code("eval", theirs, "-o", "out")[0] == 2
    assert slop_code("eval", theirs, "-o", "out", "--snapshot-dir", "code")[0] == 1
    assert slop_code("eval", theirs, "--replace", "--snapshot-dir", "code")[0] == 1
    (theirs / "ledger/checkpoint_3" / RESULT_FILE).rename(hostile)
    [stored] = read_runs(theirs / "ledger")
    assert hostile.parent not in [entry.folder for entry in stored.entries()], "a file of the submission is no result"
