"""A run of the SlopCodeBench runner and its export: equal, except for what the documentation lists."""

import json
import re
from pathlib import Path

import pytest

from slop_code.cli.main import run as slop_code
from slop_code.evaluation.result_files.foreign_files import renamed_path
from slop_code.reporting.exporters import Skips
from slop_code.reporting.exporters.scb.export_folder import export_folder
from slop_code.runs.read_results import read_runs
from tests.marks import in_long
from tests.scb_run import write_scb_run

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "exports.md"
THE_FILE, THE_FOLDER = "the file", "the folder"
ADDED, LEFT_OUT, CHANGED = "added", "left out", "changed"


@pytest.fixture
def theirs(tmp_path):
    return write_scb_run(tmp_path / "theirs", failed=["ledger/checkpoint_2"], unevaluated=["router/checkpoint_2"])


def exported(folder, target, skips=Skips.LEAVE_OUT):
    export_folder(read_runs([folder]), target, skips)
    return target


def documents(folder):
    """Files by path; JSON as flat keys with values, a line of checkpoint_results.jsonl as a file of its own."""
    read = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".jsonl":
            for row in map(json.loads, path.read_text().splitlines()):
                read[f"{row['problem']}/{row['checkpoint']}/{name}"] = row
        elif path.name in ("evaluation.json", "result.json"):
            read[name] = dict(flat(json.loads(path.read_text())))
        else:
            read[name] = path.read_bytes()
    return read


def flat(document, prefix=""):
    for key, value in document.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def differences(before, after):
    """Without the folder of the checkpoint: the file, the key and the kind of the difference."""
    for path in before.keys() | after.keys():
        name = re.sub("(?<=^snapshot/).*", "", re.sub("^[a-z]+/checkpoint_[0-9]/", "", path))
        if path not in before or path not in after:
            yield name, THE_FOLDER if name.endswith("/") else THE_FILE, ADDED if path in after else LEFT_OUT
        elif isinstance(before[path], bytes):
            yield from [] if before[path] == after[path] else [(name, THE_FILE, CHANGED)]
        else:
            old, new = before[path], after[path]
            yield from ((name, key, ADDED) for key in new.keys() - old.keys())
            yield from ((name, key, LEFT_OUT) for key in old.keys() - new.keys())
            yield from ((name, key, CHANGED) for key in old.keys() & new.keys() if old[key] != new[key])


def documented():
    text = PAGE.read_text(encoding="utf-8").partition("### Differences from the source")[2].partition("\n## ")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    assert all(reason for *_, reason in rows)
    return {tuple(cells[:3]) for cells in rows[2:]}


def test_the_export_differs_from_the_source_as_documented(theirs, tmp_path):
    before = documents(theirs)
    export = exported(theirs, tmp_path / "export")
    assert set(differences(before, documents(export))) == documented()
    assert documents(theirs) == before


def test_an_export_of_an_export_is_the_same(theirs, tmp_path):
    first = exported(theirs, tmp_path / "first")
    again = {*differences(documents(first), documents(exported(first, tmp_path / "second")))}
    assert again == {("evaluation.json", "reason", CHANGED)}


def test_skips_that_did_not_pass_are_in_the_totals(theirs, tmp_path):
    export = documents(exported(theirs, tmp_path / "export", Skips.NOT_PASSED))
    row = export["router/checkpoint_1/checkpoint_results.jsonl"]
    assert (row["functionality_total"], row["functionality_passed"], row["skips"]) == (1, 0, "not-passed")
    assert documents(theirs)["router/checkpoint_1/checkpoint_results.jsonl"]["functionality_total"] == 0


def test_columns_that_nobody_knows_are_taken_over_if_they_are_plain(theirs, tmp_path):
    path = theirs / "checkpoint_results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0] |= {"future.column": 7, "nested": {"a": 1}, "text": "\x1b[2J", "huge": 10**400, "cost": 2, "state": "lost"}
    rows[0] |= {"strict_pass_rate": 0.123, "passed_tests": 999}
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_text(text.replace('"future.column": 7', '"future.column": 7, "nan": NaN') + "[[[\n")
    row = documents(exported(theirs, tmp_path / "export"))["calendar/checkpoint_1/checkpoint_results.jsonl"]
    assert (row["future.column"], row["text"], row["cost"]) == (7, r"\x1b[2J", 2)
    assert (row["huge"], row["nan"], "nested" in row) == (None, None, False)
    assert (row["state"], row["strict_pass_rate"], row["passed_tests"]) == ("ran", 1.0, 3)


def test_a_folder_of_evaluation_files_that_is_a_link_is_not_read(theirs, tmp_path):
    folder = theirs / "calendar/checkpoint_1/evaluation"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    export = documents(exported(theirs, tmp_path / "export"))
    assert export["calendar/checkpoint_1/evaluation/stdout.txt"] == b""
    assert json.loads(export["calendar/checkpoint_1/evaluation/report.json"])["created"] == 0


def test_columns_of_a_file_that_was_renamed_are_taken_over(theirs, tmp_path):
    summary = json.loads((theirs / "result.json").read_text())
    summary |= {"erosion": {"mean": 0.25, "count": 7}, "ratios": {"rubric": {"mean": 0.5}, "lint": {"mean": 99}}}
    (theirs / "result.json").write_text(json.dumps(summary))
    path = theirs / "checkpoint_results.jsonl"
    for number in (2, 1):
        path.rename(renamed_path(path, number))
        path.write_text('{"idx": 0, "problem": "ledger", "checkpoint": "checkpoint_3", "mass.cc": 1}')
    path.unlink()
    export = documents(exported(theirs, tmp_path / "export"))
    assert export["ledger/checkpoint_3/checkpoint_results.jsonl"]["mass.cc"] == 9.0
    assert export["result.json"]["cc.max.max"] == 4
    assert (export["result.json"]["erosion.mean"], export["result.json"]["ratios.rubric.mean"]) == (0.25, 0.5)
    assert export["result.json"]["ratios.lint.mean"] < 1, "computed from the lines where these have numbers"


def test_the_command_exports_a_run_of_slopcodebench(theirs, tmp_path, capsys):
    target = tmp_path / "export"
    assert slop_code(["export", str(theirs), "--format", "scb", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"written: {target}\n"
    assert len((target / "checkpoint_results.jsonl").read_text().splitlines()) == 7


@pytest.mark.parametrize("problems", [["router"], *in_long(["calendar", "ledger", "router"])])
def test_an_evaluation_of_the_same_run_exports_the_same_columns(problems, tmp_path, cache):
    """Their run, evaluated by slop-code into a mirrored tree: the export of that is the export of their run."""
    theirs = write_scb_run(tmp_path / "theirs", problems_dir=tmp_path / "problems")
    chosen = [word for problem in problems for word in ("--problem", problem)]
    ours = ["-o", str(tmp_path / "ours"), "--problems-dir", str(tmp_path / "problems"), "--exit-zero"]
    assert slop_code(["eval", str(theirs), *ours, *chosen]) == 0
    before = documents(exported(theirs, tmp_path / "before"))
    after = documents(exported(tmp_path / "ours", tmp_path / "after"))
    if len(problems) == 1:
        before = {path: value for path, value in before.items() if not path.startswith(("calendar/", "ledger/", "res"))}
        del after["result.json"]
    assert set(differences(before, after)) == {
        *(("evaluation.json", key, CHANGED) for key in ("duration", "entrypoint", "test_collection_hash")),
        *((f"evaluation/{name}", THE_FILE, CHANGED) for name in ("report.json", "stdout.txt")),
    }
