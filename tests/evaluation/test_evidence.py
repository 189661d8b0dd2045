import json
import shutil
from pathlib import Path

import pytest

from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, REPORT_LIMIT, STREAM, read_evidence

DATA = Path(__file__).parents[1] / "data" / "reports"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(DATA / "pytest-json-report-1.5.0" / "all-outcomes.json", tmp_path / JSON_REPORT)
    shutil.copy(DATA / "pytest-json-ctrf-0.6.1" / "all-outcomes.json", tmp_path / CTRF_REPORT)
    shutil.copy(DATA / "stream" / "all-outcomes.jsonl", tmp_path / STREAM)
    return tmp_path


def missing(path):
    path.unlink()


def truncated(path):
    path.write_bytes(path.read_bytes()[:-100])


def huge(path):
    with path.open("r+b") as file:
        file.truncate(REPORT_LIMIT + 1)


def empty(path):
    path.write_bytes(b"")


def other(path):
    path.write_text('{"tests": 3, "results": 4}')


def nested(path):
    path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000)


def linked(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


DAMAGES = [
    (missing, "is missing"),
    (truncated, "is cut short"),
    (huge, "is larger than 64 MiB"),
    (empty, "is cut short"),
    (other, "is malformed: "),
    (nested, "is malformed: nested too deeply"),
    (linked, "cannot be read: "),
]


def test_the_json_report_is_preferred(folder):
    evidence = read_evidence(folder)
    assert (evidence.source, evidence.problems, evidence.reported_exit) == ("json-report", (), 1)
    assert len(evidence.tests) == 24


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_ctrf_stands_in(folder, damage, words):
    damage(folder / JSON_REPORT)
    evidence = read_evidence(folder)
    assert (evidence.source, len(evidence.tests), evidence.reported_exit) == ("ctrf", 24, 1)
    (problem,) = evidence.problems
    assert problem.startswith(f"{JSON_REPORT} {words}")


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_the_stream_stands_in(folder, damage, words):
    damage(folder / JSON_REPORT)
    damage(folder / CTRF_REPORT)
    evidence = read_evidence(folder)
    assert (evidence.source, len(evidence.tests)) == ("stream", 24)
    assert [
        problem.startswith(f"{name} {words}")
        for name, problem in zip((JSON_REPORT, CTRF_REPORT), evidence.problems, strict=True)
    ] == [True, True]


def test_nothing_at_all(tmp_path):
    evidence = read_evidence(tmp_path / "nowhere")
    assert (evidence.tests, evidence.source, evidence.running) == ((), "stream", None)
    assert evidence.problems == tuple(f"{name} is missing" for name in (JSON_REPORT, CTRF_REPORT, STREAM))


def test_what_was_running_and_deselected_comes_from_the_stream(folder):
    with (folder / STREAM).open("a") as file:
        file.write(json.dumps({"kind": "deselected", "nodeids": [".evaluation_tests/test_a.py::x"]}) + "\n")
        file.write(json.dumps({"kind": "start", "nodeid": "test_a.py::y"}) + "\n")
    evidence = read_evidence(folder)
    assert (evidence.running, evidence.deselected) == ("test_a.py::y", {"test_a.py::x"})


def test_collection_errors(tmp_path):
    shutil.copy(DATA / "stream" / "collection-error.jsonl", tmp_path / STREAM)
    from_stream = read_evidence(tmp_path).collection_errors
    shutil.copy(DATA / "pytest-json-report-1.5.0" / "collection-error.json", tmp_path / JSON_REPORT)
    assert read_evidence(tmp_path).collection_errors == from_stream
    assert len(from_stream) == 1
