"""Findings of fuzzing, reduced: each was a traceback, a hang or a wrong answer once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from slop_code.authoring.check.findings import Finding, Location
from slop_code.authoring.check.steps import step
from slop_code.cli.main import run
from slop_code.errors import ConfigError, ResultError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import duration_in
from slop_code.execution.environment import parse_size
from slop_code.reporting.sarif import fingerprint
from tests.fuzz.odd_input import TERMINAL

DATA = Path(__file__).parents[1] / "data"
UNFIT = "not YAML: a tag that does not fit its value"
LONG = "a number of more than 1000 characters"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "config" / "problem", tmp_path / "problem"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("extra: !!bool maybe", UNFIT),
        ("extra: !!timestamp today", UNFIT),
        ("extra: !!int ''", UNFIT),
        ("extra: !!int '-'", UNFIT),
        ("extra: !!float ''", UNFIT),
        ("extra: !!float 1" + ":59" * 200, UNFIT),
        ("parallel: 0x" + "f" * 5000, LONG),
        ("? !!int '0x" + "f" * 5000 + "'\n: 1", LONG),
        ("extra: !!int 1" + ":1" * 500, LONG),
    ],
    ids=lambda text: text[:24],
)
def test_a_mistake_in_a_config_is_one_short_line(problem: Path, line: str, said: str) -> None:
    path = problem / "config.yaml"
    path.write_text(f"{path.read_text()}\n{line}\n")
    with pytest.raises(ConfigError) as found:
        ProblemConfig.from_yaml(problem)
    [message] = str(found.value).splitlines()
    assert said in message
    assert len(message) < 1000


def test_a_warning_is_one_line_whatever_the_key(problem: Path) -> None:
    path = problem / "config.yaml"
    path.write_text(f'{path.read_text()}\n"a\\nb\\e[2J": 1\n"{"k" * 1000}": 1\n')
    warnings = ProblemConfig.from_yaml(problem).warnings[-2:]
    assert [len(warning.splitlines()) for warning in warnings] == [1, 1]
    assert not any(TERMINAL.search(warning) or len(warning) > 500 for warning in warnings)


def test_a_stored_result_is_strict_json_everywhere(tmp_path: Path) -> None:
    document = json.loads((DATA / "results/stored/evaluation.json").read_bytes())
    document["isolation"]["network"] = float("nan")
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ResultError, match="isolation: has what no JSON can hold, such as NaN"):
        CorrectnessResults.load(path)


def test_large_sizes_are_exact() -> None:
    assert parse_size("9007199254740993") == 2**53 + 1


def test_no_test_lasts_so_long() -> None:
    """As a result could not be stored that says so."""
    document = json.loads((DATA / "reports/pytest-json-report-1.5.0/all-outcomes.json").read_bytes())
    document["tests"][0]["call"]["duration"] = 1e300
    assert parse_json_report(json.dumps(document).encode()).tests[0].duration_ms < 1e6
    document = json.loads((DATA / "reports/pytest-json-ctrf-0.6.1/all-outcomes.json").read_bytes())
    document["results"]["tests"][0]["duration"] = 1e16
    assert parse_ctrf(json.dumps(document).encode()).tests[0].duration_ms == 0
    assert duration_in({"seconds": 1e11}, "seconds", "here") == 1e11


def test_a_finding_about_half_a_character() -> None:
    finding = Finding(step("reference").rules[0], Location("config.yaml"), "\ud800")
    assert fingerprint(finding, "\udfff") != fingerprint(finding, "\ud800")


def test_words_of_the_command_line_are_no_commands_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """They may be names of files, as a shell puts them there."""
    assert run(["show", "a", "b", "\x1b[2J"]) == 2
    said = capsys.readouterr().err
    assert "\\x1b[2J" in said
    assert not TERMINAL.search(said)
