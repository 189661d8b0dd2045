import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

import slop_code.evaluation.report as report_module
from slop_code.errors import ResultError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.report import Attempt, CorrectnessResults, Digests, Provenance, json_schema
from tests.factories import case, result

SCHEMA = Path(report_module.__file__).with_name("evaluation.schema.json")
PROVENANCE = Provenance(
    digests=Digests(submission="a", tests="b", config="c", environment="d"),
    evaluation_version="1-0123456789ab",
    test_dependencies={"pytest": "9.2.0"},
    python="3.12.1",
    platform="linux",
    slop_code="0.1.0",
    command=["uvx", "pytest"],
    pytest_args=["-l"],
)


def sample_of(*tests, **fields):
    plain = {
        "pytest_exit_code": 1,
        "isolation": {"sandbox": "bubblewrap", "limits": {"memory": 1}},
        "phases": {"prepare": 0.1, "setup": 0.2, "tests": 2.0, "parse": 0.1},
        "provenance": PROVENANCE.model_dump(),
    }
    return result(tests, **{**plain, **fields})


def sample(**fields):
    return sample_of(
        case("test_a"),
        case("test_b", "failed", group_type=GroupType.ERROR, failure_message="é \x1b\n"),
        case("test_c[x::y]", "skipped", group_type=GroupType.REGRESSION),
        **fields,
    )


def test_counts_are_derived_and_name_all_groups():
    it = sample()
    assert it.pass_counts == {"Core": 1, "Functionality": 0, "Error": 0, "Regression": 0}
    assert it.total_counts == {"Core": 1, "Functionality": 0, "Error": 1, "Regression": 1}
    assert set(it.passed) == {policy.value for policy in PassPolicy}
    assert (it.passed["all-core-cases"], it.passed["all-cases"]) == (True, False)


def test_an_infrastructure_failure_passes_nothing():
    it = sample(infrastructure_failure_reason="pytest was killed by signal 9 (SIGKILL)")
    assert it.infrastructure_failure
    assert not any(it.passed.values())


def test_a_stored_result_loads_as_it_was(tmp_path):
    path = tmp_path / "deep" / "evaluation.json"
    attempts = [Attempt(reason="no space left on the device", duration=1.5)]
    it = sample(warnings=["one"], infrastructure_failure_reason="why", attempts=attempts)
    it.save(path)
    assert CorrectnessResults.load(path) == it
    assert [entry.name for entry in path.parent.iterdir()] == ["evaluation.json"]


SEEDS_RESULT = {
    "problem_name": "words",
    "checkpoint_name": "checkpoint_1",
    "duration": 3.25,
    "tests": [case("test_a"), case("test_b", "failed", group_type=GroupType.ERROR)],
    "pass_counts": {GroupType.CORE: 1},
    "total_counts": {GroupType.CORE: 1, GroupType.ERROR: 1},
    "pytest_exit_code": 1,
    "infrastructure_failure": False,
}


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"pass_counts": {"Core": 1, "Functionality": 0, "Error": 0, "Regression": 0}},
        {"pass_counts": {GroupType.CORE: 1, GroupType.ERROR: 0}},
        {"total_counts": {"Core": 1, "Error": 1, "Regression": 0}},
    ],
)
def test_a_result_is_built_from_the_eight_fields(tmp_path, counts):
    it = CorrectnessResults(**{**SEEDS_RESULT, **counts})
    assert it == CorrectnessResults(**SEEDS_RESULT)
    assert it.pass_counts == {"Core": 1, "Functionality": 0, "Error": 0, "Regression": 0}
    assert (it.infrastructure_failure, it.passed["core-cases"], it.schema_version) == (False, True, 1)
    it.save(tmp_path / "evaluation.json")
    assert CorrectnessResults.load(tmp_path / "evaluation.json") == it


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pass_counts", {}),
        ("pass_counts", {"Core": 2}),
        ("pass_counts", {"Core": 1, "Regression": 1}),
        ("pass_counts", {"Core": 1, "Other": 0}),
        ("total_counts", {"Core": 1, "Error": 1, "Functionality": 1}),
        ("total_counts", {"Core": 1}),
    ],
)
def test_counts_that_contradict_the_tests_are_refused(name, value):
    with pytest.raises(ValidationError, match=f"{name} is not what follows from the rest"):
        CorrectnessResults(**{**SEEDS_RESULT, name: value})


def test_an_infrastructure_failure_may_be_given_without_its_reason():
    it = CorrectnessResults(**{**SEEDS_RESULT, "infrastructure_failure": True})
    assert (it.infrastructure_failure, it.infrastructure_failure_reason) == (True, "no reason was given")
    assert not any(it.passed.values())


def test_no_failure_that_has_a_reason_is_refused():
    with pytest.raises(ValidationError, match="infrastructure_failure is not what follows"):
        CorrectnessResults(**{**SEEDS_RESULT, "infrastructure_failure_reason": "no disk"})


@pytest.mark.parametrize("version", [0, 2, 4])
def test_another_schema_version_is_refused(tmp_path, version):
    path = tmp_path / "evaluation.json"
    sample().save(path)
    path.write_text(path.read_text().replace('"schema_version": 1', f'"schema_version": {version}'))
    words = f"schema_version is {version}, and this slop-code reads 1 only; update slop-code, or evaluate the snapshot"
    with pytest.raises(ResultError, match=words):
        CorrectnessResults.load(path)


@pytest.mark.parametrize("name", ["provenance", "isolation", "evidence", "attempts", "schema_version"])
def test_a_file_leaves_out_no_field(tmp_path, name):
    path = tmp_path / "evaluation.json"
    sample().save(path)
    document = json.loads(path.read_text())
    del document[name]
    path.write_text(json.dumps(document))
    with pytest.raises(ResultError, match=f"{name}: Field required; evaluate the snapshot again"):
        CorrectnessResults.load(path)


def test_hostile_text_round_trips_as_strict_json(tmp_path):
    path = tmp_path / "evaluation.json"
    text = "\ud800 \x00 \x1b \u202e \U0001f600"
    it = sample_of(
        case("test_a", "failed", failure_message=text),
        warnings=[text],
        isolation={text: [text, float("nan"), (1, float("inf"))]},
    )
    it.save(path)
    assert CorrectnessResults.load(path) == it
    assert it.tests[0].failure_message == "\ufffd \ufffd \x1b \u202e \U0001f600"
    raw = path.read_bytes()
    assert b"\x1b" not in raw
    assert b"NaN" not in raw
    jsonschema.validate(json.loads(raw), json_schema())


def test_the_shipped_schema_is_the_schema(tmp_path):
    schema = json_schema()
    assert json.loads(SCHEMA.read_text()) == schema
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    path = tmp_path / "evaluation.json"
    sample().save(path)
    document = json.loads(path.read_text())
    assert checker.is_valid(document)
    for key in document:
        assert not checker.is_valid({name: value for name, value in document.items() if name != key}), key


def stored(tmp_path, **changes):
    path = tmp_path / "evaluation.json"
    sample().save(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pass_counts": {"Core": 2, "Functionality": 0, "Error": 0, "Regression": 0}}, "pass_counts"),
        ({"pass_counts": {"Core": True, "Functionality": 0, "Error": 0, "Regression": 0}}, "pass_counts"),
        ({"pass_counts": {"Core": 1}}, "pass_counts"),
        ({"total_counts": {"Core": 1, "Functionality": 0, "Error": 0, "Regression": 1}}, "total_counts"),
        ({"passed": {"any": True}}, "passed"),
        ({"infrastructure_failure": True}, "infrastructure_failure"),
        ({"infrastructure_failure_reason": "why"}, "infrastructure_failure"),
        ({"tests": []}, "counts"),
        ({"schema_version": 5}, "schema_version"),
        ({"schema_version": "1"}, "schema_version"),
        ({"duration": "3"}, "duration"),
        ({"duration": -1}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"phases": {"tests": 1e308}}, "phases"),
        ({"phases": {"tests": -1.0}}, "phases"),
        ({"pytest_exit_code": True}, "pytest_exit_code"),
        ({"pytest_exit_code": 0.5}, "pytest_exit_code"),
        ({"tests": {}}, "tests"),
        ({"tests": [{"id": "x"}]}, "tests.0"),
        ({"problem_name": None}, "problem_name"),
        ({"phases": {"tests": "1"}}, "phases"),
        ({"provenance": {}}, "provenance"),
        ({"attempts": [{"reason": "why"}]}, "attempts.0.duration"),
        ({"attempts": [{"reason": "why", "duration": -1}]}, "attempts.0.duration"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_a_changed_file_is_refused_by_name(tmp_path, changes, words):
    path = stored(tmp_path, **changes)
    with pytest.raises(ResultError) as caught:
        CorrectnessResults.load(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"infrastructure_failure": True}, "infrastructure_failure is not what follows from the rest: true for false"),
        ({"passed": {}}, "passed is not what follows from the rest: {} for {"),
        ("pass_counts", "pass_counts is missing"),
    ],
    ids=["flag", "verdicts", "no counts"],
)
def test_a_file_that_contradicts_itself_says_what_to_do(tmp_path, change, words):
    path = tmp_path / "my results.json"
    sample_of(case("test_a")).save(path)
    document = json.loads(path.read_text())
    if isinstance(change, dict):
        document |= change
    else:
        del document[change]
    path.write_text(json.dumps(document))
    with pytest.raises(ResultError) as caught:
        CorrectnessResults.load(path)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert str(caught.value).endswith(f"; slop-code verify '{path}' says what was changed")


@pytest.mark.parametrize("key", ["pass_counts", "total_counts", "passed", "infrastructure_failure", "tests"])
def test_a_file_without_a_field_is_refused(tmp_path, key):
    path = stored(tmp_path)
    document = json.loads(path.read_text())
    del document[key]
    path.write_text(json.dumps(document))
    with pytest.raises(ResultError, match=key):
        CorrectnessResults.load(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-3],
        lambda _: b"[]",
        lambda _: b"null",
        lambda data: b"\xff" + data,
        lambda _: b"[" * 100_000,
        lambda data: data.replace(b'"sandbox"', b'"deep": ' + b"[" * 5000 + b"]" * 5000 + b', "sandbox"'),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = stored(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ResultError, match=r"evaluation\.json"):
        CorrectnessResults.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ResultError, match="cannot be read"):
        CorrectnessResults.load(tmp_path / "evaluation.json")


def test_a_test_twice_is_refused():
    with pytest.raises(ValidationError, match=r"test_checkpoint_1\.py::test_a twice"):
        sample_of(case("test_a"), case("test_a"))


def test_given_counts_must_agree():
    counts = {group: int(group is GroupType.CORE) for group in GroupType}
    assert sample_of(case("test_a"), total_counts=counts).total_counts == counts
    with pytest.raises(ValidationError, match="total_counts"):
        sample_of(total_counts=counts)
