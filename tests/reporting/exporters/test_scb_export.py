"""The format scb: a run folder for the tools of SlopCodeBench, made of our own results."""

import json
import math
import os
import statistics
from pathlib import Path

import pytest

from slop_code.cli.main import run as slop_code
from slop_code.evaluation.groups import QUARANTINED
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.quality.quality_record import QualityFigures, QualityProvenance, QualityRecord
from slop_code.reporting.exporters import Skips
from slop_code.reporting.exporters.scb.export_folder import export_folder, folder_name
from slop_code.reporting.exporters.scb.exported_columns import COLUMNS, quality_columns
from slop_code.reporting.exporters.scb.exported_report import built_report
from slop_code.reporting.exporters.scb.exported_summary import stats
from slop_code.reporting.text import TEXT_BYTES
from slop_code.runs.read_results import read_runs
from tests.docs.pages import section, table_rows
from tests.factories import case, result, write_run
from tests.reporting.html_runs import quality
from tests.run_world import world  # noqa: F401  (a fixture)

REQUIRED = {
    "schema_version", "problem_name", "problem_version", "checkpoint_name", "checkpoint_version", "tests",
    "pass_counts", "total_counts", "pytest_exit_code", "pytest_collected", "infrastructure_failure",
}  # fmt: skip
"""Keys without which no tool of SlopCodeBench takes a result for evaluated."""
NONE_PASSED = {"Core": 0, "Functionality": 0, "Error": 0, "Regression": 0}
STORED = Path(__file__).parents[2] / "data" / "results" / "stored"


def read(path):
    return json.loads(path.read_text())


def rows(folder):
    return [json.loads(line) for line in (folder / "checkpoint_results.jsonl").read_text().splitlines()]


@pytest.fixture
def export(tmp_path):
    """`export(folder, skips="not-passed")`: the exported folder."""

    def write(folder, skips=Skips.LEAVE_OUT):
        target = tmp_path / "exported"
        export_folder(read_runs([folder]), target, Skips(skips))
        return target

    return write


@pytest.fixture
def grouped(tmp_path):
    """One checkpoint with a test of each group and status, and a quarantined one."""
    tests = [
        case("test_core"),
        case("test_skipped", "skipped", failure_message="no network"),
        case("test_failed", "failed", group_type="Functionality", failure_message="E   no", output="out"),
        case("test_error", "error", group_type="Error", failure_message="E   boom"),
        case("test_old", group_type="Regression", checkpoint="checkpoint_0", file_path="test_checkpoint_0.py"),
        case("test_flaky", "failed", markers=[QUARANTINED]),
    ]
    command = {"command": ["uvx", "pytest", "--entrypoint=slop-run main.py"], "checkpoints": ["checkpoint_1"]}
    result(tests, provenance=command, pytest_exit_code=1).save(
        tmp_path / "run" / "words" / "checkpoint_1" / "evaluation.json"
    )
    return tmp_path / "run"


def test_evaluation_lists_tests_by_checkpoint_and_group(grouped, export):
    document = read(export(grouped) / "words/checkpoint_1/evaluation.json")
    assert document.keys() >= REQUIRED
    assert document["tests"] == {
        "checkpoint_1-Core": {"passed": ["test_core"], "failed": [], "skipped": ["test_skipped", "test_flaky"]},
        "checkpoint_1-Functionality": {"passed": [], "failed": ["test_failed"], "skipped": []},
        "checkpoint_1-Error": {"passed": [], "failed": ["test_error"], "skipped": []},
        "checkpoint_0-Regression": {"passed": ["test_old"], "failed": [], "skipped": []},
    }
    assert document["entrypoint"] == "slop-run main.py"
    assert (document["pytest_collected"], document["infrastructure_failure"]) == (6, False)
    assert len(document["test_collection_hash"]) == 64


@pytest.mark.parametrize(
    ("skips", "core", "strict", "core_rate"), [("leave-out", 1, 2 / 4, 1.0), ("not-passed", 2, 2 / 5, 0.5)]
)
def test_skipped_tests_are_left_out_or_did_not_pass(skips, core, strict, core_rate, grouped, export):
    folder = export(grouped, skips)
    document, (row,), total = (
        read(folder / "words/checkpoint_1/evaluation.json"),
        rows(folder),
        read(folder / "result.json"),
    )
    assert document["total_counts"] == {"Core": core, "Functionality": 1, "Error": 1, "Regression": 1}
    assert document["pass_counts"] == {"Core": 1, "Functionality": 0, "Error": 0, "Regression": 1}
    assert (row["strict_pass_rate"], row["core_pass_rate"], row["core_total"]) == (strict, core_rate, core)
    assert [each["skips"] for each in (document, row, total)] == [skips] * 3


def test_a_line_has_every_column_and_null_for_what_is_not_known(grouped, export):
    (row,) = rows(export(grouped))
    assert list(row) == [*COLUMNS, "skips", "exported_by"]
    assert {name: row[name] for name in ("problem", "version", "checkpoint", "path", "idx", "state")} == {
        "problem": "words", "version": 0, "checkpoint": "checkpoint_1", "path": "words/checkpoint_1", "idx": 1,
        "state": "ran",
    }  # fmt: skip
    assert (row["is_first"], row["is_last"]) == (True, True)
    assert {row[name] for name in ("cost", "started", "duration", "loc", "delta.churn_ratio", "verbosity")} == {None}


@pytest.mark.parametrize("owner", ["problem", "checkpoint"])
def test_versions_are_those_of_the_evaluated_configuration(world, export, owner):  # noqa: F811
    world.problem(version=3, checkpoints={"checkpoint_1": {"version": 2}})
    (discovered,) = world.discover(world.run(snapshots={"words": ["a"]}).name)
    (submission,) = discovered.submissions
    folder = world.finish(submission).parent
    remembered = {"problem": folder.parent, "checkpoint": folder}[owner] / ".slop-code/origin.json"
    remembered.parent.mkdir()
    remembered.write_text(json.dumps({"problem": str(world.problems / "words")}))
    document = read(export(discovered.folder) / "words/checkpoint_1/evaluation.json")
    assert (document["problem_version"], document["checkpoint_version"]) == (3, 2)


def test_a_checkpoint_without_a_verdict_is_never_evaluated(tmp_path, export):
    folder = write_run(tmp_path / "run", {"words": ["+", "!", "+"]})
    (folder / "words/checkpoint_3/evaluation.json").write_text("{")
    (folder / "words/checkpoint_4/snapshot").mkdir(parents=True)
    exported = export(folder)
    states = ["ran", "infrastructure_failure", "not_evaluated", "not_evaluated"]
    assert [row["state"] for row in rows(exported)] == states
    for number, row in enumerate(rows(exported)[1:], start=2):
        document = read(exported / f"words/checkpoint_{number}/evaluation.json")
        assert document["infrastructure_failure"] is True
        assert document["reason"]
        assert (document["tests"], document["pass_counts"], document["total_counts"]) == ({}, NONE_PASSED, NONE_PASSED)
        assert (row["total_tests"], row["strict_pass_rate"], row["core_pass_rate"]) == (0, None, None)
        assert not (exported / f"words/checkpoint_{number}/evaluation/report.json").exists()
    total = read(exported / "result.json")
    assert (total["num_checkpoints"], total["expected_checkpoints"]) == (1, 4)
    assert (total["checkpoints_solved"], total["pct_checkpoints_solved"]) == (1, 25.0)
    assert (total["problem_solved"], total["problem_partial"]) == (0, 1)


def test_the_result_summarises_cost_and_rates(tmp_path, export):
    folder = write_run(tmp_path / "run", {"words": ["+-", "++"], "songs": ["--"]})
    for number, cost in ((1, 1.0), (2, 3.0)):
        usage = {"cost": cost, "steps": 2, "net_tokens": {"input": 10 * number}}
        (folder / f"words/checkpoint_{number}/inference_result.json").write_text(
            json.dumps({"elapsed": 60, "usage": usage})
        )
    (folder / "config.yaml").write_text("model: {name: m}\nagent: {type: a, version: 1.2}\nthinking: high\n")
    exported = export(folder)
    total = read(exported / "result.json")
    assert (total["model"], total["agent_type"], total["agent_version"], total["prompt"]) == ("m", "a", "1.2", None)
    assert total["costs"]["checkpoint"] == {
        "mean": 2.0, "stddev": math.sqrt(2), "min": 1.0, "max": 3.0, "median": 2.0, "count": 2,
    }  # fmt: skip
    assert (total["costs"]["total"], total["costs"]["problem"]["count"]) == (4.0, 1)
    assert total["tokens"]["input"] == 30
    assert total["tokens"]["problem"]["input"] == 30
    assert total["tokens"]["checkpoint"] == {
        "input": 15, "output": None, "cache_read": None, "cache_write": None, "reasoning": None,
    }  # fmt: skip
    assert total["pass_rates"]["checkpoint"]["total"] == 0.5
    assert total["pass_rates"]["problem"]["core"] == (0.75 + 0) / 2
    assert total["pass_rates"]["checkpoint"]["error"] is None
    assert (total["problem_solved"], total["pct_problems_solved"]) == (1, 50.0)
    assert total["cc"]["max"] == {**dict.fromkeys(("mean", "stddev", "min", "max", "median")), "count": 0}
    assert (exported / "config.yaml").read_bytes() == (folder / "config.yaml").read_bytes()
    copied = exported / "words/checkpoint_2/inference_result.json"
    assert copied.read_bytes() == (folder / "words/checkpoint_2/inference_result.json").read_bytes()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (None, None, 0)),
        ([None, "1", True], (None, None, 0)),
        ([2], (2.0, 0.0, 1)),
        ([1, None, 4.0], (2.5, statistics.stdev([1, 4]), 2)),
    ],
)
def test_stats_are_over_numbers_alone(values, expected):
    block = stats(values)
    assert (block["mean"], block["stddev"], block["count"]) == expected


def test_the_report_of_pytest_is_copied_if_it_is_of_the_result(tmp_path, export):
    exported = export(STORED)
    folder = exported / "words/checkpoint_2/evaluation"
    assert {path.name for path in folder.iterdir()} == {"report.json", "stderr.txt", "stdout.txt"}
    assert (folder / "report.json").read_bytes() == (STORED / ".scbench/pytest-report.json").read_bytes()


@pytest.mark.parametrize("forged", ["not JSON", '{"exitcode": 0, "tests": []}', None])
def test_a_report_of_something_else_is_built_anew(forged, grouped, export, tmp_path):
    folder = grouped / "words/checkpoint_1/.scbench"
    folder.mkdir()
    if forged is None:
        secret = tmp_path / "secret.json"
        secret.write_text("{}")
        (folder / "pytest-report.json").symlink_to(secret)
    else:
        (folder / "pytest-report.json").write_text(forged)
    (folder / "pytest.log").write_bytes(b"6 tests \xff")
    evaluation = export(grouped) / "words/checkpoint_1/evaluation"
    assert len(read(evaluation / "report.json")["tests"]) == 6
    assert (evaluation / "stdout.txt").read_bytes() == b"6 tests \xff"
    assert (evaluation / "stderr.txt").read_bytes() == b""


def test_a_built_report_has_the_statuses_and_messages():
    tests = [case("a"), case("b", "failed", failure_message="E   no"), case("c", "skipped"), case("d", "error")]
    parsed = parse_json_report(built_report(result(tests, pytest_exit_code=1)))
    assert [(test.nodeid, test.status, test.duration_ms) for test in parsed.tests] == [
        (test.nodeid, test.status, test.duration_ms) for test in tests
    ]
    assert parsed.tests[1].message == "E   no"
    assert (parsed.exit_code, parsed.miscounted) == (1, None)


def test_messages_are_bounded_and_plain_text(tmp_path, export):
    huge = "\x1b]0;owned\x07" + "x" * 10 * TEXT_BYTES
    result([case("test_a\x1b", "failed", failure_message=huge, output=huge)], pytest_exit_code=1).save(
        tmp_path / "run/words/checkpoint_1/evaluation.json"
    )
    folder = export(tmp_path / "run")
    report = (folder / "words/checkpoint_1/evaluation/report.json").read_text()
    assert len(report) < 3 * TEXT_BYTES
    assert r"\u001b" not in report
    assert read(folder / "words/checkpoint_1/evaluation.json")["tests"]["checkpoint_1-Core"]["failed"] == [
        r"test_a\x1b"
    ]


HOSTILE_NAMES = [
    "../x",
    "..",
    ".",
    "/etc",
    "a/b",
    "\x1b[2J",
    "x" * 300,
    "config.yaml",
    "evaluation.json",
    "snapshot",
    "-rf",
    "",
    "a b",
    "é",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_folder_name_is_one_plain_word(name):
    made = folder_name(name)
    assert made != name
    assert made.isascii()
    assert Path(made).name == made
    assert len(made) < 100
    assert not made.startswith(".")


def test_different_names_stay_different():
    names = [*HOSTILE_NAMES, "a_b", "words", "checkpoint_1"]
    assert len({folder_name(name) for name in names}) == len(names)
    assert folder_name("checkpoint_1") == "checkpoint_1"


def test_hostile_names_stay_in_the_folder(tmp_path, export):
    for number, name in enumerate(["../../x", "\x1b]0;owned\x07", "checkpoint_results.jsonl"]):
        result("+", problem_name=name, checkpoint_name="../y").save(
            tmp_path / f"run/p{number}/checkpoint_1/evaluation.json"
        )
    before = sorted(tmp_path.iterdir())
    exported = export(tmp_path / "run")
    assert sorted(tmp_path.iterdir()) == sorted([*before, exported])
    assert len([*exported.glob("*/*/evaluation.json")]) == 3
    assert "\x1b" not in (exported / "checkpoint_results.jsonl").read_text()
    assert all((exported / row["path"] / "evaluation.json").is_file() for row in rows(exported))


def test_several_runs_are_folders_of_their_own(tmp_path):
    folders = [write_run(tmp_path / name, {"words": ["+"]}) for name in ("monday", "tuesday")]
    target = tmp_path / "both"
    assert slop_code(["export", *map(str, folders), "--format", "scb", "-o", str(target)]) == 0
    assert sorted(path.name for path in target.iterdir()) == ["monday", "tuesday"]
    assert rows(target / "tuesday")[0]["problem"] == "words"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "scb"], "writes a folder; give a new or an empty one with -o"),
        (["--format", "scb", "-o", "RUN"], "lies in the run"),
        (["--format", "scb", "-o", "RUN/words/exported"], "lies in the run"),
        (["--format", "scb", "-o", "RUN/words/checkpoint_1/snapshot/x"], "lies in a snapshot"),
        (["--format", "scb", "-o", "FULL"], "not empty, and nothing is replaced"),
        (["--format", "scb", "-o", "FULL/file"], "not a folder"),
        (["--format", "csv", "--skips", "leave-out"], "--skips is for --format scb"),
        (["--format", "scb", "-o", "NEW", "--skips", "never"], "invalid choice"),
    ],
)
def test_wrong_options_are_usage_errors(arguments, message, tmp_path, capsys):
    folder = write_run(tmp_path / "run", {"words": ["+"]})
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("of somebody")
    given = [text.replace("RUN", str(folder)).replace("FULL", str(tmp_path / "full")) for text in arguments]
    assert slop_code(["export", str(folder), *given]) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "full/file").read_text() == "of somebody"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "run"]


def test_an_empty_folder_is_filled_and_a_second_export_refused(tmp_path, capsys):
    folder, target = write_run(tmp_path / "run", {"words": ["+"]}), tmp_path / "target"
    target.mkdir()
    arguments = ["export", str(folder), "--format", "scb", "-o", str(target)]
    assert slop_code(arguments) == 0
    assert capsys.readouterr().out == f"written: {target}\n"
    assert slop_code(arguments) == 2


def test_an_export_that_fails_leaves_nothing(tmp_path, monkeypatch, capsys):
    folder = write_run(tmp_path / "run", {"words": ["+"]})

    target, renamed = tmp_path / "exported", os.rename

    def refuse(source, _target):
        renamed(source, source)
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr(os, "rename", refuse)
    assert slop_code(["export", str(folder), "--format", "scb", "-o", str(target)]) == 3
    assert (
        capsys.readouterr().err == f"slop-code: {target}: No space left on device; the disk is full: free space there\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_files_that_are_links_or_too_large_are_not_copied(tmp_path, export):
    folder, secret = write_run(tmp_path / "run", {"words": ["+"]}), tmp_path / "secret"
    secret.write_text("secret")
    (folder / "environment.yaml").symlink_to(secret)
    (folder / "config.yaml").write_bytes(b"#" * (2 << 20))
    exported = export(folder)
    assert sorted(path.name for path in exported.iterdir()) == ["checkpoint_results.jsonl", "result.json", "words"]


def test_every_file_is_on_the_disk_before_the_export_appears(tmp_path, export, monkeypatch):
    run, synced = write_run(tmp_path / "run", {"words": ["+", "-"]}), []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
    folder = export(run)
    assert synced[-1] == tmp_path
    scratch = synced[0].parents[len(synced[0].relative_to(tmp_path).parts) - 2]
    expected = {scratch, *(scratch / path.relative_to(folder) for path in folder.rglob("*"))}
    assert set(synced[:-1]) == expected


def test_lines_are_counted_between_the_snapshots_of_two_checkpoints(tmp_path, export):
    folder = write_run(tmp_path / "run", {"words": ["+", "+", "+", "+"]})
    for number, text in ((1, "a\nb\n"), (2, "a\nc\nd\n"), (4, "a\n")):
        path = folder / f"words/checkpoint_{number}/snapshot/main.py"
        path.parent.mkdir()
        path.write_text(text)
    columns = [(row["lines_added"], row["lines_removed"], row["delta.churn_ratio"]) for row in rows(export(folder))]
    assert columns == [(2, 0, None), (2, 1, 1.5), (None, None, None), (None, None, None)]


@pytest.mark.parametrize(("problem", "taken"), [("words", True), ("other", False)])
def test_the_run_of_a_mirrored_tree_is_the_source(problem, taken, tmp_path, export):
    folder = write_run(tmp_path / "mirror", {"words": ["+"]})
    snapshot = tmp_path / "theirs" / problem / "checkpoint_1" / "snapshot"
    snapshot.mkdir(parents=True)
    (tmp_path / "theirs/config.yaml").write_text("model: m\n")
    (folder / "words/checkpoint_1/.slop-code").mkdir()
    (folder / "words/checkpoint_1/.slop-code/origin.json").write_text(json.dumps({"snapshot": str(snapshot)}))
    assert (export(folder) / "config.yaml").exists() is taken


def test_quality_of_the_implementation_is_in_the_line_and_in_the_result(tmp_path):
    folder = write_run(tmp_path / "run", {"words": ["+", "+", "+"]}, submission="5ub")
    figures = QualityFigures(
        verbosity=0.25, erosion=0.5, cog_erosion=0.0, source_lines=40, max_complexity=12, files=2, functions=3,
        high_cc_functions=1, high_cog_functions=0, flagged_lines=10, clone_lines=4, languages={"python": 2},
    )  # fmt: skip
    made = QualityProvenance(scb_check="0.2.0", lock="l0c", python=None, sandbox="none", slop_code="0.1.0")
    for number, digest in ((1, "5ub"), (3, "of another submission")):
        record = QualityRecord(submission=digest, implementation=figures, tests=figures, provenance=made)
        record.save(folder / f"words/checkpoint_{number}")
    (folder / "words/checkpoint_2/quality.json").write_text("{")
    [run] = read_runs([folder])
    export_folder([run], exported := tmp_path / "exported", Skips.LEAVE_OUT)
    assert [str(folder / "words/checkpoint_2/quality.json") in message for message in run.unreadable] == [True]
    first, *others = rows(exported)
    names = (
        "sloc",
        "files",
        "functions",
        "cc_max",
        "cc_high_count",
        "clone_lines",
        "cloned_pct",
        "verbosity",
        "erosion",
    )
    assert [first[name] for name in names] == [40, 2, 3, 12, 1, 4, 10.0, 0.25, 0.5]
    assert first["verbosity_flagged_pct"] == 25.0
    assert {row[name] for row in others for name in names} == {None}
    total = read(exported / "result.json")
    assert (total["erosion"]["mean"], total["verbosity"]["count"], total["cc"]["max"]["max"]) == (0.5, 1, 12)


def test_incomplete_quality_is_in_no_column():
    assert quality_columns(quality())["erosion"] == quality().implementation.erosion
    assert quality_columns(quality(incomplete={"implementation": 1})) == {}
    assert quality_columns(quality(incomplete={"tests": 1})) == quality_columns(quality())


def test_every_key_of_an_export_is_explained(grouped, export):
    folder = export(grouped)
    made = {
        "evaluation.json of an export": read(folder / "words/checkpoint_1/evaluation.json"),
        "Columns of a line": rows(folder)[0],
        "Figures of the run": read(folder / "result.json"),
    }
    for heading, document in made.items():
        assert table_rows(section("exports.md", heading)).keys() >= document.keys()
