"""Every rule has a minimal problem that breaks it and one that does not: `rules/RULE.yaml`.

`bad` and `good` are files laid over a sound problem (see conftest.py), `both` is laid below them, null takes one away;
`effort` says how much is done. A finding of `bad` is one of that rule, and `good` has none of any rule of its step.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from slop_code.authoring.check.check_problem import config_report
from slop_code.authoring.check.steps import STEPS, StepReport, check_step, step
from slop_code.errors import ConfigError
from tests.marks import in_long

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.authoring.check.workbench import Workbench

RULES = Path(__file__).parent / "rules"
ALL_RULES = {rule.id: rule for name in STEPS for rule in step(name).rules}
STEP_OF = {rule.id: name for name in STEPS for rule in step(name).rules}
STATIC = [rule for rule in STEP_OF if STEP_OF[rule] == "layout"]
LIVE = [rule for rule in STEP_OF if STEP_OF[rule] != "layout"]
FIRST = list({STEP_OF[rule]: rule for rule in reversed(LIVE)}.values())
"""A rule of each step."""


def case(rule: str) -> dict[str, Any]:
    found = yaml.safe_load((RULES / f"{rule}.yaml").read_text(encoding="utf-8"))
    assert set(found) <= {"bad", "good", "both", "effort"}
    return {"bad": {}, "good": {}, "both": {}, "effort": {}, **found}


def checked(bench: Callable[..., Workbench], rule: str, which: str, tmp_path: Path) -> StepReport:
    own = case(rule)
    try:
        tried = bench(own["both"], own[which], **own["effort"])
    except ConfigError as error:
        return config_report(error)
    report = check_step(tried, STEP_OF[rule])
    assert report.undone is None
    return report


def assert_found(rule: str, report: StepReport) -> None:
    """A comment is only promised where one can stand."""
    found = [finding for finding in report.outcome.findings if finding.rule.id == rule]
    assert found
    assert not ALL_RULES[rule].in_code or any(one.location.file.endswith(".py") and one.location.line for one in found)


def test_every_rule_has_a_case():
    assert {path.stem for path in RULES.glob("*.yaml")} == set(ALL_RULES), "tests/authoring/rules: a file for each rule"
    assert len(ALL_RULES) == sum(len(step(name).rules) for name in STEPS)


@pytest.mark.parametrize("rule", STATIC)
def test_a_layout_rule_reports_its_bad_example(rule, bench, tmp_path):
    assert_found(rule, checked(bench, rule, "bad", tmp_path))


@pytest.mark.parametrize("rule", STATIC)
def test_a_layout_rule_accepts_its_good_example(rule, bench, tmp_path):
    assert checked(bench, rule, "good", tmp_path).outcome.findings == ()


@pytest.mark.parametrize("rule", [*FIRST, *in_long(*(rule for rule in LIVE if rule not in FIRST))])
def test_a_rule_of_evaluations_reports_its_bad_example(rule, bench, tmp_path, cache, need_bubblewrap):
    need_bubblewrap()
    assert_found(rule, checked(bench, rule, "bad", tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("rule", LIVE)
def test_a_rule_of_evaluations_accepts_its_good_example(rule, bench, tmp_path, cache, need_bubblewrap):
    need_bubblewrap()
    assert checked(bench, rule, "good", tmp_path).outcome.findings == ()
