"""Option `--samples`, the only way to pool runs."""

from __future__ import annotations

import pytest

from slop_code.cli.main import run
from slop_code.runs.run_layout import SUMMARY_FILE
from slop_code.runs.summary import RunSummary


@pytest.fixture
def runs(world, monkeypatch):
    """Evaluated runs `agent/1` to `agent/3`, the third with the submissions of the first."""
    world.problem(count=1)
    for name, content in zip(("agent/1", "agent/2", "agent/3"), "aba", strict=True):
        world.run(name, {"words": [content]})
        [discovered] = world.discover(name)
        world.finish(discovered.submissions[0], "+" if content == "a" else "-")
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", "problems")
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(world.folder / "cache"))
    return ["agent/1", "agent/2", "agent/3"]


@pytest.mark.parametrize(
    ("options", "pooled"), [([], False), (["--samples"], True), (["--samples", "--shard", "1/1"], False)]
)
def test_eval_estimates_over_runs_only_with_the_option(runs, capsys, options, pooled):
    assert run(["eval", *runs, *options]) == 1
    out = capsys.readouterr().out
    assert ("checkpoints over 2 runs: 50.0% passed, pass@1 50.0%, pass@2 100%" in out) is pooled
    assert ("3: the same submissions as in another run" in out) is pooled
    assert ("pass@" in out) is pooled


def test_the_summary_of_all_runs_has_estimates_only_with_the_option(runs, world):
    for discovered in world.discover(*runs, output=world.folder / "all"):
        world.finish(discovered.submissions[0])
    for options, pooled in ([], False), (["--samples"], True):
        run(["eval", *runs, "-o", "all", *options])
        samples = RunSummary.load(world.folder / "all" / SUMMARY_FILE).samples
        assert (samples is not None) is pooled
    assert (samples.runs, samples.copies) == (2, ["3"])


def test_compare_takes_a_folder_of_runs_only_with_the_option(runs, world, capsys):
    assert run(["compare", "agent", "agent/1"]) == 2
    assert "agent: a folder of 3 runs; give --samples if all are samples of the same agent" in capsys.readouterr().err
    assert run(["compare", "agent", "agent/1", "--samples"]) == 0
    assert "3 has the same submissions as another run" in capsys.readouterr().out
