"""The reference of `problems check` names every step, rule and field there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from slop_code.authoring.check.findings import Finding, Location, StepOutcome
from slop_code.authoring.check.steps import STEPS, CheckReport, StepReport, step
from slop_code.reporting.check_json import document
from tests.docs.test_snippets import reference, rows

FINDING = Finding(step("reference").rules[0], Location("a.py"), "wrong")
FOUND = document([CheckReport("a", Path("a"), "local", (StepReport("reference", StepOutcome((FINDING,)), 0.0),))], 1)
[PROBLEM] = FOUND["problems"]


def cells(*texts: str) -> list[str]:
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]


def test_every_step_is_explained() -> None:
    found = {name: cells_of[1] for name, cells_of in rows(reference("checks.md", "Steps")).items()}
    assert list(found.items()) == [(name, cells(step(name).title)[0]) for name in STEPS]


@pytest.mark.parametrize("name", STEPS)
def test_every_rule_is_explained(name: str) -> None:
    wanted = {rule.id: cells(f"`{rule.id}`", str(rule.severity), rule.title, rule.fix) for rule in step(name).rules}
    lines = "\n".join(f"| {' | '.join(row)} |" for row in wanted.values())
    assert rows(reference("checks.md", f"Step {name}")) == wanted, f"the table of docs/reference/checks.md is:\n{lines}"


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("Document", FOUND),
        ("Problem", PROBLEM),
        ("Step", PROBLEM["steps"][0]),
        ("Finding", PROBLEM["findings"][0]),
    ],
    ids=["document", "problem", "step", "finding"],
)
def test_every_field_is_explained(heading: str, fields: dict[str, object]) -> None:
    assert list(rows(reference("checks.md", heading))) == list(fields)
