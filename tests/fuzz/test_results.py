"""Stored results: what loads is consistent with its own tests, and no changed verdict is called fine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.policy import PassPolicy, passes
from slop_code.evaluation.report import DERIVED, CorrectnessResults
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, JSON_REPORT, STREAM
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify
from tests.fuzz.odd_input import answered, as_json, damaged, edited, fuzzed

DATA = Path(__file__).parents[1] / "data" / "results"
STORED = (DATA / "stored" / "evaluation.json").read_bytes()
STATUSES = ["passed", "failed", "skipped", "error"]
GROUPS = ["Core", "Functionality", "Error", "Regression"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("results") / "stored"
    shutil.copytree(DATA / "stored", copy)
    return copy


altered = st.one_of(edited(json.loads(STORED)).map(as_json), damaged(STORED), st.binary(max_size=40))


def counted(document: Any) -> dict[str, Any]:
    """What follows from the tests of a file, once more and in the simplest way."""
    tests = [one for one in document["tests"] if "quarantined" not in one["markers"]]
    total = {group: sum(one["group_type"] == group for one in tests) for group in GROUPS}
    good = {group: sum(one["group_type"] == group and one["status"] == "passed" for one in tests) for group in GROUPS}
    failed = document.get("infrastructure_failure_reason") is not None
    left_out = failed or document.get("deselected", 0) > 0
    passed = {policy.value: passes(policy, good, total, left_out) for policy in PassPolicy}  # type: ignore[arg-type]
    return {"pass_counts": good, "total_counts": total, "infrastructure_failure": failed, "passed": passed}


@fuzzed(raw=altered)
def test_a_result_that_loads_has_consistent_counts(folder: Path, raw: bytes) -> None:
    path = folder / "loaded.json"
    path.write_bytes(raw)
    results = answered(lambda: CorrectnessResults.load(path))
    if results is None:
        return
    document = json.loads(raw)
    assert {name: document[name] for name in DERIVED} == counted(document)
    results.save(path)
    assert CorrectnessResults.load(path) == results


@fuzzed(raw=altered, with_problem=st.booleans())
def test_a_verified_result_says_the_same_as_the_stored_one(folder: Path, raw: bytes, with_problem: bool) -> None:
    path = folder / "evaluation.json"
    path.write_bytes(raw)
    problem = ProblemConfig.from_yaml(DATA / "words") if with_problem else None
    found = answered(lambda: verify(path.parent, read_document(path), problem))
    if found is None or found.findings:
        return
    assert said(json.loads(raw)) == said(json.loads(STORED))


def said(document: Any) -> Any:
    """The verdict, as a reader of the file takes it."""
    keys = ("passed", "pass_counts", "total_counts", "infrastructure_failure", "infrastructure_failure_reason")
    tests = {(one["file_path"], one["id"]): (one["status"], one["group_type"]) for one in document["tests"]}
    return [document.get(key) for key in keys], tests


@st.composite
def forged(draw: st.DrawFn) -> bytes:
    """Edited by somebody who knows how it all hangs together, and sets right whatever follows."""
    document = json.loads(STORED)
    for _ in range(draw(st.integers(1, 3))):
        tests = document["tests"]
        one = draw(st.sampled_from(tests)) if tests else {}
        kind = draw(st.sampled_from(["status", "group", "drop", "rename", "add", "quarantine", "reason", "home"]))
        if kind == "status" and tests:
            one["status"] = draw(st.sampled_from(STATUSES))
            one.update({"failure_message": None} if one["status"] == "passed" else {})
        elif kind == "group" and tests:
            one["group_type"] = draw(st.sampled_from(GROUPS))
        elif kind == "drop" and tests:
            tests.remove(one)
        elif kind == "rename" and tests:
            one["id"] += "_"
        elif kind == "add" and tests:
            tests.append({**one, "id": one["id"] + "_too", "status": "passed", "failure_message": None})
        elif kind == "quarantine" and tests:
            one["markers"] = [*one["markers"], "quarantined"]
        elif kind == "home" and tests:
            one["checkpoint"] = draw(st.sampled_from(["checkpoint_1", "checkpoint_2"]))
        else:
            document["infrastructure_failure_reason"] = draw(st.sampled_from([None, "no idea"]))
            document["pytest_exit_code"] = draw(st.sampled_from([0, 1, 2, 137]))
    document.update(counted(document))
    return as_json(document)


@fuzzed(raw=forged())
def test_forged_counts_are_never_verified(folder: Path, raw: bytes) -> None:
    path = folder / "evaluation.json"
    path.write_bytes(raw)
    before, after = counted(json.loads(STORED)), counted(json.loads(raw))
    found = answered(lambda: verify(path.parent, read_document(path), ProblemConfig.from_yaml(DATA / "words")))
    assert before == after or found is None or found.findings


EVIDENCE = DATA / "stored" / ".scbench"


@fuzzed(
    case=st.sampled_from([CTRF_REPORT, JSON_REPORT, STREAM]).flatmap(
        lambda file: st.tuples(st.just(file), damaged((EVIDENCE / file).read_bytes()))
    )
)
def test_verify_against_damaged_reports(folder: Path, case: tuple[str, bytes]) -> None:
    file, raw = case
    (folder / "evaluation.json").write_bytes(STORED)
    path = folder / ".scbench" / file
    whole = (EVIDENCE / file).read_bytes()
    path.write_bytes(raw)
    try:
        answered(lambda: verify(folder, read_document(folder / "evaluation.json")))
    finally:
        path.write_bytes(whole)


def test_as_they_are_nothing_is_found(folder: Path) -> None:
    """Else no finding would say anything."""
    path = folder / "evaluation.json"
    path.write_bytes(STORED)
    assert verify(folder, read_document(path), ProblemConfig.from_yaml(DATA / "words")).findings == []
