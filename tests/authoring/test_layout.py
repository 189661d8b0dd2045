"""Findings from the files of a problem alone, and fixes without a question."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from slop_code.authoring.check.check_problem import config_report
from slop_code.authoring.check.steps import check_step, step
from slop_code.authoring.check.workbench import Workbench
from slop_code.authoring.problem_folders import environment_for
from slop_code.errors import ConfigError
from slop_code.evaluation import ProblemConfig

EXAMPLES = Path(__file__).parents[2] / "examples" / "problems"


def with_tests(text: str) -> dict[str, str]:
    return {"tests/test_checkpoint_1.py": f"{text}\n\ndef test_last(): ...\n"}


def config(*lines: str) -> dict[str, str]:
    head = ["name: shout", "version: 1", "description: x", "tags: [cli]", "entry_file: main"]
    return {"config.yaml": "\n".join([*head, *lines, "checkpoints:", "  checkpoint_1: {order: 1}", ""])}


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["corkboard", "hitcount", "larder", "rollcall"])
def test_the_examples_are_clean(name, tmp_path):
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    problem = ProblemConfig.from_yaml(folder)
    outcome = step("layout").run(Workbench(problem, environment_for(problem, None)))
    assert outcome.findings == ()


def test_the_miniature_is_clean(found):
    assert found() == []


@pytest.mark.parametrize(
    "text",
    [
        "HERE = 1\nfor path in HERE.iterdir(): ...",
        "HERE.glob('*')",
        "HERE.glob('*.json')",
        "import os\nos.listdir(HERE)",
        "name = f'{word}.json'",
        "name = word + '/' + 'words.json'",
        "def test(f):\n    f('see words.json')",
    ],
)
def test_data_that_tests_use_is_not_reported(found, text):
    assert found({"tests/words.json": "{}"}, with_tests(text)) == []


def test_data_in_a_comment_is_not_used(found):
    assert found({"tests/words.json": "{}"}, with_tests("# words.json\n")) == [("data-unused", "tests/words.json")]


PROJECT = {
    "tests/helpers.py": "",
    "tests/project/helpers.py": "import requests",
    "tests/project/test_helpers.py": "import flask\n\ndef test_one(): ...",
    "tests/project/words.txt": "",
}
IMPORT = "import helpers\n"


def test_sources_that_no_test_imports_are_data(found):
    """They may import what they like, and be called like tests."""
    assert found(PROJECT, with_tests(f"{IMPORT}FOLDER = 'project'")) == []


def test_sources_that_no_test_imports_are_counted_as_data(bench):
    outcome = check_step(bench(PROJECT, with_tests(f"{IMPORT}FOLDER = 'project'")), "layout").outcome
    files, code, data = (int(number) for number in re.findall(r"\d+", outcome.summary[0]))
    assert (files, data) == (outcome.facts["test_files"], outcome.facts["data_files"]) == (code + 3, 3)


def test_sources_that_nobody_names_are_reported(found):
    unused = {("data-unused", f"tests/project/{name}") for name in ("helpers.py", "test_helpers.py", "words.txt")}
    assert {*found(PROJECT, with_tests(IMPORT))} == unused | {("file-unclaimed", "tests/project/test_helpers.py")}


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("class TestA:\n    def __init__(self): ...\n    def test_x(self): ...", ["test-not-collected"]),
        ("class Words:\n    def test_x(self): ...", ["test-not-collected"]),
        ("import pytest\n@pytest.mark.error\ndef no_words(): ...", ["test-not-collected"]),
        ("class TestA:\n    def tset_x(self): ...", ["test-not-collected"]),
        ("class TestA:\n    def test_x(self): ...\n    def test_x(self): ...", ["test-hidden"]),
        ("class TestA:\n    def test_x(self): ...\nclass TestA:\n    def test_y(self): ...", ["test-hidden"]),
        ("import sys\nif sys.platform:\n    def test_x(): ...\nelse:\n    def test_x(): ...", []),
        ("class TestServer:\n    def __init__(self): ...\n    def start(self): ...\nTestServer()", []),
        ("class Words:\n    def test_x(self): ...\nclass TestA(Words): ...", []),
        ("import unittest\nclass Words(unittest.TestCase):\n    def test_x(self): ...", []),
        ("def tests_are_good(): ...\ndef text_of(): ...\ndef testing(): ...", []),
        ("def _test_x(): ...", []),
        ("def helper(): ...\ndef helper(): ...", []),
    ],
)
def test_tests_that_pytest_would_not_collect_are_reported(found, text, rules):
    assert [rule for rule, _ in found(with_tests(text))] == rules


@pytest.mark.parametrize(
    ("conftest", "dependencies", "rules"),
    [
        ("def pytest_configure(config):\n    config.addinivalue_line('markers', 'loud(n): x')\n", "[]", []),
        ("", "[pytest-strange]", []),
        ("", "[pytest-order]", ["marker-unknown"]),
        ("", "[]", ["marker-unknown"]),
    ],
)
def test_markers_of_conftest_and_unknown_plugins_are_not_reported(found, conftest, dependencies, rules):
    text = "import pytest\n@pytest.mark.loud\ndef test_x(): ...\n"
    files = {"tests/conftest.py": conftest, "tests/requirements.lock": ""}
    overlay = {**with_tests(text), **files, **config(f"test_dependencies: {dependencies}")}
    assert [rule for rule, _ in found(overlay)] == rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("def test_x(assets): ...", []),
        ("import os\nos.environ['SCBENCH_ASSETS_DIR']", []),
        ("import os\nos.environ['SCBENCH_ASSET_' + name]", []),
        ("def test_x(): ...", ["asset-unused"]),
        ("import os\nos.environ['SCBENCH_ASSET_OTHER']", ["asset-unused"]),
    ],
)
def test_only_unused_assets_are_reported(found, text, rules):
    overlay = {
        "lists/odd.txt": "",
        **config("static_assets:", "  stop-words: {path: lists/odd.txt}"),
        **with_tests(text),
    }
    assert [rule for rule, _ in found(overlay)] == rules


def test_an_asset_of_the_specification_is_used(found):
    overlay = {"odd.txt": "", **config("static_assets:", "  stop-words: {path: odd.txt}")}
    assert found(overlay, {"checkpoint_1.md": "Read $SCBENCH_ASSET_STOP_WORDS."}) == []


def test_imports_of_the_tests_own_modules(found):
    overlay = {
        "tests/helpers.py": "from lib import more\n",
        "tests/lib/__init__.py": "",
        "tests/lib/more.py": "import strange\n",
        "tests/data/unread.py": "import stranger\n",
        **with_tests("import helpers\nDATA = 'data'\n"),
    }
    assert found(overlay) == [("import-undeclared", "tests/lib/more.py:1")]


@pytest.mark.parametrize(
    ("test", "there"),
    [
        ("test_one", True),
        ("test_one[a]", True),
        ("TestA", True),
        ("TestA::test_in", True),
        ("TestA::test_inherited", False),
        ("TestB::test_inherited[x::y]", True),
        ("test_bound", True),
        ("test_on", False),
        ("TestC::test_one", False),
    ],
)
def test_tests_of_the_quarantine(found, test, there):
    text = (
        "def test_one(): ...\n"
        "class TestA:\n    def test_in(self): ...\n"
        "class TestB(Base): ...\n"
        "if True:\n    def test_bound(): ...\n"
    )
    quarantine = json.dumps({"schema_version": 1, "tests": [{"test": f"test_checkpoint_1.py::{test}"}]}, indent=1)
    unknown = [("quarantine-test-unknown", "tests/flaky.json:5")]
    assert found(with_tests(text), {"tests/flaky.json": quarantine}) == ([] if there else unknown)


def test_in_process_may_import_the_submission(found):
    text = with_tests("def test_x():\n    from main import x\n")
    assert found(text) == [("imports-submission", "tests/test_checkpoint_1.py:2")]
    assert found(text, config("in_process: true")) == []


def test_mistakes_of_config_have_lines(authored):
    folder = authored(config("timeout: soon", "static_assets:", "  words: {path: nowhere}"))
    with pytest.raises(ConfigError) as error:
        ProblemConfig.from_yaml(folder)
    report = config_report(error.value)
    assert [(one.rule.id, str(one.location), one.message) for one in report.outcome.findings] == [
        ("config-invalid", "config.yaml:6", "timeout: found 'soon', expected a number"),
        (
            "config-invalid",
            "config.yaml:8",
            "static_assets.words.path: found 'nowhere', expected a file or folder that exists",
        ),
    ]


@pytest.mark.parametrize("text", ["a: [", "a:\n\tb: 1", "a: 1\na: 2", "- a", "", "a: \0", "\ud800"])
def test_a_config_that_is_no_yaml_mapping_has_no_wrong_value(authored, text):
    folder = authored()
    (folder / "config.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError) as error:
        ProblemConfig.from_yaml(folder)
    [finding] = config_report(error.value).outcome.findings
    assert (finding.rule.id, finding.fix.startswith("Make it a file in UTF-8 that this user may read")) == (
        "config-unreadable",
        True,
    )


def test_a_misspelt_key_that_has_to_be_there(authored):
    folder = authored(config("markers:", "  loud: {gruop: Core}"))
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("entry_file", "entryfile"))
    with pytest.raises(ConfigError) as error:
        ProblemConfig.from_yaml(folder)
    findings = config_report(error.value).outcome.findings
    assert [(str(one.location), one.fix) for one in findings] == [
        ("config.yaml:5", "Rename it to entry_file."),
        ("config.yaml:7", "Rename it to group."),
    ]


@pytest.mark.parametrize(
    ("lines", "meant"),
    [
        (["timout: 3"], "did you mean 'timeout'?"),
        (["timeout: 3", "timout: 4"], ""),
        (["markers:", "  loud: {group: Core, gruop: Core}"], ""),
    ],
    ids=["nearly", "there already", "there already, inside"],
)
def test_the_nearest_free_key_is_suggested_for_an_unknown_key(bench, lines, meant):
    outcome = step("layout").run(bench(config(*lines)))
    [only] = [one for one in outcome.findings if one.rule.id == "config-unknown-key"]
    assert only.message.partition(";")[2].strip() == meant


@pytest.mark.parametrize(
    ("overlay", "left"),
    [
        ({"tests/__pycache__/x.pyc": "", "x.pyc": ""}, ["tests/__pycache__", "x.pyc"]),
        ({"tests/a.orig": "", **with_tests("HERE.glob('*')")}, ["tests/a.orig"]),
        ({"solutions/checkpoint_1/a.rej": "", ".vscode/x": ""}, [".vscode", "solutions/checkpoint_1/a.rej"]),
        ({"tests/a.orig": "", **with_tests("NAME = 'a.orig'")}, []),
        ({"tests/a.orig": "", **with_tests("HERE.glob('data/*.orig')")}, []),
        ({"more/a~": "", **config("static_assets:", "  a: {path: ./more/a~}"), **with_tests("A = 'a'")}, []),
        ({"x.pyc": "", **config("static_assets:", "  x: {path: x.pyc}"), **with_tests("X = 'x'")}, []),
    ],
    ids=["made again", "kept", "kept elsewhere", "named", "named by a glob", "asset", "asset made again"],
)
def test_what_tools_left_behind(bench, overlay, left):
    """A file that the problem itself names is none."""
    found = [one for one in step("layout").run(bench(overlay)).findings if one.rule.id == "leftover-file"]
    assert [str(one.location) for one in found] == left


def test_a_place_in_broken_yaml(authored):
    folder = authored({"config.yaml": "name: shout\ntags: [cli\n"})
    with pytest.raises(ConfigError) as error:
        ProblemConfig.from_yaml(folder)
    [only] = config_report(error.value).outcome.findings
    assert str(only.location) == "config.yaml:3"
    assert only.message.startswith("not YAML: ")


def test_an_unknown_key_of_the_environment(found):
    text = "type: local\nname: mine\nlimits:\n  memroy: 1G\n"
    assert found({"environment.yaml": text}) == [("config-unknown-key", "environment.yaml:4")]


@pytest.mark.parametrize(
    ("overlay", "location"),
    [
        ({"checkpoint_2.md": "More."}, "checkpoint_2.md"),
        ({"solutions/checkpoint_2/main.py": ""}, "solutions/checkpoint_2"),
        ({"tests/test_words.py": "def test_x(): ..."}, "tests/test_words.py"),
        ({"tests/checkpoint_1_test.py": "class TestX: ..."}, "tests/checkpoint_1_test.py"),
        ({"tests/test_words.py": "WORDS = 'words'"}, None),
        ({"tests/words.py": "def test_of(x): ...", **with_tests("from words import test_of")}, None),
        ({"README.md": "", "solutions/README.md": "", "checkpoint.md": ""}, None),
    ],
)
def test_files_of_no_checkpoint(found, overlay, location):
    assert found(overlay) == ([("file-unclaimed", location)] if location else [])


def test_an_empty_specification_is_none(found):
    assert found({"checkpoint_1.md": " \n"}) == [("spec-missing", "checkpoint_1.md")]


ODD = {
    "nul": b"x = '\0'\n",
    "binary": bytes(range(256)) * 40,
    "latin": "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "not utf-8": b"x = '\xff'\n",
    "unknown coding": b"# coding: klingon\n",
    "brackets": b"(" * 100_000,
    "terms": b"if " + b"1+" * 2500 + b"1:\n    import os\n",
    "minus": b"x = " + b"-" * 100_000 + b"1\n",
    "dots": b"x = a" + b".b" * 50_000 + b"\n",
    "long": b"x = 1\n" * 1_000_000,
    "escape": b"x = '\\d'\n",
    "names": b"def tset_" + b"x" * 5000 + b"(): ...\n",
    "empty": b"",
}


@pytest.mark.e2e
@pytest.mark.parametrize("name", ODD)
def test_odd_files_end_as_findings(bench, name):
    tried = bench({"tests/more.txt": "x"})
    (tried.problem.path / "tests/test_checkpoint_1.py").write_bytes(ODD[name])
    report = check_step(tried, "layout")
    assert report.broken is None
    assert all(len(one.message) < 1000 and one.message.isprintable() for one in report.outcome.findings)
    fine = {"latin", "long", "escape", "empty", "names", "terms"}
    assert ("python-unreadable" in {one.rule.id for one in report.outcome.findings}) is (name not in fine)


@pytest.mark.parametrize("file", ["data/newer.py", "conftest.py"])
def test_data_for_another_python_is_no_invalid_test(found, file):
    """A test that computes the name of a module may import any file."""
    test = "import importlib\n\n\ndef test_it(run):\n    importlib.import_module(run().stdout)\n"
    findings = found({"tests/test_checkpoint_1.py": test, f"tests/{file}": "type type = (\n"})
    assert ("python-unreadable" in {rule for rule, _ in findings}) is (file == "conftest.py")


def test_a_pipe_and_a_link_out_of_the_folder_are_not_read(bench, tmp_path):
    tried = bench()
    folder = tried.problem.path
    for name in ("tests/test_checkpoint_1_pipe.py", "tests/flaky.json", "solutions/pipe"):
        os.mkfifo(folder / name)
    (folder / "checkpoint_1.md").unlink()
    os.mkfifo(folder / "checkpoint_1.md")
    outcome = step("layout").run(tried)
    assert {one.rule.id for one in outcome.findings} == {"quarantine-unreadable", "spec-missing"}
    (tmp_path / "secret.py").write_text("x")
    (folder / "tests/data").symlink_to(tmp_path)
    assert "tests-missing" in {one.rule.id for one in step("layout").run(tried).findings}


def test_a_file_in_place_of_the_tests_folder_is_one_finding(bench):
    tried = bench()
    folder = tried.problem.path
    shutil.rmtree(folder / "tests")
    (folder / "tests").touch()
    [finding] = step("layout").run(tried).findings
    assert (finding.rule.id, str(finding.location)) == ("tests-missing", "tests")
    assert finding.message == "the tests folder cannot be used: it is not a folder"


def test_a_quarantine_that_cannot_be_read_is_not_to_be_written(bench):
    tried = bench()
    (tried.problem.path / "tests/flaky.json").mkdir()
    [finding] = step("layout").run(tried).findings
    assert (finding.rule.id, finding.fix) == (
        "quarantine-unreadable",
        "Make it a file that this user may read, or remove it.",
    )


def test_an_allowed_finding_passes(bench):
    text = "import time\n\n\ndef test_x(run):\n    time.sleep(2)  # slop-code: allow fixed-sleep  notes expire\n"
    report = check_step(bench(with_tests(text)), "layout")
    assert (report.outcome.findings, len(report.allowed)) == ((), 1)
