import io
from dataclasses import replace

import pytest
from rich.console import Console

from slop_code.evaluation.changes import Change, Changes, TestChange, Time
from slop_code.reporting.changes import SHOWN, SHOWN_LIVE, TABLE, Live, lines, table_of, verdict

NOTHING = Changes((None, None), [], [], [], [], [], [], [], [])
HOSTILE = "\x1b[2J\nx"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (NOTHING, "THE SAME: statuses and verdicts"),
        (replace(NOTHING, digests=[Change("tests", "a", "b", "m")]), "THE SAME: statuses and verdicts, though inputs"),
        (replace(NOTHING, statuses=[TestChange("t", "passed", "failed")]), "DIFFERS, and nothing that went in does: 1"),
        (
            replace(NOTHING, statuses=[TestChange("t", "passed", "failed")], versions=[Change("python", "1", "2")]),
            "DIFFERS",
        ),
        (replace(NOTHING, verdicts=[Change("all-cases", "passed", "not passed")]), "DIFFERS"),
        (replace(NOTHING, reasons=(None, "no disk")), "INFRASTRUCTURE FAILURE"),
        (replace(NOTHING, reasons=("no disk", None)), "DIFFERS"),
    ],
)
def test_the_last_line(found, words):
    assert verdict(found)[0].startswith(words)


def test_names_and_reasons_are_anyones():
    found = replace(
        NOTHING,
        reasons=(HOSTILE, HOSTILE),
        statuses=[TestChange(HOSTILE, "passed", "failed")] * (SHOWN + 5),
        versions=[Change(HOSTILE, HOSTILE, None)],
        times=[Time(HOSTILE, 1.0, 2.0)],
    )
    said = [text for text, _ in lines(found)]
    assert not any("\x1b" in text or "\n" in text for text in said)
    assert "  ... and 5 more; --json has them all" in said
    assert len(said) < SHOWN + 20


def test_on_a_terminal_tests_stand_in_a_table():
    changed = [TestChange(f"{HOSTILE}[red]{number}", "passed", None) for number in range(SHOWN + 5)]
    found = replace(NOTHING, went=changed)
    assert next(lines(found, table=True))[0] == TABLE
    stream = io.StringIO()
    Console(file=stream, width=100).print(table_of(changed))
    rows = [" ".join(row.split()) for row in stream.getvalue().splitlines()]
    assert "│ \\x1b[2J\\nx[red]0 │ passed │ not there │" in rows
    assert "... and 5 more; --json has them all" in stream.getvalue()


def test_live_output_is_text_with_an_end():
    stream = io.StringIO()
    live = Live(stream)
    live("é".encode()[:1])
    live("é".encode()[1:] + b"\x1b]0;title\x07\x00\xff\n\t")
    assert stream.getvalue() == "é\\x1b]0;title\\x07\\x00\ufffd\n\t"
    for _ in range(40):
        live(b"x" * (SHOWN_LIVE // 16))
    assert len(stream.getvalue()) < SHOWN_LIVE + 100
    assert stream.getvalue().endswith("\n[... the rest is not shown ...]\n")
