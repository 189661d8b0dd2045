"""Reference of `problems check`: it lists every step, rule and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from slop_code.authoring.check.findings import Finding, Location, StepOutcome
from slop_code.authoring.check.steps import STEPS, CheckReport, StepReport, step
from slop_code.reporting.check_json import document
from tests.docs.pages import section, table_rows

FINDING = Finding(step("reference").rules[0], Location("a.py"), "wrong")
DOCUMENT = document([CheckReport("a", Path("a"), "local", (StepReport("reference", StepOutcome((FINDING,)), 0.0),))], 1)
[PROBLEM] = DOCUMENT["problems"]
PAGE = "docs/reference/checks.md"


def cells(*texts: str) -> list[str]:
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]


def test_every_step_is_explained() -> None:
    titles = {name: row[1] for name, row in table_rows(section("checks.md", "Steps")).items()}
    assert list(titles.items()) == [(name, cells(step(name).title)[0]) for name in STEPS], PAGE


@pytest.mark.parametrize("name", STEPS)
def test_every_rule_is_explained(name: str) -> None:
    expected = {rule.id: cells(f"`{rule.id}`", str(rule.severity), rule.title, rule.fix) for rule in step(name).rules}
    lines = "\n".join(f"| {' | '.join(row)} |" for row in expected.values())
    shown = table_rows(section("checks.md", f"Step {name}"))
    assert shown == expected, f"in {PAGE}, the table has to be:\n{lines}"


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("Document", DOCUMENT),
        ("Problem", PROBLEM),
        ("Step", PROBLEM["steps"][0]),
        ("Finding", PROBLEM["findings"][0]),
    ],
    ids=["document", "problem", "step", "finding"],
)
def test_every_field_is_explained(heading: str, fields: dict[str, object]) -> None:
    assert list(table_rows(section("checks.md", heading))) == list(fields), PAGE
