"""Command line: help, exit statuses, standard output and standard error of real processes."""

import json
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml

from slop_code import __version__
from slop_code.cli.main import COMMANDS, parse, parser
from slop_code.evaluation import CorrectnessResults, PytestRunner
from slop_code.execution.environment import load_environment
from tests.marks import in_long
from tests.terminal import SLOP_CODE, on_a_terminal

TESTS = {
    "test_checkpoint_1.py": """
        import pytest

        def test_upper(run):
            assert run("abc").stdout == "ABC\\n"

        @pytest.mark.error
        def test_no_word(run):
            done = run()
            assert done.returncode == 2, f"ran: {done.args}, expected: 2, found: {done.returncode}\\n{done.stdout}"
    """,
    "test_checkpoint_2.py": """
        def test_two_words(run):
            assert run("abc", "def").stdout == "ABC DEF\\n"
    """,
}
GOOD = {"main.py": "import sys\nwords = sys.argv[1:] or sys.exit(2)\nprint(*[word.upper() for word in words])\n"}
POOR = {
    "main.py": "import sys\nprint(*[word.upper() for word in sys.argv[1:]], '\\x1b]0;owned\\x07', end='')\nprint()\n"
}


def slop_code_process(*arguments, **options):
    """Run to the end; whatever goes wrong, a traceback is never what a user sees."""
    options = {"capture_output": True, "text": True, "timeout": 600, **options}
    done = subprocess.run([SLOP_CODE, *map(str, arguments)], **options)
    assert "Traceback" not in (done.stderr or "")
    return done


@pytest.fixture(scope="module")
def problem(make_problem, cache):
    return make_problem(TESTS, config={"name": "words"})


@pytest.fixture(scope="module")
def good(make_submission):
    return make_submission(GOOD)


@pytest.fixture(scope="module")
def poor(make_submission):
    return make_submission(POOR)


@pytest.fixture(scope="module")
def boxes(need_bubblewrap):
    need_bubblewrap()


def parsers_in(current, words=()):
    """Each by the words that lead to it; a command with an alias appears twice."""
    yield words, current
    for action in current._actions:
        if isinstance(action.choices, dict):
            for name, inner in action.choices.items():
                yield from parsers_in(inner, (*words, name))


PARSERS = dict(parsers_in(parser()))
GROUPS = [(), ("env",), ("cache",), ("problems",)]


@pytest.mark.parametrize("words", PARSERS, ids=lambda words: "-".join(words) or "all")
def test_help_names_every_option(words, slop_code):
    status, shown, _ = slop_code(*words, "--help")
    assert status == 0
    for action in PARSERS[words]._actions:
        assert action.help or isinstance(action.choices, dict)
        for option in action.option_strings:
            assert option in shown
    assert f"usage: {PARSERS[words].prog}" in shown


@pytest.mark.parametrize("words", PARSERS, ids=lambda words: "-".join(words) or "all")
def test_help_ends_with_examples_that_parse(words, slop_code):
    _, shown, _ = slop_code(*words, "--help")
    examples = shown.partition("\nexamples:\n")[2].splitlines()
    assert 1 <= len(examples) <= 2
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "slop-code"
        assert f"{program} {' '.join(arguments)} ".startswith(f"{PARSERS[words].prog} ")
        assert callable(parser().parse_args(arguments).run)


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: "-".join(words) or "all")
def test_a_group_without_a_command_prints_its_help(words, slop_code):
    assert slop_code(*words) == slop_code(*words, "--help")


def test_the_groups_are_all_parsers_with_commands():
    assert {words[:-1] for words in PARSERS if words} == set(GROUPS)


@pytest.mark.parametrize(
    ("alias", "command"),
    [
        (("env", "list"), ("env", "ls")),
        (("problems", "list"), ("problems", "ls")),
        (("cache", "list"), ("cache", "info")),
        (("cache", "ls"), ("cache", "info")),
    ],
)
def test_an_alias_is_the_same_command(alias, command):
    assert PARSERS[alias] is PARSERS[command]


@pytest.mark.parametrize(
    ("arguments", "verbose"),
    [
        (["-v", "env", "ls"], True),
        (["env", "-v", "ls"], True),
        (["env", "ls", "--verbose"], True),
        (["-v", "show", "result"], True),
        (["show", "result", "-v"], True),
        (["show", "result"], False),
        (["env", "ls"], False),
    ],
)
def test_verbose_is_taken_before_and_after_the_command(arguments, verbose):
    assert parser().parse_args(arguments).verbose is verbose


@pytest.mark.parametrize(
    ("arguments", "program", "unknown"),
    [
        (
            ["report", "run", "--pass-polcy", "any"],
            "slop-code report",
            "--pass-polcy any; did you mean '--pass-policy'?",
        ),
        (["report", "run", "--pass-polcy=any"], "slop-code report", "--pass-polcy=any; did you mean '--pass-policy'?"),
        (["cache", "warm", "--zzz"], "slop-code cache warm", "--zzz"),
        (
            ["eval-snapshot", "x", "-p", "y", "-c", "1", "-q"],
            "slop-code eval-snapshot",
            "-q; -q goes before the command",
        ),
        (["--versoin"], "slop-code", "--versoin; did you mean '--version'?"),
    ],
)
def test_an_unknown_option_is_an_error_of_its_command(arguments, program, unknown, slop_code):
    status, shown, error = slop_code(*arguments)
    assert (status, shown) == (2, "")
    assert error.startswith(f"usage: {program} [-h]")
    assert error.endswith(f"\n{program}: error: unrecognized arguments: {unknown}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evla", "run"], "argument COMMAND: invalid choice: 'evla'; did you mean 'eval'?"),
        (["problems", "chekc"], "argument COMMAND: invalid choice: 'chekc'; did you mean 'check'?"),
        (["check", "larder"], "argument COMMAND: invalid choice: 'check'; did you mean 'problems check'?"),
        (["warm"], "argument COMMAND: invalid choice: 'warm'; did you mean 'cache warm'?"),
        (["cache", "zzz"], "argument COMMAND: invalid choice: 'zzz'; there are warm, info, prune"),
        (
            ["e\x1b[2J"],
            "argument COMMAND: invalid choice: 'e\\x1b[2J'; there are eval, eval-problem, merge, eval-snapshot, ",
        ),
        (["leaderboard", "x", "--format", "jsn"], "argument --format: invalid choice: 'jsn'; did you mean 'json'?"),
        (["export", "x", "--fromat", "csv"], "required: --format; unknown option '--fromat'; did you mean '--format'?"),
        (["export", "x"], "the following arguments are required: --format: junit, ctrf, csv, parquet, "),
        (["eval", "--dry-rn"], "required: RUN_DIR; unknown option '--dry-rn'; did you mean '--dry-run'?"),
        (
            ["eval-snapshot", "x", "--pytest-arg", "-l"],
            "argument --pytest-arg: expected one argument; for the value -l, write --pytest-arg=-l",
        ),
        (
            ["report", "x", "-o", "-out"],
            "argument -o/--output: expected one argument; for the value -out, write -o=-out",
        ),
        (["report", "x", "-o", "--json"], "argument -o/--output: expected one argument"),
        (["report", "x", "--pass-policy", "al-cases"], "no policy 'al-cases'; did you mean 'all-cases'?"),
    ],
)
def test_an_unknown_word_names_the_near_one(arguments, message, slop_code):
    status, shown, error = slop_code(*arguments)
    assert (status, shown) == (2, "")
    assert message in error.splitlines()[-1]
    assert "write -o=--json" not in error
    assert "\x1b" not in error


@pytest.mark.parametrize(("words", "option"), [(["help"], ["--help"]), (["help", "cache"], ["cache", "--help"])])
def test_help_may_be_asked_for_like_a_command(words, option, slop_code):
    assert slop_code(*words) == slop_code(*option)
    assert slop_code(*words)[0] == 0


@pytest.mark.parametrize("verbose", [True, False])
def test_verbose_logs_to_standard_error_with_control_characters_escaped(verbose, slop_code, monkeypatch):
    def list_and_log():
        logging.getLogger("slop_code.execution").debug("started %s", "box\x1b[0m")
        return {"local": "this machine"}

    handlers = list(logging.getLogger("slop_code").handlers)
    monkeypatch.setattr("slop_code.execution.environment.shipped_environments", list_and_log)
    monkeypatch.setattr("slop_code.execution.python_version.installed_pythons", list)
    status, shown, logged = slop_code(*["-v"] * verbose, "env", "ls")
    assert (status, shown.split()) == (0, ["local", "this", "machine", "python", "none"])
    assert ("DEBUG slop_code.execution: started box\\x1b[0m\n" in logged) is verbose
    assert logging.getLogger("slop_code").handlers == handlers


def test_every_command_is_listed_with_its_module():
    assert [words[0] for words in PARSERS if len(words) == 1] == list(COMMANDS)
    for name in COMMANDS:
        assert name in parser((name,))._subparsers._group_actions[0].choices


@pytest.mark.parametrize("name", COMMANDS)
def test_the_parser_of_one_command_equals_its_part_of_the_whole(name):
    own = {words: inner for words, inner in parsers_in(parser((name,))) if words[:1] == (name,)}
    assert {words: inner.format_help() for words, inner in own.items()} == {
        words: inner.format_help() for words, inner in PARSERS.items() if words[:1] == (name,)
    }


@pytest.mark.parametrize("words", [["-q", "env", "ls"], ["--problem-path", "eval", "env", "ls"]])
def test_options_before_the_command_do_not_hide_it(words):
    assert parse(words).run is parse(["env", "ls"]).run


@pytest.mark.e2e
def test_help_and_mistakes_load_no_models():
    """pydantic and PyYAML take longer to import than all the rest."""
    calls = [["--version"], ["--help"], ["eval-snapshot", "--help"], ["eval", "--no-such"]]
    code = f"import sys; from slop_code.cli.main import run; [(run(x), print('LOADED', *sys.modules)) for x in {calls}]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = [set(line.split()) for line in done.stdout.splitlines() if line.startswith("LOADED ")]
    models = {"pydantic", "yaml", "rich", "slop_code.evaluation.config"}
    assert [("slop_code.cli.main" in names, names & models) for names in loaded] == [(True, set())] * len(calls)


def test_version_is_printed(slop_code):
    assert slop_code("--version") == (0, f"slop-code {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["cache", "empty"], ["env", "-x"], ["eval-snapshot"], ["doctor", "--no"]]
)
def test_wrong_arguments_are_usage_errors(arguments, slop_code):
    status, shown, complaint = slop_code(*arguments)
    assert (status, shown) == (2, "")
    assert "error: " in complaint.splitlines()[-1]


@pytest.mark.e2e
def test_a_wrong_call_as_a_process():
    done = slop_code_process("no-such-command")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: " in done.stderr.splitlines()[-1]


@pytest.mark.e2e
class TestEvalSnapshot:
    @pytest.mark.parametrize(
        ("submission", "arguments", "status", "line"),
        [
            ("good", ["-c", "1"], 0, "PASSED (all-cases): 2 of 2 tests passed"),
            ("good", ["-c", "checkpoint_2"], 0, "PASSED (all-cases): 3 of 3 tests passed"),
            ("poor", ["-c", "1"], 1, "NOT PASSED (all-cases): 0 of 2 tests passed"),
            ("good", ["-c", "1", "-k", "upper"], 0, "PART ONLY, no verdict: 1 of 1 chosen tests passed, 1 left out"),
            ("good", ["-c", "1", "--pytest-arg=-k", "--pytest-arg=not upper"], 0, "PART ONLY, no verdict: 1 of 1"),
            ("good", ["-c", "1", "-m", "error"], 0, "PART ONLY, no verdict: 1 of 1 chosen tests passed, 1 left out"),
            ("good", ["-c", "2", "--group", "Regression"], 0, "PART ONLY, no verdict: 2 of 2 chosen tests passed, 1"),
            ("good", ["-c", "2", "--group", "Core", "--group", "regression"], 0, "PART ONLY, no verdict: 3 of 3"),
            ("good", ["-c", "2", "--test", "test_checkpoint_2.py"], 0, "PART ONLY, no verdict: 1 of 1 chosen tests"),
            ("poor", ["-c", "1", "--pytest-arg=test_checkpoint_1.py"], 1, "PART ONLY, no verdict: 0 of 2 chosen"),
            ("good", ["-c", "1", "--pytest-arg=--tb=no-such-style"], 3, "INFRASTRUCTURE FAILURE: no verdict"),
            ("good", ["-c", "1", "--pass-policy", "any"], 0, "PASSED (any): 2 of 2 tests passed"),
            ("poor", ["-c", "2", "-k", "upper", "--pass-policy", "any"], 1, "PART ONLY, no verdict: 0 of 1"),
        ],
    )
    def test_exit_status_and_last_line(self, request, slop_code, boxes, problem, submission, arguments, status, line):
        folder = request.getfixturevalue(submission)
        ended, printed, _ = slop_code("eval-snapshot", folder, "-p", problem.path, *arguments)
        assert ended == status
        assert printed.splitlines()[-1].startswith(line)
        assert "\x1b" not in printed

    @pytest.mark.parametrize("how", ["option", "variable", "folder"])
    def test_a_problem_by_name(self, slop_code, boxes, problem, good, tmp_path, monkeypatch, how):
        shutil.copytree(problem.path, tmp_path / "problems" / "words")
        arguments = ["--problems-dir", tmp_path / "problems"] if how == "option" else []
        if how == "variable":
            monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", str(tmp_path / "problems"))
        if how == "folder":
            monkeypatch.chdir(tmp_path)
        status, printed, said = slop_code("eval-snapshot", good, "-p", "words", "-c", 1, "--print-command", *arguments)
        assert (status, "--checkpoint=checkpoint_1" in printed) == (0, True), said

    def test_what_is_written(self, slop_code, boxes, problem, poor, tmp_path):
        status, printed, said = slop_code("eval-snapshot", poor, "-p", problem.path, "-c", 2, "-o", tmp_path, "--json")
        assert (status, "nothing is stored" in said) == (1, False)
        written = json.loads((tmp_path / "evaluation.json").read_text())
        assert json.loads(printed) == written
        jsonschema.validate(written, json.loads((files("slop_code.evaluation") / "evaluation.schema.json").read_text()))
        loaded = CorrectnessResults.load(tmp_path / "evaluation.json")
        assert loaded.model_dump(mode="json") == written
        loaded.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "evaluation.json").read_bytes()
        kept = {path.name for path in (tmp_path / ".scbench").iterdir()}
        assert {"pytest.log", "pytest-report.json", "ctrf-report.json"} <= kept
        assert "test_two_words" in (tmp_path / ".scbench" / "pytest.log").read_text()

    def test_an_infrastructure_failure_is_written_too(self, slop_code, boxes, make_problem, problem, good, tmp_path):
        broken = make_problem({"test_checkpoint_1.py": "import no_such_module\n"})
        status, printed, _ = slop_code("eval-snapshot", good, "-p", broken.path, "-c", 1, "-o", tmp_path)
        assert (status, "no_such_module" in printed) == (3, True)
        loaded = CorrectnessResults.load(tmp_path / "evaluation.json")
        assert "no_such_module" in loaded.infrastructure_failure_reason
        kept = tmp_path / ".scbench" / "collection"
        assert {path.name for path in kept.iterdir()} == {"pytest.log", "stream.jsonl", "exit.json"}
        assert "no_such_module" in (kept / "pytest.log").read_text()
        ended = json.loads((kept / "exit.json").read_text())
        assert (ended["exit_code"], ended["error"]) == (2, loaded.infrastructure_failure_reason)
        assert slop_code("eval-snapshot", good, "-p", problem.path, "-c", 1, "-o", tmp_path)[0] == 0
        assert not kept.exists()

    def test_a_failure_says_what_was_run_expected_and_found(self, slop_code, boxes, problem, poor):
        _, short, _ = slop_code("eval-snapshot", poor, "-p", problem.path, "-c", 1)
        assert "FAILED Core test_checkpoint_1.py::test_upper: assert 'ABC \\x1b]0;owned\\x07" in short
        error = "FAILED Error test_checkpoint_1.py::test_no_word"
        assert f"\n{error}: expected exit status 2, found exit status 0\n" in short
        assert "a test in full: slop-code show TEST\nNOT PASSED" in short
        _, in_full, _ = slop_code("eval-snapshot", poor, "-p", problem.path, "-c", 1, "-v")
        assert f"\n{error}\n" in in_full
        assert "ran: ['slop-run', 'main.py'], expected: 2, found: 0" in in_full
        assert "\\x1b]0;owned\\x07" in in_full
        assert short.startswith("words checkpoint_1\n  core: 0/1\n  error: 0/1\n")

    def test_without_an_output_folder_the_last_result_is_for_show(self, slop_code, boxes, problem, poor):
        """`rerun`, which it names, finds the problem and the snapshot."""
        arguments = ("eval-snapshot", poor, "-p", problem.path, "-c", 1)
        assert "nothing is stored" not in slop_code("-q", *arguments, "--json")[2]
        kept = "nothing is stored without -o OUT; slop-code show shows this result until the next one"
        assert kept in slop_code(*arguments, "--json")[2]
        _, shown, _ = slop_code("show")
        assert shown.splitlines()[-1] == "NOT PASSED (all-cases): 0 of 2 tests passed"
        command = slop_code("show", "test_upper")[1].splitlines()[-1]
        assert command.startswith("again: slop-code rerun ")
        status, again, said = slop_code(*shlex.split(command)[2:])
        assert (status, "failed before, failed now" in again) == (0, True), said

    def test_every_step_and_test_when_asked_for(self, slop_code, boxes, problem, good, tmp_path):
        shutil.copytree(problem.path, tmp_path / "words")
        given = ("eval-snapshot", good, "-p", "words", "--problems-dir", tmp_path, "-c", 1, "-v")
        status, printed, said = slop_code(*given)
        assert (status, "· running 2 tests" in said) == (0, True)
        assert "PASSED Core test_checkpoint_1.py::test_upper" in printed

    def test_on_a_terminal(self, boxes, problem, poor):
        text = on_a_terminal("eval-snapshot", poor, "-p", problem.path, "-c", 1, statuses=(1,))
        assert "┃" in text
        assert "Core" in text
        assert "\x1b[1mwords checkpoint_1\x1b[0m" in text
        assert "· running 2 tests" in text
        assert "\x1b]0;owned" not in text
        assert "\\x1b]0;owned\\x07" in text

    def test_a_run_in_place_of_a_submission_is_a_warning_and_has_a_verdict(self, slop_code, cache, problem, tmp_path):
        snapshot = tmp_path / "run/words/checkpoint_1/snapshot"
        snapshot.mkdir(parents=True)
        arguments = ("eval-snapshot", tmp_path / "run", "-p", problem.path, "-c", "1")
        warning = f"evaluated as a submission; this is a run: evaluate it with `slop-code eval {tmp_path}/run`"
        status, _, said = slop_code(*arguments)
        assert (status, warning in said) == (1, True)
        environment = tmp_path / "builds.yaml"
        environment.write_text('type: local\nsetup: {commands: ["touch main.py"]}\n')
        assert warning not in slop_code(*arguments, "-e", environment)[2]

    def test_the_printed_command_runs_by_hand(self, slop_code, cache, problem, good, tmp_path):
        given = ("eval-snapshot", good, "-p", problem.path, "-c", 2, "--print-command", "-k", "not no_word")
        status, printed, _ = slop_code(*given)
        assert status == 0
        workspace = tmp_path / "workspace"
        shutil.copytree(good, workspace)
        runner = PytestRunner(problem, problem.checkpoint(2), load_environment("local"), good, cache=cache)
        assert runner._copy_tests_from_problem(workspace) == ["test_checkpoint_1.py", "test_checkpoint_2.py"]
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        by_hand = subprocess.run(
            ["/bin/sh", "-c", printed], cwd=workspace, env=environment, capture_output=True, text=True, timeout=600
        )
        assert by_hand.returncode == 0, by_hand.stderr + by_hand.stdout
        assert "2 passed, 1 deselected" in by_hand.stdout
        assert (workspace / ".scbench" / "pytest-report.json").is_file()
        assert shlex.split(printed)[-3:-1] == ["-k", "not no_word"]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"-p": "no-such-problem"}, "no problem 'no-such-problem' in problems (no such folder): there are none"),
            ({"--test": "no_such.py"}, "words checkpoint_1: no test no_such.py"),
            ({"--pytest-arg": "--ignore=x"}, "--ignore=x: may change what pytest collects or what a test says"),
            ({"-p": "./no/such"}, "no/such: no such folder; in no there are none"),
            ({"-c": "9"}, "words: no checkpoint '9'; there are checkpoint_1, checkpoint_2"),
            ({"-c": "checkpoint_x"}, "words: no checkpoint 'checkpoint_x'; there are checkpoint_1, checkpoint_2"),
            ({"-e": "no-such-environment"}, "no-such-environment: no such environment; shipped are "),
            (
                {"DIR": "no-such-folder"},
                "no-such-folder: there is no such folder; give the folder that holds the submission's files",
            ),
            ({"DIR": "/dev/null"}, "/dev/null: not a folder"),
            ({"-o": "/dev/null/out"}, "/dev/null/out"),
            ({"-o": "/proc/out"}, "/proc/out"),
        ],
    )
    def test_missing_inputs_are_named(self, slop_code, boxes, problem, good, tmp_path, monkeypatch, changes, message):
        given = {"DIR": good, "-p": problem.path, "-c": "1", "-e": "local", **changes}
        options = {option: value for option, value in given.items() if option != "DIR"}
        arguments = [f"{option}={value}" if "--" in option else f"{option}{value}" for option, value in options.items()]
        monkeypatch.chdir(tmp_path)
        status, _, said = slop_code("eval-snapshot", given["DIR"], *arguments)
        assert status == 2
        assert len(said.splitlines()) == 1
        assert said.startswith("slop-code: ")
        assert message in said

    def test_an_unknown_policy(self, slop_code, problem, good):
        status, _, said = slop_code("eval-snapshot", good, "-p", problem.path, "-c", "1", "--pass-policy", "lenient")
        assert status == 2
        last = said.splitlines()[-1]
        assert "--pass-policy" in last
        assert "lenient" in last
        assert "all-core-cases" in last

    def test_every_mistake_of_a_config_is_listed(self, slop_code, good, tmp_path):
        mistakes = {"name": 3, "timeout": -1, "tags": "x", "markers": {"slow": {"group": "Fast"}}, "checkpoints": {}}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump({**mistakes, "version": 1, "surplus": 1}))
        status, _, said = slop_code("eval-snapshot", good, "-p", tmp_path, "-c", "1")
        assert status == 2
        for key in ("name", "timeout", "tags", "markers.slow.group", "checkpoints", "description", "entry_file"):
            assert any(f" {key}: " in line for line in said.splitlines()), key

    def test_a_sandbox_that_is_not_there(self, slop_code, problem, good):
        given = ("eval-snapshot", good, "-p", problem.path, "-c", 1, "-e", "docker-python3.12-uv")
        status, printed, said = slop_code(*given)
        assert status == 3
        assert "docker" in printed + said or "cannot be pulled" in printed + said


@pytest.mark.e2e
def test_doctor_prints_every_check_of_its_json(slop_code, few_pythons):
    status, printed, _ = slop_code("doctor")
    found = json.loads(slop_code("doctor", "--json")[1])
    assert status == (0 if found["strict_isolation"] else 3)
    for check in found["checks"]:
        assert f"{'ok' if check['ok'] else 'no'} {check['name']}: " in printed
    assert {"slop-code", "python", "uv", "slopbox helper", "bubblewrap", "cache"} <= {
        check["name"] for check in found["checks"]
    }


@pytest.mark.e2e
def test_doctor_reports_a_cache_that_cannot_be_written(slop_code, few_pythons, monkeypatch):
    monkeypatch.setenv("SCBENCH_CACHE_DIR", "/dev/null/cache")
    status, printed, _ = slop_code("doctor")
    assert status == 3
    assert "no cache: cannot be used" in printed
    assert "SCBENCH_CACHE_DIR" in printed


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("info", "lines"),
    [
        (
            {
                "host": {"cgroupVersion": "v1", "cgroupControllers": [], "security": {"rootless": True}},
                "store": {"graphDriverName": "vfs"},
                "version": {"Version": "4.3.1"},
            },
            [
                ": podman 4.3.1, rootless, cgroup v1",
                "limits of containers: a watch on memory and processes; the engine enforces no limit on memory, "
                "processes, cpus (use an engine of root, or boot with cgroup v2: `systemd.unified_cgroup_hierarchy=1`)",
                "storage of containers: vfs (each container is a copy of the whole image; ",
            ],
        ),
        (
            {
                "ServerVersion": "28.1",
                "CgroupVersion": "2",
                "MemoryLimit": True,
                "PidsLimit": True,
                "CpuCfsQuota": True,
            },
            [": Docker 28.1, as root, cgroup v2", "limits of containers: control groups"],
        ),
    ],
    ids=["podman", "docker"],
)
def test_doctor_says_which_limits_an_engine_enforces_and_what_to_do(slop_code, few_pythons, tmp_path, info, lines):
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\n[ $1 = version ] && echo 1 || cat <<'END'\n{json.dumps(info)}\nEND\n")
    engine.chmod(0o755)
    _, printed, _ = slop_code("doctor", "--docker", engine)
    assert [line for line in lines if line not in printed] == []
    assert ("storage of containers" in printed) is (len(lines) == 3)


@pytest.mark.e2e
def test_env_ls_lists_the_shipped_environments(slop_code, few_pythons):
    status, printed, _ = slop_code("env", "ls")
    assert status == 0
    assert [line.split()[0] for line in printed.splitlines()] == ["docker-python3.12-uv", "local", "python"]
    assert platform.python_version() in printed


@pytest.mark.e2e
def test_cache_warm_prepares_a_problem(slop_code, cache, problem):
    status, printed, _ = slop_code("cache", "warm", problem.path)
    assert status == 0
    assert printed.startswith("ready: ")


@pytest.mark.e2e
@pytest.mark.parametrize("arguments", [["--help"], *in_long(["doctor"], ["env", "ls"])])
def test_a_reader_that_goes_away(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = slop_code_process(*arguments, capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode in (0, 3, 141)


@pytest.mark.e2e
def test_messages_that_nobody_reads():
    reading, writing = os.pipe()
    os.close(reading)
    done = slop_code_process("eval", "no-such-run", capture_output=False, stdout=subprocess.DEVNULL, stderr=writing)
    os.close(writing)
    assert done.returncode == 2


@pytest.mark.e2e
@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_closed_streams_cause_no_traceback(closed):
    """Neither a traceback nor an answer that is none."""
    close = " ".join(f"{number}<&-" for number in closed.split())
    words = shlex.join([str(SLOP_CODE), "eval", "no-such-run"])
    done = subprocess.run(["/bin/sh", "-c", f"{words} {close}"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.e2e
def test_names_that_the_terminal_cannot_show():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = slop_code_process("eval", "l\u00e4rder\u2028", env=environment)
    assert done.returncode == 2
