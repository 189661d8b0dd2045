import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from slop_code.evaluation.report import CorrectnessResults
from slop_code.reporting.rerun_lines import SHOWN_CHANGES, show_changes, verdict
from slop_code.reporting.terminal import MAX_CHARACTERS, LiveOutput
from slop_code.verification.rerun_changes import RerunChanges, StatusChange, TimeChange, ValueChange

NOTHING = RerunChanges((None, None), [], [], [], [], [], [], [], [])
DATA = Path(__file__).parents[1] / "data" / "results" / "stored"
STATUS = StatusChange("t", "passed", "failed")
INPUT = ValueChange("submission", "a", "b", "another code")
HOSTILE = "\x1b[2J\nx"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (NOTHING, "THE SAME: statuses and verdicts"),
        (
            replace(NOTHING, digests=[INPUT]),
            "THE SAME: statuses and verdicts, though inputs",
        ),
        (
            replace(NOTHING, statuses=[STATUS]),
            "DIFFERS with the same inputs: 1",
        ),
        (
            replace(NOTHING, statuses=[STATUS], versions=[ValueChange("python", "1", "2")]),
            "DIFFERS",
        ),
        (replace(NOTHING, verdicts=[ValueChange("all-cases", "passed", "not passed")]), "DIFFERS"),
        (replace(NOTHING, reasons=(None, "no disk")), "INFRASTRUCTURE FAILURE"),
        (replace(NOTHING, reasons=("no disk", None)), "DIFFERS"),
    ],
)
def test_the_last_line_says_what_differs(found, words):
    assert verdict(found)[0].startswith(words)


@pytest.fixture
def said(capsys):
    """What is printed about the differences, in lines."""
    results = CorrectnessResults.load(DATA / "evaluation.json")

    def lines(found, test=None):
        show_changes(found, results, results, test)
        return capsys.readouterr().out.splitlines()

    return lines


def test_names_and_reasons_are_escaped_and_bounded(said):
    found = replace(
        NOTHING,
        reasons=(HOSTILE, None),
        statuses=[StatusChange(HOSTILE, "passed", "failed")] * (SHOWN_CHANGES + 5),
        versions=[ValueChange(HOSTILE, HOSTILE, None)],
        times=[TimeChange(HOSTILE, 1.0, 2.0)],
    )
    lines = said(found)
    assert not any("\x1b" in line or line == "x" for line in lines)
    assert "  ... and 5 more; --json has them all" in lines
    assert len(lines) < SHOWN_CHANGES + 20


def test_without_a_new_verdict_only_the_reason_is_shown(said):
    lines = said(replace(NOTHING, reasons=("no disk", f"no space\n{HOSTILE}"), times=[TimeChange("x", 1.0, 2.0)]))
    assert lines == [
        "words checkpoint_2: there is no verdict now: no space",
        "\\x1b[2J",
        "x",
        "INFRASTRUCTURE FAILURE: nothing to compare with",
    ]


def test_causes_come_before_changes(said):
    found = replace(
        NOTHING,
        digests=[INPUT],
        versions=[ValueChange("python", "1", "2")],
        verdicts=[ValueChange("all-cases", "passed", "not passed")],
        statuses=[StatusChange("changed", "passed", "failed")],
        added=[StatusChange("new", None, "failed")],
        removed=[StatusChange("gone", "passed", None)],
        messages=[StatusChange("other", "failed", "failed", message_changed=True)],
    )
    assert said(found)[1:] == [
        "inputs that differ:",
        "  submission a before, b now: another code",
        "versions that differ:",
        "  python 1 before, 2 now",
        "verdicts that changed:",
        "  all-cases: passed before, not passed now",
        "tests whose status changed:",
        "  changed: passed before, failed now",
        "tests that were added:",
        "  new: not there before, failed now",
        "tests that were removed:",
        "  gone: passed before, not there now",
        "tests with another message:",
        "  other: failed as before, with another message",
        "times, before and now:",
        "DIFFERS",
    ]


def test_on_a_terminal_tests_stand_in_a_table(said, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    changed = [StatusChange(f"{HOSTILE}[red]{number}", "passed", None) for number in range(SHOWN_CHANGES + 5)]
    lines = said(replace(NOTHING, removed=changed, digests=[INPUT]))
    rows = [" ".join(re.sub(r"\x1b\[[0-9;]*m", "", line).split()) for line in lines]
    row = rows.index("│ \\x1b[2J\\nx[red]0 │ passed │ not there │")
    assert rows.index("submission a before, b now: another code") < row < rows.index("times, before and now:")
    assert "tests that were removed:" not in rows
    assert any("... and 5 more; --json has them all" in text for text in rows[row:])


@pytest.mark.e2e
def test_live_output_is_text_with_an_end():
    stream = io.StringIO()
    live = LiveOutput(stream)
    live("é".encode()[:1])
    live("é".encode()[1:] + b"\x1b]0;title\x07\x00\xff\n\t")
    assert stream.getvalue() == "é\\x1b]0;title\\x07\\x00\ufffd\n\t"
    for _ in range(40):
        live(b"x" * (MAX_CHARACTERS // 16))
    assert len(stream.getvalue()) < MAX_CHARACTERS + 100
    assert stream.getvalue().endswith("\n[... the rest is not shown ...]\n")
