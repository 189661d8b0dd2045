"""The leaderboard of twenty runs of four agents, on a terminal and as files."""

import csv
import io
import json

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from slop_code.comparison.leaderboard import Leaderboard, build_leaderboard
from slop_code.evaluation.policy import parse_policy
from slop_code.quality.quality_record import QualityFigures, QualityProvenance, QualityRecord
from slop_code.reporting.leaderboard.agent_runs import read_agent_runs
from slop_code.reporting.leaderboard.board_columns import columns_of, sorted_rows
from slop_code.reporting.leaderboard.leaderboard_files import as_csv, as_json, as_markdown, as_text
from slop_code.reporting.leaderboard.leaderboard_table import show_leaderboard
from slop_code.reporting.text import format_cost, format_tokens
from slop_code.runs.read_results import read_runs
from tests.leaderboard_runs import write_agent_run, write_twenty_runs
from tests.scb_run import write_scb_run

AT_80 = """\
agent                                    strict isolated     core  missing  cost
────────────────────────────────────────────────────────────────────────────────
1 aurora-large-20260101, thinking high 59 98.3% 59 98.3% 59 98.3%        0 $1.03
2 aurora-large-20260101, thinking none 55 91.7% 55 91.7% 55 91.7%        0 $0.78
3 basalt-2, thinking high              45 75.0% 45 75.0% 45 75.0%   1 1.7% $0.53
4 cinder-mini, thinking high           27 45.0% 27 45.0% 27 45.0% 20 33.3%     -

all agents: solo, version 2.0.1, prompt configs/prompts/just-solve.jinja
aurora-large-20260101, thinking high: strict over 5 runs 98.3% (93.7% to 100%
with 95% confidence), variance 0.00139, pass@2 100%, pass@5 100%, pass^2 96.7%,
pass^5 91.7%
aurora-large-20260101, thinking none: strict over 5 runs 91.7% (79.0% to 100%
with 95% confidence), variance 0.0104, pass@2 97.5%, pass@5 100%, pass^2 85.8%,
pass^5 75.0%
basalt-2, thinking high: 1 of 60 checkpoints missing: no verdict, so they count
as not solved
basalt-2, thinking high: strict over 5 runs 75.0% (55.6% to 94.4% with 95%
confidence), variance 0.0243, pass@2 84.2%, pass@5 91.7%, pass^2 65.8%, pass^5
50.0%
cinder-mini, thinking high: 20 of 60 checkpoints missing: no verdict, so they
count as not solved
cinder-mini, thinking high: 1 problem missing: rollcall
cinder-mini, thinking high: strict over 5 runs 45.0% (27.7% to 62.3% with 95%
confidence), variance 0.0194, pass@2 53.3%, pass@5 58.3%, pass^2 36.7%, pass^5
25.0%
not recorded: erosion, verbosity
strict: every test passed; isolated: every test outside the group Regression
passed; core: every Core test passed
pass@k: chance that at least one of k runs of the agent solves a checkpoint;
pass^k: chance that all of k runs of the agent solve a checkpoint
"""
HOSTILE = "=cmd|' /C calc'!A0 <b>`x`</b> [l](javascript:1) | \x1b[31mred\n## h"


@pytest.fixture(scope="module")
def twenty(tmp_path_factory):
    write_twenty_runs(folder := tmp_path_factory.mktemp("leaderboard"))
    return board_of(folder)


def board_of(*folders, policies=()):
    return build_leaderboard(read_agent_runs(read_runs(folders)), policies)


def drawn(board, width=80, *, terminal=True):
    stream = io.StringIO()
    show_leaderboard(board, Console(file=stream, width=width, force_terminal=terminal, color_system=None))
    return stream.getvalue()


@pytest.mark.e2e
def test_on_a_terminal_of_80_columns(twenty):
    lines = drawn(twenty).splitlines()
    assert [line.rstrip() for line in lines] == AT_80.splitlines()


@pytest.mark.e2e
@pytest.mark.parametrize("width", [66, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(twenty, width):
    lines = drawn(twenty, width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split()[:5] == ["agent", "strict", "isolated", "core", "missing"]


def test_a_wide_terminal_has_every_column(twenty):
    head = drawn(twenty, 200).splitlines()[0]
    for name in ("time", "tokens in", "core tests", "regr.", "broke", "recovered", "pass@5", "pass^5", "problems"):
        assert name in head
    assert "erosion" not in head  # not recorded anywhere, as a note says


def test_elsewhere_each_agent_has_a_line(twenty):
    lines = drawn(twenty, terminal=False).splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == [f"agent {row.name}" for row in twenty.rows]
    assert "strict 27 45.0%" in lines[3]
    assert "missing 20 33.3%, cost -," in lines[3]
    assert drawn(twenty, terminal=False) == as_text(twenty)


def test_a_name_without_room_is_cut_and_listed_in_full(tmp_path):
    long = "aurora-" + "x" * 80
    for name in ("a", "b"):
        write_agent_run(tmp_path / name, {"words": ["+"]}, config={"model": f"{long}-{name}"})
    lines = drawn(board_of(tmp_path)).splitlines()
    assert max(map(len, lines[:4])) <= 80
    assert f"1 {long}-a" in drawn(board_of(tmp_path), 200)
    assert [line[:2] for line in lines if "aurora" in line][:4] == ["1 ", "2 ", "1 ", "2 "]


def test_missing_problems_and_copies_are_said(tmp_path):
    config = {"model": "aurora"}
    write_agent_run(tmp_path / "a", {"words": ["+"], "stars": ["+"]}, config=config, submission="s")
    write_agent_run(tmp_path / "b", {"words": ["+"], "stars": ["+"]}, config=config, submission="s")
    write_agent_run(tmp_path / "c", {"words": ["+"]}, config=config)
    write_agent_run(tmp_path / "d", {"words": ["+"]}, config={"model": "basalt"})
    text = as_text(board_of(tmp_path))
    assert "aurora: 1 of 4 checkpoints missing: no verdict, so they count as not solved\n" in text
    assert "aurora: its runs have different problems: c has no stars\n" in text
    assert "aurora: the same submissions as in another run, so no further sample: b\n" in text
    assert "basalt: 1 problem missing: stars\n" in text
    assert "basalt: its runs have" not in text


def test_a_cost_that_only_some_checkpoints_have_is_said(tmp_path):
    run = write_agent_run(tmp_path / "a", {"words": ["+", "+"]}, usage={"cost": 1})
    (run / "words/checkpoint_2/inference_result.json").unlink()
    assert "a: cost is recorded for 1 of 2 evaluated checkpoints\n" in as_text(board_of(tmp_path))


def test_the_identity_comes_from_the_summary_where_results_lie_apart(tmp_path):
    run = write_agent_run(tmp_path / "a", {"words": ["+"]})
    [found] = read_agent_runs(read_runs([run]))
    assert not found.identity.is_known
    summary = {
        "slop_code": "0", "totals": board_of(run).rows[0].totals.model_dump(mode="json"), "samples": None, "runs": {},
        "agents": {"elsewhere": {"model": "aurora"}}, "problems": {}, "infrastructure_failures": [], "issues": [],
    }  # fmt: skip
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    [found] = read_agent_runs(read_runs([run]))
    assert found.identity.model == "aurora"


def test_a_run_of_slopcodebench_is_a_row_like_any_other(tmp_path):
    write_scb_run(tmp_path / "theirs")
    [row] = board_of(tmp_path / "theirs").rows
    assert (row.identity.model, row.identity.thinking, row.problems, row.missing) == ("example-model", "high", 3, 0)
    assert row.per_checkpoint["cost"].recorded == row.totals.checkpoints.planned == 7
    assert row.totals.rates["strict"].solved == 2


def measured(folder, submission, erosion, **fields):
    figures = QualityFigures(
        verbosity=erosion / 2, erosion=erosion, cog_erosion=0, source_lines=9, max_complexity=1, files=1, functions=1,
        high_cc_functions=0, high_cog_functions=0, flagged_lines=0, clone_lines=0, languages={},
    )  # fmt: skip
    made_by = QualityProvenance(scb_check="0", lock="", python=None, sandbox="", slop_code="0")
    tests = figures.model_copy(update={"erosion": 0.0})
    record = QualityRecord(submission=submission, implementation=figures, tests=tests, provenance=made_by, **fields)
    record.save(folder)


def test_slopes_are_those_of_the_implementation_at_the_evaluated_submissions(tmp_path):
    run = write_agent_run(tmp_path / "a", {"words": ["+", "+", "+", "+"]}, submission="s")
    for number, (submission, erosion) in enumerate([("words1", 0.25), ("words2", 0.5), ("other", 1.0)], start=1):
        measured(run / f"words/checkpoint_{number}", f"s{submission}", erosion)
    (run / "words/checkpoint_4/quality.json").write_text("{", encoding="utf-8")
    [results] = read_runs([run])
    board = build_leaderboard(read_agent_runs([results]))
    assert {name: slope.mean for name, slope in board.rows[0].slopes.items()} == {"erosion": 0.25, "verbosity": 0.125}
    assert "erosion +0.250, verbosity +0.125" in as_text(board)
    [message] = results.unreadable
    assert message.startswith(f"{run / 'words/checkpoint_4/quality.json'}: ")


def test_a_slope_leaves_out_checkpoints_with_incomplete_quality_and_the_table_says_so(tmp_path):
    run = write_agent_run(tmp_path / "a", {"words": ["+", "+", "+"]}, submission="s")
    for number, erosion in enumerate([0.25, 0.5, 0.0], start=1):
        hidden = {"incomplete": {"implementation": 1}} if number == 3 else {}
        measured(run / f"words/checkpoint_{number}", f"swords{number}", erosion, **hidden)
    board = board_of(run)
    assert board.rows[0].slopes["erosion"].mean == 0.25
    assert "quality is incomplete at 1 checkpoint, which no slope counts" in as_text(board)
    [row] = csv.DictReader(io.StringIO(as_csv(board)))
    assert row["incomplete_quality"] == "1"


def test_csv_has_a_row_for_each_agent_and_plain_numbers(twenty):
    rows = list(csv.DictReader(io.StringIO(as_csv(twenty))))
    assert [row["model"] for row in rows] == [row.identity.model for row in twenty.rows]
    assert float(rows[0]["cost"]) == pytest.approx(1.03)
    assert (rows[3]["missing"], rows[3]["missing_problems"], rows[3]["cost"]) == ("20", "1", "")


@pytest.mark.e2e
def test_csv_in_pandas_and_duckdb(twenty, tmp_path):
    import duckdb
    import pandas as pd

    file = tmp_path / "leaderboard.csv"
    file.write_bytes(as_csv(twenty).encode())
    frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
    names = [column.name for column in columns_of(twenty)]
    assert list(frame.columns) == names
    assert list(frame["strict_solved"]) == [59, 55, 45, 27]
    assert frame["cost"].isna().tolist() == [False, False, False, True]
    relation = duckdb.sql(f"select * from '{file}'")
    assert relation.columns == names
    shares = relation.aggregate("sum(strict_solved), max(pass_hat_k), sum(missing)").fetchall()
    assert shares == [(186, pytest.approx(11 / 12), 21)]


def test_json_loads_as_the_same_leaderboard(twenty):
    text = as_json(twenty)
    assert text.isascii()
    assert Leaderboard.model_validate_json(text) == twenty
    assert json.loads(text)["schema_version"] == 1


def test_a_hostile_name_is_text_in_every_format(tmp_path):
    for name in ("a", "b"):
        write_agent_run(tmp_path / name, {"words": ["+"]}, config={"model": HOSTILE, "thinking": name})
    board = board_of(tmp_path)
    for text in (drawn(board), drawn(board, 200, terminal=False), as_csv(board), as_json(board), as_markdown(board)):
        assert "\x1b" not in text
    row = next(csv.DictReader(io.StringIO(as_csv(board))))
    assert row["model"].startswith("'=cmd")
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(as_markdown(board))
    assert page.count("<tr>") == 3
    for element in ("<b>", "<a ", "<h2>"):
        assert element not in page


def test_markdown_has_a_column_for_each_policy(tmp_path):
    write_agent_run(tmp_path / "a", {"words": ["+", "-"]}, config={"model": "aurora"})
    board = board_of(tmp_path, policies=[parse_policy("core == 1"), parse_policy("core")])
    head, _, row, *_ = as_markdown(board).splitlines()
    assert head.startswith("| agent | strict | isolated | core | `core == 1` | missing | cost |")
    assert row.startswith("| `aurora` | 1 50.0% | 1 50.0% | 1 50.0% | 1 50.0% | 0 | - |")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("cost", ["basalt-2", "aurora-large-20260101", "aurora-large-20260101", "cinder-mini"]),
        ("missing", ["aurora-large-20260101", "aurora-large-20260101", "basalt-2", "cinder-mini"]),
        ("core_rate", ["aurora-large-20260101", "aurora-large-20260101", "basalt-2", "cinder-mini"]),
        ("provider", ["aurora-large-20260101", "aurora-large-20260101", "basalt-2", "cinder-mini"]),
        ("broke", ["aurora-large-20260101", "aurora-large-20260101", "cinder-mini", "basalt-2"]),
        ("missing_problems", ["aurora-large-20260101", "aurora-large-20260101", "basalt-2", "cinder-mini"]),
        ("strict_variance", ["aurora-large-20260101", "aurora-large-20260101", "cinder-mini", "basalt-2"]),
    ],
)
def test_rows_are_sorted_by_a_column_best_first(twenty, column, expected):
    [chosen] = [item for item in columns_of(twenty) if item.name == column]
    assert [row.identity.model for row in sorted_rows(twenty.rows, chosen)] == expected


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [(0, "$0.00"), (0.0042, "$0.0042"), (0.09, "$0.09"), (0.1, "$0.10"), (1.005, "$1.00"), (1234.5, "$1,234.50")],
)
def test_format_cost(dollars, expected):
    assert format_cost(dollars) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (360_000, "360.0k"), (1_500_000, "1.5M"), (2.5e9, "2.5G")],
)
def test_format_tokens(count, expected):
    assert format_tokens(count) == expected
