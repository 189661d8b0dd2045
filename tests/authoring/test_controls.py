import json
import subprocess

import pytest

from slop_code.authoring.check.control_programs import CONTROLS, PREVIOUS
from slop_code.authoring.check.controls_step import (
    ControlResult,
    facts,
    no_verdict_findings,
    nothing_new_findings,
    policy_findings,
    summary_line,
    weak_test_findings,
)
from slop_code.authoring.check.findings import Severity
from slop_code.authoring.check.steps import check_step
from slop_code.errors import UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution import EnvironmentSpec
from tests.authoring.reference_results import case, judged

BY_NAME = {control.name: control for control in CONTROLS}


def environment(command="python", entry="{entry_file}.py", **more):
    commands = {"command": command, "entry_file": entry}
    return EnvironmentSpec.model_validate({"type": "local", "name": "test", "commands": commands, **more})


def rows(passed, *, tests=(("core", "C"), ("more", "F"), ("wrong", "E"), ("old", "R")), checkpoint="checkpoint_1"):
    """`passed`: for each control the tests that pass for it."""
    return [
        ControlResult(
            checkpoint,
            control,
            judged(*(case(name, "passed" if name in good else "failed", group) for name, group in tests)),
        )
        for control, good in passed.items()
    ]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("name", "arguments", "stdin", "status", "stdout", "complains"),
    [
        ("silent", ["a"], "b", 0, "", False),
        ("echo", ["a", "-n b"], "c\n", 0, "a -n b\nc\n", False),
        ("echo", [], "", 0, "", False),
        ("fails-1", ["a"], "", 1, "", True),
        ("fails-2", [], "", 2, "", True),
    ],
)
def test_controls_behave_as_described(name, arguments, stdin, status, stdout, complains):
    argv = ["sh", "-c", BY_NAME[name].script, "main", *arguments]
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, bool(done.stderr)) == (status, stdout, complains)


@pytest.mark.parametrize(
    ("command", "entry", "found"),
    [
        ("python", "{entry_file}.py", ["sh", "main.py"]),
        ("node --experimental", "src/{entry_file}.js", ["sh", "src/main.js"]),
        ("", "{entry_file}", ["sh", "main"]),
        ("/opt/tool", "/elsewhere/{entry_file}", ["sh", "/elsewhere/main"]),
        ("python", "../{entry_file}.py", ["sh", "../main.py"]),
    ],
)
def test_a_control_is_a_shell_script_in_place_of_the_entry(authored, tmp_path, command, entry, found):
    problem = ProblemConfig.from_yaml(authored())
    spec = environment(command, entry, setup={"commands": ["make"], "eval_commands": ["make test"]})
    derived = BY_NAME["silent"].environment(spec)
    submission = BY_NAME["silent"].write(tmp_path, problem, spec)
    assert derived.entry(problem.entry_file) == found
    assert (derived.setup.commands, derived.setup.eval_commands) == ([], [])
    inside = not found[-1].startswith(("/", ".."))
    written = [str(path.relative_to(submission)) for path in submission.rglob("*") if path.is_file()]
    assert written == ([found[-1]] if inside else [])
    assert not (tmp_path / "main.py").exists()


def test_without_any_file_the_command_stays(authored, tmp_path):
    spec = environment("node", "{entry_file}.js", setup={"commands": ["npm ci"]})
    assert BY_NAME["empty"].environment(spec).entry("main") == ["node", "main.js"]
    folder = BY_NAME["empty"].write(tmp_path, ProblemConfig.from_yaml(authored()), spec)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("passed", "rule", "severity"),
    [
        ({"silent": ["core"]}, "control-passes", Severity.ERROR),
        ({"fails-1": ["core"]}, "control-passes", Severity.ERROR),
        ({"echo": ["more"]}, "control-passes", Severity.WARNING),
        ({"silent": ["wrong"]}, "control-passes", Severity.WARNING),
        ({"fails-2": ["wrong"], "silent": ["wrong"]}, "control-passes", Severity.WARNING),
        ({"fails-2": ["wrong"]}, "error-test-weak", Severity.WARNING),
        ({"empty": ["wrong"], "fails-2": ["wrong"]}, "error-test-weak", Severity.WARNING),
        ({"empty": ["old"]}, "control-passes", Severity.WARNING),
    ],
)
def test_what_a_passed_test_means(tmp_path, passed, rule, severity):
    [finding] = weak_test_findings(tmp_path, rows(passed))
    assert (finding.rule.id, finding.severity) == (rule, severity)
    assert severity is finding.rule.severity or f"an {severity} if" in finding.rule.title


@pytest.mark.parametrize(
    ("tests", "passed", "severities"),
    [
        (["TestA::first", "TestA::second"], {"silent": ["TestA::first"]}, [Severity.WARNING]),
        (["TestA::first", "TestA::second"], {"silent": ["TestA::first", "TestA::second"]}, [Severity.ERROR] * 2),
        (["TestA::one[a::b]", "TestA::one[c]"], {"silent": ["TestA::one[a::b]"]}, [Severity.WARNING]),
        (["TestA::first", "TestB::first"], {"silent": ["TestA::first"]}, [Severity.ERROR]),
        (["one[a::b]", "two"], {"silent": ["one[a::b]"]}, [Severity.ERROR]),
        (
            ["TestA::first", "TestA::second"],
            {"silent": ["TestA::first"], "echo": ["TestA::second"]},
            [Severity.WARNING] * 2,
        ),
    ],
)
def test_a_step_of_a_class_may_only_prepare(tmp_path, tests, passed, severities):
    found = weak_test_findings(tmp_path, rows(passed, tests=[(name, "C") for name in tests]))
    assert [finding.severity for finding in found] == severities


def test_a_test_is_told_once_with_every_control(tmp_path):
    first = rows({"silent": ["core"], "echo": ["core"]})
    later = rows({"fails-1": ["core"]}, tests=[("core", "R")], checkpoint="checkpoint_2")
    [finding] = weak_test_findings(tmp_path, [*first, *later])
    assert (finding.checkpoint, finding.test) == ("checkpoint_1", "test_checkpoint_1.py::core")
    assert "prints nothing" in finding.message
    assert "prints its arguments" in finding.message
    assert "always fails" not in finding.message


def test_the_previous_reference_may_pass_what_was_there_before(tmp_path):
    passed = {PREVIOUS: ["old", "core"]}
    tests = [("core", "C"), ("other", "C"), ("old", "R")]
    assert list(weak_test_findings(tmp_path, rows(passed, tests=tests))) == []
    [finding] = nothing_new_findings(tmp_path, rows(passed, tests=tests))
    assert (finding.test, finding.severity) == ("test_checkpoint_1.py::core", Severity.NOTE)


def test_a_whole_group_that_was_there_before_is_more_severe_unless_a_policy_expects_it(tmp_path):
    assert list(nothing_new_findings(tmp_path, rows({PREVIOUS: ["core", "old"]}))) == []
    [finding] = nothing_new_findings(tmp_path, rows({PREVIOUS: ["wrong"]}, tests=[("core", "C"), ("wrong", "E")]))
    assert finding.severity is Severity.WARNING
    assert list(nothing_new_findings(tmp_path, rows({"echo": ["core"]}, tests=[("core", "C"), ("other", "C")]))) == []


@pytest.mark.parametrize(
    ("passed", "policies"),
    [
        ([], []),
        (["more", "wrong", "old"], []),
        (["core"], ["core-cases", "all-core-cases"]),
        (["core", "more", "old"], ["all-non-error-cases", "core-cases", "all-core-cases"]),
        (["core", "more", "wrong", "old"], ["all-cases", "all-non-error-cases", "core-cases", "all-core-cases"]),
    ],
)
def test_policies_that_ask_for_all_tests(authored, passed, policies):
    problem = ProblemConfig.from_yaml(authored())
    found = [finding.message for finding in policy_findings(problem, rows({PREVIOUS: passed}))]
    assert len(found) == bool(policies)
    assert all(policy in found[0] for policy in policies)
    assert ("all-cases" in "".join(found).replace("non-error", "")) == ("all-cases" in policies)


def test_facts_of_a_control_count_tests_by_group():
    [row] = rows({"echo": ["more"]})
    assert facts(row) == {
        "checkpoint": "checkpoint_1",
        "control": "echo",
        "groups": {
            "Core": {"passed": 0, "total": 1},
            "Functionality": {"passed": 1, "total": 1},
            "Error": {"passed": 0, "total": 1},
            "Regression": {"passed": 0, "total": 1},
        },
        "policies": ["any", "any-case"],
        "no_verdict": None,
    }
    assert summary_line("checkpoint_1", [row]) == "checkpoint_1: echo 1/4 (Functionality 1/1)"
    assert (
        summary_line("checkpoint_1", [ControlResult("checkpoint_1", "echo", judged(reason="gone"))])
        == "checkpoint_1: echo no verdict"
    )


SHELL = {
    "environment.yaml": "type: local\nname: shell\ncommands:\n  entry_file: '{entry_file}.sh'\n  command: sh\n"
    "setup:\n  commands: ['test -f main.sh']\n",
    "solutions/checkpoint_1/main.py": None,
    "solutions/checkpoint_1/main.sh": "[ $# -gt 0 ] || { echo 'shout: no words' >&2; exit 2; }\n"
    "echo \"$*\" | tr a-z A-Z\n",
    "tests/test_checkpoint_1.py": '''\
def test_one_word(run):
    assert run("hello").stdout == "HELLO\\n"


# slop-code: allow control-passes  kept for its traceback
def test_starts(run):
    assert run("hello").returncode in range(3)


def test_prints_something(run):
    run("hello").stdout.encode()
''',
}  # fmt: skip


@pytest.mark.long
def test_a_test_that_any_output_satisfies(bench, cache, need_bubblewrap):
    """In another language, and with a set-up that a control has nothing for; what a comment allows is apart."""
    need_bubblewrap()
    report = check_step(bench(SHELL), "controls")
    assert report.broken is None
    [finding] = report.outcome.findings
    assert (finding.rule.id, finding.severity, finding.location.line) == ("control-passes", Severity.ERROR, 10)
    assert "passes for every control" in finding.message
    assert [one.test for one in report.allowed] == ["test_checkpoint_1.py::test_starts"]
    assert report.outcome.summary == (
        "checkpoint_1: "
        + ", ".join(f"{name} 2/3 (Core 2/3)" for name in ("empty", "silent", "echo", "fails-1", "fails-2")),
    )
    json.dumps(report.outcome.facts)


def test_controls_say_nothing_where_the_tests_themselves_are_broken(bench, cache, need_bubblewrap):
    need_bubblewrap()
    own = bench({"tests/test_checkpoint_1.py": "import no_such_module\n"})
    with pytest.raises(UsageError, match="no verdict on the reference of checkpoint_1: collection failed"):
        list(no_verdict_findings(own, [ControlResult("checkpoint_1", "empty", judged(reason="collection failed"))]))
