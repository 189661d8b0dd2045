from pathlib import Path

import pytest

from slop_code.authoring.check.findings import Finding, Location, Rule, Severity, StepOutcome
from slop_code.authoring.check.steps import CheckReport, StepReport
from slop_code.reporting.check_lines import counts, ending, heading, step_lines

GRAVE = Rule("grave-thing", Severity.ERROR, "It is grave", "Mend it.")
SLIGHT = Rule("slight-thing", Severity.NOTE, "It is slight", "Think of it.")


def lines(step, *, every=False):
    return [text for text, _ in step_lines(step, Path("shout"), every=every)]


def step(*findings, **more):
    summary = more.pop("summary", ())
    return StepReport("layout", StepOutcome(tuple(findings), summary), 0.25, **more)


def test_a_step_without_findings_is_ok():
    assert lines(step(summary=("3 files",))) == ["  layout     ok  0.2 s", "    3 files"]


def test_findings_are_printed_with_location_and_fix():
    grave = Finding(GRAVE, Location("tests/a.py", 3), "no\nway", own_fix="Do this.", detail="x = 1\ny\n")
    slight = Finding(SLIGHT, Location("b.txt"), "hm")
    assert lines(step(grave, slight)) == [
        "  layout     1 error, 1 note  0.2 s",
        "shout/tests/a.py:3: error: no\\nway [grave-thing]",
        "    fix: Do this.",
        "    | x = 1",
        "    | y",
        "shout/b.txt: note: hm [slight-thing]",
        "    fix: Think of it.",
    ]


def test_a_problem_elsewhere_has_absolute_paths():
    finding = Finding(GRAVE, Location("a.py"), "no")
    [_, line, _] = [text for text, _ in step_lines(step(finding), Path("/elsewhere"))]
    assert line == "/elsewhere/a.py: error: no [grave-thing]"


def test_allowed_findings_are_counted():
    finding = Finding(GRAVE, Location("a.py", 1), "no")
    assert lines(step(allowed=(finding,))) == ["  layout     ok (1 allowed)  0.2 s"]
    assert lines(step(allowed=(finding,)), every=True)[1:] == ["shout/a.py:1: allowed: no [grave-thing]"]


def test_long_details_have_an_end():
    finding = Finding(GRAVE, Location("a.py", 1), "m" * 1000, detail="line\n" * 30 + "z" * 1000)
    shown = lines(step(finding))
    assert len(shown) == 3 + 20 + 1
    assert shown[-1] == "    | [... 11 lines more; -v or --json has them]"
    assert len(lines(step(finding), every=True)) == 3 + 31
    assert max(map(len, lines(step(finding), every=True))) < 600


def test_odd_names_are_no_commands():
    odd = "\x1b]0;x\x07\r\u202e"
    finding = Finding(GRAVE, Location(f"{odd}.py", 1), odd, own_fix=odd, detail=odd)
    shown = [
        *lines(step(finding, summary=(odd,))),
        *lines(step(broken=odd)),
        *lines(step(allowed=(finding,)), every=True),
    ]
    assert all(line.isprintable() for line in shown)


@pytest.mark.parametrize(
    ("severities", "said"),
    [
        ([], "nothing found"),
        ([Severity.ERROR, Severity.NOTE, Severity.ERROR], "2 errors, 1 note"),
        ([Severity.WARNING], "1 warning"),
    ],
    ids=["none", "several", "one"],
)
def test_findings_are_counted_by_severity(severities, said):
    assert counts([Finding(GRAVE, Location("a"), "m", own_severity=one) for one in severities]) == said


@pytest.mark.parametrize("why", ["broken", "blocked"])
def test_a_step_that_was_not_done_has_its_reason(why):
    """Line breaks of the reason are line breaks."""
    reason = "no sandbox:\n  this\n  that\n"
    assert lines(step(**{why: reason})) == ["  layout     NOT DONE: no sandbox:", "    |   this", "    |   that"]
    assert len(lines(step(**{why: "x\n" * 1000}))) == 22


def test_the_environment_of_what_does_not_load():
    assert heading("shout", Path("shout"), None)[0] == "shout (shout, environment not known)"


def test_the_last_line_counts_problems_and_steps():
    report = CheckReport("shout", Path("shout"), "local", (step(), step(broken="no sandbox"), step(blocked="no")))
    assert ending([report])[0] == "1 problem: nothing found; 2 steps NOT DONE"
    assert ending([])[0] == "0 problems: nothing found"
