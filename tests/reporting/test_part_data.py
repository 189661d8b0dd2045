"""Parts of the report: causes of failures, reasons, sources, and provenance."""

import json
import os
from dataclasses import asdict

import pytest

from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.problem.entry_file import no_entry_file
from slop_code.evaluation.result_files.origin import Origin
from slop_code.reporting.html import page
from slop_code.reporting.html.page import PageParts
from slop_code.reporting.html.page_texts import LEFT_OUT
from slop_code.reporting.html.part_data import MAX_BARE_CAUSES, MAX_CAUSES
from slop_code.reporting.html.run_data import report_data
from slop_code.reporting.html.run_page import LiveReport, write_report
from slop_code.runs.read_results import read_runs
from tests.factories import case, result
from tests.reporting.html_runs import Shape, store, unpacked
from tests.scb_run import write_scb_run

HOSTILE = "</script><!--<img src=x onerror=alert(1)>\u2028\x1b[2J"
SHOWN = "</script><!--<img src=x onerror=alert(1)>\\u2028\\x1b[2J"


def read(*folders, **options):
    data, parts = report_data(read_runs(folders), [PassPolicy.ALL_CASES], **options)
    return data["runs"][0]["problems"][0]["checkpoints"], {name: unpacked(part) for name, part in parts.items()}


def complete(part):
    """As the page completes it."""
    return [[part["texts"][text] if isinstance(text, int) else text, tests] for text, tests in part["causes"]]


def failed(name, message):
    return case(name, "failed", failure_message=message)


def test_every_test_that_did_not_pass_has_one_cause(tmp_path):
    tests = [failed("a", "E   x"), case("b"), failed("c", "E   y"), case("d", "skipped"), failed("e", "E   y")]
    _, parts = read(store(tmp_path / "run", [tests]))
    assert complete(parts["0/0/0"]) == [["y", [2, 4]], ["x", [0]], ["skipped", [3]]]
    reasons = [numbers and parts["0/0/0"]["texts"][numbers[4]] for numbers in parts["0/0/0"]["text_numbers"]]
    assert reasons == ["x", None, "y", "skipped", "y"]
    assert parts["0/0/0"]["explained"] == []


def test_causes_have_an_end(tmp_path):
    tests = [failed(f"t{number}", f"E   cause {number}") for number in range(MAX_CAUSES + 3)]
    run = store(tmp_path / "run", [tests])
    causes = complete(read(run)[1]["0/0/0"])
    assert len(causes) == MAX_CAUSES + 1
    assert causes[-1] == ["… and 3 more causes", [MAX_CAUSES, MAX_CAUSES + 1, MAX_CAUSES + 2]]
    bare = read(run, limit=0)[1]["0/0/0"]
    assert (bare["texts"], bare["text_numbers"][0]) == ([], [LEFT_OUT, None, None, None, LEFT_OUT, None])
    assert bare["causes"][0] == ["cause 0", [0]]
    assert len(bare["causes"]) == MAX_BARE_CAUSES + 1
    assert sorted(number for _, numbers in bare["causes"] for number in numbers) == list(range(MAX_CAUSES + 3))


def test_the_message_has_neither_addresses_nor_fixtures(tmp_path):
    box, source = "<Box at 0xffffb67e6ac0>", "    def test_a(box):\n>       assert box\nE       assert "
    _, parts = read(store(tmp_path / "run", [[failed("a", f"box = {box}\n\n{source}{box}")]]))
    assert parts["0/0/0"]["texts"][0] == f"{source}<Box>"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [({}, None), ({"setup_failure": "no pip"}, "no pip"), ({"infrastructure_failure_reason": HOSTILE}, SHOWN)],
    ids=["none", "setup", "infrastructure"],
)
def test_the_cause_of_a_checkpoint_is_with_it(tmp_path, fields, cause):
    result([failed("a", "E   x")], **fields).save(tmp_path / "run/words/checkpoint_1/evaluation.json")
    assert read(tmp_path / "run")[0][0]["cause"] == cause


def test_the_tests_that_this_cause_explains_are_known(tmp_path):
    syntax = 'E   File "/workspace/main.py", line 3\nE   SyntaxError: invalid syntax'
    tests = [failed("a", syntax), case("b"), failed("c", "E   x"), failed("d", syntax), failed("e", syntax)]
    [checkpoint], parts = read(store(tmp_path / "run", [tests]))
    assert checkpoint["cause"] == "SyntaxError: invalid syntax in main.py line 3"
    assert parts["0/0/0"]["explained"] == [0, 3, 4]


def test_a_warning_that_is_the_cause_is_said_once(tmp_path):
    warnings = ["first", no_entry_file("a\u202e.py")]
    stored = result([failed("a", "E   x")], missing_entry_file="a\u202e.py", warnings=warnings)
    stored.save(tmp_path / "run/words/checkpoint_1/evaluation.json")
    [checkpoint], _ = read(tmp_path / "run")
    assert checkpoint["cause"].startswith("the submission has no a\\u202e.py; ")
    assert checkpoint["warnings"] == ["first"]


@pytest.mark.e2e
def test_causes_are_bounded_and_escaped(tmp_path):
    long = HOSTILE + "x" * 10_000_000
    stored = result([failed("a", f"E   {long}")], infrastructure_failure_reason=long)
    stored.save(tmp_path / "run/words/checkpoint_1/evaluation.json")
    [checkpoint], parts = read(tmp_path / "run")
    assert checkpoint["cause"].startswith(SHOWN)
    assert len(checkpoint["cause"]) < 1100
    [[cause, _]] = complete(parts["0/0/0"])
    assert cause.startswith(SHOWN)
    assert len(cause) < 300
    assert len(json.dumps(parts)) < 10_000


def test_a_checkpoint_has_what_it_was_made_from(tmp_path):
    stored = result(
        [case("a")],
        digests={"tests": "a" * 64, "submission": "sha256:" + "b" * 64, "python": "3.13.0"},
        provenance={"test_dependencies": {"pytest": "9.0.0"}},
        isolation={"sandbox": "bubblewrap", "network": "none"},
    )
    path = tmp_path / "run/words/checkpoint_1/evaluation.json"
    stored.save(path)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    [checkpoint], _ = read(tmp_path / "run")
    assert dict(map(tuple, checkpoint["made_from"])) == {
        "evaluated": "2023-11-14 22:13 UTC",
        "problem": "words",
        "tests digest": "a" * 12,
        "submission digest": "b" * 12,
        "slop-code": "0.1.0",
        "pytest": "9.0.0",
        "Python": "3.12.1 (submission: 3.13.0)",
        "sandbox": "bubblewrap, network none",
    }


@pytest.mark.e2e
def test_hostile_provenance_is_bounded_and_escaped(tmp_path):
    long = HOSTILE + "x" * 1_000_000
    stored = result(
        [case("a")],
        digests=dict.fromkeys(("tests", "submission", "python"), long),
        provenance={"test_dependencies": {"pytest": long}, "python": long, "slop_code": long},
        isolation={"sandbox": {"a": [long]}, "network": long},
    )
    path = tmp_path / "run/words/checkpoint_1/evaluation.json"
    stored.save(path)
    os.utime(path, (10**11, 10**11))
    [checkpoint], _ = read(tmp_path / "run")
    values = [value for _, value in checkpoint["made_from"]]
    assert all(len(value) < 1100 and value.isprintable() for value in values)


def test_a_foreign_run_has_no_provenance_and_no_sources(tmp_path):
    run = write_scb_run(tmp_path / "run")
    checkpoints, _ = read(run)
    values = dict(map(tuple, checkpoints[0]["made_from"]))
    recorded = {label for label, value in values.items() if value != "not recorded"}
    assert recorded == {"evaluated", "problem"}


def test_a_checkpoint_without_a_result_is_made_from_nothing(tmp_path):
    run = store(tmp_path / "run", [[case("a")]])
    (run / "words/checkpoint_2/snapshot").mkdir(parents=True)
    assert read(run)[0][1]["made_from"] == []


def test_an_origin_from_somewhere_else_shows_no_file_of_this_machine(tmp_path):
    """The digest of the tests is not that of the folder."""
    run = store(tmp_path / "run", [[failed("test_secret", "E   x")]])
    problem = tmp_path / "mine"
    (problem / "tests").mkdir(parents=True)
    (problem / "tests/test_checkpoint_1.py").write_text("def test_secret(): KEY = 1\n")
    config = {"name": "words", "version": 1, "description": "", "tags": [], "entry_file": "main.py"}
    (problem / "config.yaml").write_text(json.dumps({**config, "checkpoints": {"checkpoint_1": {}}}))
    Origin(problem=str(problem)).keep(run / "words")
    assert "KEY" not in json.dumps(read(run))


@pytest.mark.parametrize("live", [None, LiveReport(written=1_700_000_000.5, every=5.0)])
def test_a_live_page_says_when_it_was_written(tmp_path, live):
    run = store(tmp_path / "run", [[case("a")]])
    write_report(read_runs([run]), [], tmp_path / "page.html", live)
    shape = Shape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert unpacked(shape.texts["data"])["data"]["live"] == (asdict(live) if live else None)


def test_a_part_that_cannot_fit_is_not_packed(monkeypatch):
    noise = ["".join(chr(33 + (index * index * seed) % 90) for index in range(3000)) for seed in (7, 11)]
    parts = PageParts(len(page.pack(noise[0])) + 100)
    pack_json, packed = page.pack_json, []
    monkeypatch.setattr(page, "pack_json", lambda raw: packed.append(json.loads(raw)) or pack_json(raw))
    for number, text in enumerate(noise):
        parts.add(str(number), [text, ""])
    assert [unpacked(part) for part in parts.packed.values()] == [noise[0], ""] == packed
    assert parts.is_full
