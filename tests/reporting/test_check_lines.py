from pathlib import Path

import pytest

from slop_code.authoring.check.findings import Finding, Location, Rule, Severity, StepOutcome
from slop_code.authoring.check.steps import STEPS, CheckReport, StepReport
from slop_code.reporting.check_lines import counts, ending, heading, next_step, step_lines

SEVERE = Rule("severe-thing", Severity.ERROR, "It is severe", "Fix it.")
SLIGHT = Rule("slight-thing", Severity.NOTE, "It is slight", "Think of it.")


def lines(step, *, verbose=False):
    return [text for text, _ in step_lines(step, Path("shout"), verbose=verbose)]


def step(*findings, **more):
    summary = more.pop("summary", ())
    return StepReport("layout", StepOutcome(tuple(findings), summary), 0.25, **more)


def test_a_step_without_findings_is_ok():
    assert lines(step(summary=("3 files",))) == ["  layout     ok  0.2 s", "    3 files"]


def test_findings_are_printed_with_location_and_fix():
    severe = Finding(SEVERE, Location("tests/a.py", 3), "no\nway", own_fix="Do this.", detail="x = 1\ny\n")
    slight = Finding(SLIGHT, Location("b.txt"), "hm")
    assert lines(step(severe, slight)) == [
        "  layout     1 error, 1 note  0.2 s",
        "shout/tests/a.py:3: error: no\\nway [severe-thing]",
        "    fix: Do this.",
        "    | x = 1",
        "    | y",
        "shout/b.txt: note: hm [slight-thing]",
        "    fix: Think of it.",
    ]


def test_tests_that_failed_for_one_reason_are_shown_together():
    def failed(name, cause):
        return Finding(SEVERE, Location("a.py", 1), f"{name} fails", test=name, detail="E", shared_cause=cause)

    findings = [failed("a", "fail: x"), failed("b", "fail: y"), *(failed(name, "fail: x") for name in "cdef")]
    assert lines(step(*findings))[1:] == [
        "shout/a.py:1: error: 5 tests fail: x [severe-thing]",
        "    fix: Fix it.",
        "    | E",
        "    tests: a, c, d and 2 more; -v shows each",
        "shout/a.py:1: error: b fails [severe-thing]",
        "    fix: Fix it.",
        "    | E",
    ]
    assert [line for line in lines(step(*findings), verbose=True) if "error:" in line] == [
        f"shout/a.py:1: error: {name} fails [severe-thing]" for name in "abcdef"
    ]


def test_a_problem_elsewhere_has_absolute_paths():
    finding = Finding(SEVERE, Location("a.py"), "no")
    [_, line, _] = [text for text, _ in step_lines(step(finding), Path("/elsewhere"))]
    assert line == "/elsewhere/a.py: error: no [severe-thing]"


def test_allowed_findings_are_counted():
    finding = Finding(SEVERE, Location("a.py", 1), "no")
    assert lines(step(allowed=(finding,))) == ["  layout     ok (1 allowed)  0.2 s"]
    assert lines(step(allowed=(finding,)), verbose=True)[1:] == ["shout/a.py:1: allowed: no [severe-thing]"]


def test_long_details_have_an_end():
    finding = Finding(SEVERE, Location("a.py", 1), "m" * 1000, detail="line\n" * 30 + "z" * 1000)
    shown = lines(step(finding))
    assert len(shown) == 3 + 20 + 1
    assert shown[-1] == "    | [... 11 lines more; -v or --json has them]"
    assert len(lines(step(finding), verbose=True)) == 3 + 31
    assert max(map(len, lines(step(finding), verbose=True))) < 600


@pytest.mark.parametrize(
    ("kept", "verbose", "rest"),
    [
        ({"detail": "line\n" * 2001}, True, "    | [... 1 line more; --json has them]"),
        ({"detail": "line\n" * 2001}, False, "    | [... 1981 lines more; -v or --json has them]"),
        ({"summary": ("line",) * 201}, False, "    [... 1 line more; --json has them]"),
        ({"summary": ("line",) * 201}, True, "    [... 1 line more; --json has them]"),
    ],
)
def test_the_lines_that_are_left_out_are_where_the_last_line_says(kept, verbose, rest):
    findings = [Finding(SEVERE, Location("a.py", 1), "no", detail=kept["detail"])] if "detail" in kept else []
    assert lines(step(*findings, summary=kept.get("summary", ())), verbose=verbose)[-1] == rest


def test_odd_names_are_no_commands():
    odd = "\x1b]0;x\x07\r\u202e"
    finding = Finding(SEVERE, Location(f"{odd}.py", 1), odd, own_fix=odd, detail=odd)
    shown = [
        *lines(step(finding, summary=(odd,))),
        *lines(step(broken=odd)),
        *lines(step(allowed=(finding,)), verbose=True),
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
    assert counts([Finding(SEVERE, Location("a"), "m", own_severity=one) for one in severities]) == said


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


CHECK = "slop-code problems check shout"
WHOLE = {name: StepReport(name, StepOutcome(), 0.1) for name in STEPS}


def with_findings(name, *severities, checkpoint="checkpoint_2"):
    found = [
        Finding(SEVERE, Location("a"), "m", own_severity=severity, checkpoint=checkpoint) for severity in severities
    ]
    return {name: StepReport(name, StepOutcome(tuple(found)), 0.1)}


def checked(steps, name="shout"):
    return CheckReport(name, Path(name), "local", tuple(steps.values()))


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        (WHOLE, "ready: slop-code eval-snapshot SUBMISSION -p shout -c CHECKPOINT"),
        (
            WHOLE | with_findings("limits", Severity.NOTE),
            "ready: slop-code eval-snapshot SUBMISSION -p shout -c CHECKPOINT",
        ),
        (
            WHOLE | with_findings("limits", Severity.WARNING, Severity.NOTE),
            f"next: fix or allow the warning of shout; then {CHECK}",
        ),
        (
            WHOLE | with_findings("layout", Severity.ERROR, Severity.WARNING, Severity.ERROR),
            f"next: fix these 2 errors of shout first; then {CHECK}",
        ),
        (
            WHOLE | with_findings("reference", Severity.ERROR) | with_findings("secrecy", Severity.ERROR),
            "next: slop-code problems run shout -c checkpoint_2, which shows how the reference fails",
        ),
        (
            WHOLE | with_findings("layout", Severity.ERROR) | with_findings("reference", Severity.ERROR),
            f"next: fix these 2 errors of shout first; then {CHECK}",
        ),
        (
            WHOLE | {"controls": StepReport("controls", StepOutcome(), 0.1, blocked="no reference")},
            f"next: fix what blocks the step controls; then {CHECK}",
        ),
        (
            WHOLE
            | with_findings("layout", Severity.ERROR)
            | {"secrecy": StepReport("secrecy", StepOutcome(), 0.1, broken="no sandbox")},
            f"next: slop-code doctor, as this machine could not do the step secrecy; then {CHECK}",
        ),
        ({"layout": WHOLE["layout"]}, f"next: {CHECK}, for all steps"),
    ],
    ids=["ready", "note", "warning", "errors", "reference", "layout first", "blocked", "broken", "some steps"],
)
def test_the_last_line_says_what_to_do_next(steps, line):
    assert next_step([checked(steps)])[0] == line


def test_a_part_of_the_checkpoints_is_not_ready():
    assert next_step([checked(WHOLE)], all_checkpoints=False)[0] == f"next: {CHECK}, for all steps and checkpoints"


def test_of_several_problems_the_first_that_needs_work_is_named():
    bad = checked(WHOLE | with_findings("layout", Severity.ERROR), "a b\n")
    word = "$'a b\\x0a'"
    assert (
        next_step([checked(WHOLE), bad])[0]
        == f"next: fix the error of a b\\n first; then slop-code problems check {word}"
    )
    assert next_step([checked(WHOLE)] * 2)[0] == "ready: slop-code eval-snapshot SUBMISSION -p PROBLEM -c CHECKPOINT"
