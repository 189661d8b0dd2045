"""`slop-code problems check`: what is refused, exit statuses, and the same findings in every form."""

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from slop_code.authoring.check.findings import Finding, Location, Rule, Severity, StepOutcome
from slop_code.authoring.check.steps import STEPS, CheckReport, StepReport
from slop_code.cli.main import run
from slop_code.cli.problems import problems_check_command as command
from slop_code.cli.problems.problems_check_command import status_of

SARIF = json.loads((Path(__file__).parents[1] / "data/schemas/sarif-2.1.0.json").read_text())
SLEEPS = "import time\n\n\ndef test_waits():\n    time.sleep(1)\n"
ALLOWED = SLEEPS.replace("sleep(1)", "sleep(1)  # slop-code: allow fixed-sleep  the specification says so")
NO_ENGINE = {"type": "docker", "name": "boxed", "docker": {"image": "none:1", "binary": "no-such-engine"}}


def reported(*severities, **undone):
    rule = Rule("a-rule", Severity.ERROR, "Wrong", "Fix it.")
    found = tuple(Finding(rule, Location("a.py"), "wrong", own_severity=severity) for severity in severities)
    return CheckReport("shout", Path("shout"), "local", (StepReport("layout", StepOutcome(found), 0.0, **undone),))


@pytest.mark.parametrize(
    ("reports", "fail_on", "status"),
    [
        ([], Severity.NOTE, 0),
        ([reported()], Severity.NOTE, 0),
        ([reported(Severity.NOTE)], Severity.NOTE, 1),
        ([reported(Severity.NOTE)], Severity.WARNING, 0),
        ([reported(Severity.WARNING)], Severity.WARNING, 1),
        ([reported(Severity.WARNING)], Severity.ERROR, 0),
        ([reported(Severity.NOTE, Severity.ERROR)], Severity.ERROR, 1),
        ([reported(), reported(Severity.ERROR)], Severity.ERROR, 1),
        ([reported(broken="no sandbox")], Severity.ERROR, 3),
        ([reported(Severity.ERROR), reported(broken="no sandbox")], Severity.ERROR, 3),
        ([reported(blocked="no reference")], Severity.ERROR, 1),
        ([reported(blocked="no reference"), reported(broken="no sandbox")], Severity.ERROR, 3),
    ],
    ids=[
        "none", "clean", "note", "note below", "warning", "warning below", "worst counts", "any counts",
        "not done", "not done and found", "in the way", "in the way and not done",
    ],
)  # fmt: skip
def test_the_exit_status_follows_from_severities_and_broken_steps(reports, fail_on, status):
    assert status_of(reports, fail_on) == status


@pytest.fixture
def problem(make_problem, monkeypatch):
    """Of which only the layout is looked at."""
    made = make_problem(
        {"test_checkpoint_1.py": SLEEPS},
        files={"checkpoint_1.md": "Nothing.\n", "solutions/checkpoint_1/main.py": "print()\n"},
    ).path
    monkeypatch.chdir(made)
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    return made


@pytest.fixture
def check(problem, capsys):
    def call(*arguments):
        status = run(["problems", "check", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--step", "taste"], "no step 'taste'; there are layout, reference"),
        (["--step", "layout", "--skip", "layout"], "no step is left"),
        (["--step", "layout", "--quarantine"], "--quarantine needs the step stability"),
        (["elsewhere"], "no problem 'elsewhere' in "),
        (["-c", "7"], "no checkpoint '7'"),
        (["--sarif", "."], "a folder; give the name of a file with --sarif"),
        (["--sarif", "pipe"], "not a regular file"),
        (["--sarif", "link"], "not a regular file"),
        (["--sarif", "config.yaml/found.sarif"], "config.yaml is not a folder"),
        (["-e", "nowhere.yaml"], "nowhere.yaml"),
        (["--repeat", "0"], "expected a whole number from 1 to 1000"),
        (["--budget", "much"], "much"),
        (["--fail-on", "taste"], "invalid choice"),
        (["--explain", "no-such-rule"], "no rule 'no-such-rule'"),
    ],
    ids=[
        "step",
        "none left",
        "quarantine",
        "path",
        "checkpoint",
        "sarif",
        "sarif to a pipe",
        "sarif to a link",
        "sarif far away",
        "environment",
        "number",
        "budget",
        "severity",
        "rule",
    ],
)
def test_wrong_options_are_usage_errors_and_write_nothing(check, problem, arguments, words):
    os.mkfifo(problem / "pipe")
    (problem / "link").symlink_to("config.yaml")
    before = sorted(os.listdir(problem))
    status, out, err = check(*arguments)
    assert (status, words in err, out) == (2, True, "")
    assert sorted(os.listdir(problem)) == before


def test_findings_are_printed_with_location_and_fix(check):
    status, out, err = check("--step", "layout")
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[1].startswith("  layout     1 warning")
    [line_of_finding] = [line for line in lines if line.endswith("[fixed-sleep]")]
    assert line_of_finding.startswith("tests/test_checkpoint_1.py:5: warning: ")
    assert lines[lines.index(line_of_finding) + 1].startswith("    fix: ")
    assert lines[-2] == "1 problem: 1 warning"
    assert lines[-1].startswith("next: fix or allow the warning of ")
    assert lines[-1].endswith("; then slop-code problems check .")


@pytest.mark.parametrize(("fail_on", "status"), [("note", 1), ("warning", 1), ("error", 0)])
def test_how_grave_it_has_to_be(check, fail_on, status):
    assert check("--step", "layout", "--fail-on", fail_on)[0] == status


def test_allowed_by_a_comment(check, problem):
    (problem / "tests/test_checkpoint_1.py").write_text(ALLOWED)
    status, out, _ = check("--step", "layout", "-v")
    assert status == 0
    assert "ok (1 allowed)" in out
    assert "tests/test_checkpoint_1.py:5: allowed: " in out


def test_findings_are_written_as_json_and_sarif(check, problem):
    (problem / "out").mkdir()
    status, out, err = check("--step", "layout", "--json", "--sarif", "out/found.sarif")
    assert (status, "found.sarif" in err) == (1, True)
    document = json.loads(out)
    assert (document["schema_version"], document["exit_status"]) == (1, 1)
    assert document["counts"] == {"error": 0, "warning": 1, "note": 0}
    [about] = document["problems"]
    assert [step["name"] for step in about["steps"]] == ["layout"]
    [finding] = about["findings"]
    assert {name: finding[name] for name in ("rule", "severity", "file", "line")} == {
        "rule": "fixed-sleep",
        "severity": "warning",
        "file": "tests/test_checkpoint_1.py",
        "line": 5,
    }
    assert finding["fix"]
    sarif = json.loads((problem / "out/found.sarif").read_text())
    jsonschema.Draft202012Validator(SARIF).validate(sarif)
    [result] = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("fixed-sleep", "warning")


def test_a_configuration_that_does_not_load_is_a_finding(check, problem):
    (problem / "config.yaml").write_text("name: [\n")
    status, out, _ = check()
    assert status == 1
    assert "config.yaml" in out
    assert out.splitlines()[0].endswith(", environment not known)")
    assert "  reference  NOT DONE: config.yaml is invalid; fix that first\n" in out
    assert out.splitlines()[-2] == "1 problem: 1 error; 6 steps NOT DONE"
    assert out.splitlines()[-1].startswith("next: fix the error of ")
    [about] = json.loads(check("--json")[1])["problems"]
    assert (about["environment"], {step["blocked"] for step in about["steps"][1:]}) == (
        None,
        {"config.yaml is invalid; fix that first"},
    )


@pytest.mark.e2e
def test_a_step_that_cannot_be_done(check, problem):
    """What others found is told all the same."""
    (problem / "boxed.yaml").write_text(yaml.safe_dump(NO_ENGINE))
    status, out, _ = check("-e", "boxed.yaml", "--step", "layout", "--step", "reference")
    assert status == 3
    assert "[fixed-sleep]" in out
    assert "  reference  NOT DONE: " in out
    assert out.splitlines()[-2].endswith("; 1 step NOT DONE")
    assert out.splitlines()[-1].startswith("next: slop-code doctor, as this machine could not do the step reference; ")


def test_an_environment_of_its_own_that_does_not_load(check, problem):
    (problem / "environment.yaml").write_text("type: ship\n")
    status, out, _ = check("--step", "layout")
    assert status == 1
    assert re.search("^environment.yaml:1: error: type: found 'ship'.* \\[config-invalid\\]$", out, re.M)


def test_tests_that_are_missing(check, problem, cache, need_bubblewrap):
    """The problem itself stands in the way of the other steps: no failure of this machine."""
    need_bubblewrap()
    (problem / "tests/test_checkpoint_1.py").unlink()
    status, out, _ = check("--step", "layout", "--step", "reference", "--json")
    assert status == 1
    [about] = json.loads(out)["problems"]
    assert "tests-missing" in [finding["rule"] for finding in about["findings"]]
    [_, reference] = about["steps"]
    assert (reference["broken"], "test_checkpoint_1.py" in reference["blocked"]) == (None, True)


@pytest.mark.parametrize(("rule", "comment"), [("fixed-sleep", True), ("config-invalid", False)])
def test_explain_says_how_a_rule_is_allowed(check, rule, comment):
    status, out, _ = check("--explain", rule)
    assert (status, out.startswith(f"{rule} (")) == (0, True)
    assert (f"# slop-code: allow {rule}" in out) is comment


def test_control_sequences_stay_here(check, problem):
    (problem / "tests/test_checkpoint_1.py").write_text("def test_\x1b[31m(:\n")
    (problem / "tests/\x1b[2Jred.txt").touch()
    for arguments in ((), ("--json",), ("-v",)):
        _, out, err = check("--step", "layout", *arguments)
        assert "\x1b" not in out + err


def test_options_say_what_there_is():
    assert [*command.STEP_NAMES.split(", ")] == [*STEPS]
    assert [*command.SEVERITIES] == [str(severity) for severity in Severity]
