"""Reference pages: their tables list every key, field, option and variable that exists."""

from __future__ import annotations

import argparse
import inspect
import re
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

import pytest

from slop_code import (
    CheckpointFacts,
    Evaluator,
    EvaluatorOutcome,
    Retries,
    Shard,
    StoredCheckpoint,
    Submission,
    SubmissionOutcome,
    evaluate,
    evaluate_run,
)
from slop_code.cli.command_parser import VERBOSE_HELP
from slop_code.cli.main import parser
from slop_code.comparison import leaderboard as board
from slop_code.comparison import records as comparison
from slop_code.evaluation.config import AssetConfig, CheckpointConfig, MarkerConfig, ProblemConfig
from slop_code.evaluation.policy import PassPolicy, RatePolicy
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult
from slop_code.execution.cache_pruning import KINDS
from slop_code.execution.environment import (
    CommandsSpec,
    DockerSpec,
    EnvironmentSpec,
    Limits,
    LocalSpec,
    SetupSpec,
    SnapshotSpec,
    VariablesSpec,
    parse_size,
)
from slop_code.execution.submission import RESERVED
from slop_code.quality import quality_record
from slop_code.quality.sources import NOT_WRITTEN_BY_AGENTS
from slop_code.reporting.exporters import BUILT_IN, SCB
from slop_code.reporting.exporters.export_rows import COLUMNS
from slop_code.reporting.leaderboard.board_columns import columns_of
from slop_code.runs import checkpoint_lines as lines
from slop_code.runs import samples, summary
from slop_code.runs.follow.completeness import RUN_DONE_FILES, SNAPSHOT_DONE_FILES
from slop_code.runs.follow.stop_file import StopFile
from slop_code.runs.jobs import job_records as records
from slop_code.runs.scb import agent_facts
from tests.docs.pages import ROOT, section, table_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import BaseModel


@pytest.mark.parametrize(
    ("page", "heading", "model"),
    [
        ("configuration.md", "Problem", ProblemConfig),
        ("configuration.md", "Checkpoint", CheckpointConfig),
        ("configuration.md", "Marker", MarkerConfig),
        ("configuration.md", "Asset", AssetConfig),
        ("environment.md", "Environment file", EnvironmentSpec),
        ("environment.md", "environment", VariablesSpec),
        ("environment.md", "setup", SetupSpec),
        ("environment.md", "commands", CommandsSpec),
        ("environment.md", "limits", Limits),
        ("environment.md", "local", LocalSpec),
        ("environment.md", "snapshot", SnapshotSpec),
        ("environment.md", "docker", DockerSpec),
    ],
)
def test_every_key_is_explained(page: str, heading: str, model: type[BaseModel]) -> None:
    table = table_rows(section(page, heading))
    assert set(table) == set(model.model_fields)
    required = {name for name, cells in table.items() if cells[2] == "required"}
    assert required == {name for name, field in model.model_fields.items() if field.is_required()}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("evaluation.json", CorrectnessResults),
        ("Test", TestResult),
        ("Provenance", Provenance),
        ("Digests", Digests),
    ],
)
def test_every_field_is_explained(heading: str, model: type[BaseModel]) -> None:
    fields = {*model.model_fields, *model.model_computed_fields}
    assert set(table_rows(section("results.md", heading))) == fields


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("checkpoint_results.jsonl", lines.CheckpointLine),
        ("Regressions", lines.Regressions),
        ("summary.json", summary.RunSummary),
        ("Failure", summary.LabelledReason),
        ("Totals", summary.Totals),
        ("Checkpoints", summary.Checkpoints),
        ("Passed", summary.Passed),
        ("Rate", summary.RateFigures),
        ("Agent", agent_facts.AgentFacts),
        ("Agent of a run", agent_facts.AgentIdentity),
        ("Totals of the agent", summary.AgentTotals),
        ("Pass rate", summary.GroupRate),
        ("Changes", summary.Changes),
        ("Durations", summary.Durations),
        ("Problem", summary.ProblemSummary),
        ("Checkpoint of a problem", summary.CheckpointSummary),
        ("Share of runs", summary.Share),
        ("Samples", samples.Samples),
        ("Policy", samples.PolicySamples),
        ("Estimate", samples.Estimate),
        ("Interval", samples.Interval),
        ("stop.json", StopFile),
    ],
)
def test_every_field_of_a_run_is_explained(heading: str, model: type[BaseModel]) -> None:
    assert set(table_rows(section("runs.md", heading))) == set(model.model_fields)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("quality.json", quality_record.QualityRecord),
        ("Figures", quality_record.QualityFigures),
        ("Left out", quality_record.LeftOut),
        ("Provenance", quality_record.QualityProvenance),
    ],
)
def test_every_field_of_a_quality_record_is_explained(heading: str, model: type[BaseModel]) -> None:
    assert list(table_rows(section("quality.md", heading))) == list(model.model_fields)


def test_every_done_file_is_explained() -> None:
    assert set(table_rows(section("runs.md", "Done files"))) == {*SNAPSHOT_DONE_FILES, *RUN_DONE_FILES}


def test_every_format_and_column_is_explained() -> None:
    words = {str: "text", list: "list of text", int: "whole number", float: "number", bool: "true or false"}
    table = table_rows(section("exports.md", "Columns"))
    shown = [(name, cells[1].removesuffix(" or empty")) for name, cells in table.items()]
    assert shown == [(name, words[kind]) for name, kind in COLUMNS.items()]
    assert list(table_rows(section("exports.md", "Formats"))) == [*BUILT_IN, SCB]


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Document", comparison.Comparison),
        ("Side", comparison.SideRuns),
        ("Pair", comparison.PairComparison),
        ("Checkpoint", comparison.CheckpointChange),
        ("Verdicts", comparison.Verdicts),
        ("Test", comparison.TestChange),
        ("Without a verdict", comparison.NoVerdict),
        ("Significance", comparison.Significance),
        ("Difference", comparison.Difference),
    ],
)
def test_every_field_of_a_comparison_is_explained(heading: str, model: type[BaseModel]) -> None:
    assert set(table_rows(section("comparison.md", heading))) == set(model.model_fields)


@pytest.mark.parametrize(
    ("heading", "model"),
    [("Document", board.Leaderboard), ("Agent", board.AgentRow), ("Mean", board.RecordedMean)],
)
def test_every_field_of_a_leaderboard_is_explained(heading: str, model: type[BaseModel]) -> None:
    assert set(table_rows(section("leaderboard.md", heading))) == set(model.model_fields)


def test_every_column_of_a_leaderboard_is_explained() -> None:
    table = table_rows(section("leaderboard.md", "Columns"))
    columns = columns_of(board.build_leaderboard([]))
    assert list(table) == [column.name for column in columns]
    heads = {name: cells[1] for name, cells in table.items()}
    assert {**heads, "name": ""} == {column.name: column.head for column in columns}


def test_every_change_is_explained() -> None:
    assert set(table_rows(section("comparison.md", "Changes"))) == set(get_args(comparison.Change))


def test_every_state_is_explained() -> None:
    assert set(table_rows(section("runs.md", "States"))) == set(get_args(lines.VerdictState))


@pytest.mark.parametrize(
    "described",
    [evaluate, Evaluator, evaluate_run, Submission, Retries, Shard],
    ids=lambda described: described.__name__,
)
def test_every_parameter_is_explained(described: Callable[..., object]) -> None:
    defaults = {name: default_of(value.default) for name, value in inspect.signature(described).parameters.items()}
    shown = {name: cells[1].strip("`") for name, cells in table_rows(section("python.md", described.__name__)).items()}
    assert list(shown.items()) == list(defaults.items())


def default_of(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    if isinstance(value, StrEnum):
        return repr(value.value)
    return repr(value)


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("EvaluatorOutcome", list(inspect.signature(EvaluatorOutcome).parameters)),
        ("SubmissionOutcome", list(inspect.signature(SubmissionOutcome).parameters)),
        ("Source", get_args(records.OutcomeSource)),
        ("StoredCheckpoint", list(inspect.signature(StoredCheckpoint).parameters)),
        ("CheckpointFacts", list(CheckpointFacts.model_fields)),
    ],
)
def test_every_value_is_explained(heading: str, names: Sequence[str]) -> None:
    assert sorted(table_rows(section("python.md", heading))) == sorted(names)


def test_every_policy_is_explained() -> None:
    assert list(table_rows(section("results.md", "Policies"))) == [*PassPolicy, *RatePolicy]


@pytest.mark.parametrize("name", ["memory", "disk", "output", "processes", "cpus"])
def test_limits_have_the_default_that_is_shown(name: str) -> None:
    shown = table_rows(section("environment.md", "limits"))[name][2].strip("`")
    assert parse_size(shown) == getattr(Limits(), name)


def commands(root: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command without subcommands."""
    choices = [action.choices for action in root._actions if isinstance(action, argparse._SubParsersAction)]
    if not choices:
        yield root
    for inner in choices:
        for command in inner.values():
            yield from commands(command)


@pytest.mark.parametrize("command", dict.fromkeys(commands(parser())), ids=lambda command: command.prog)
def test_every_option_is_explained(command: argparse.ArgumentParser) -> None:
    actions = [action for action in command._actions if action.dest != "help" and action.help != VERBOSE_HELP]
    options = {name for action in actions for name in action.option_strings or [str(action.metavar)]}
    assert set(table_rows(section("cli.md", command.prog))) == options


def test_every_folder_of_the_cache_is_explained() -> None:
    never_pruned = {"sessions", "owners"}
    assert set(table_rows(section("environment.md", "Cache"))) == {*KINDS, *never_pruned}


def test_every_variable_is_explained() -> None:
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".c")]
    named = {name for path in sources for name in re.findall(r"SCBENCH_[A-Z_]+", path.read_text(encoding="utf-8"))}
    shown = {*table_rows(section("environment.md", "Read by slop-code"))}
    shown |= {*table_rows(section("environment.md", "Set for tests and submission"))}
    prefixes = {name for name in named if "SCBENCH_ASSET_{NAME}".startswith(name)}
    assert named - prefixes == {name for name in shown if name.startswith("SCBENCH_")} - {"SCBENCH_ASSET_{NAME}"}
    assert prefixes <= {"SCBENCH_ASSET", "SCBENCH_ASSET_"}


def test_every_folder_that_no_line_is_counted_in_is_named() -> None:
    named = set(re.findall(r"`([^`]+)`", section("code-changes.md", "Files that count")))
    assert named == {*NOT_WRITTEN_BY_AGENTS, *RESERVED}
