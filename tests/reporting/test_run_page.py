"""`slop-code report`: what is written, and what is never written over."""

import os

import pytest

from slop_code.cli.main import run
from slop_code.evaluation.policy import PassPolicy, RatePolicy
from tests.factories import case
from tests.reporting.html_runs import Shape, store, unpacked

HOSTILE = "</script><script>window.pwned=1</script><!--\u2028\x00\x1b[2J\ud800<img src=x onerror=alert(1)>"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(path):
    return unpacked(Shape(path.read_text(encoding="utf-8")).texts["data"])["data"]


def test_a_report_is_written_where_one_stands(here, capsys):
    store(here / "monday", [[case("a")]])
    assert run(["report", "monday"]) == 0
    assert capsys.readouterr().out == "written: report.html (0.4 MB)\n"
    assert [run["name"] for run in data_of(here / "report.html")["runs"]] == ["monday"]


def test_the_first_policy_is_that_which_is_shown(here):
    store(here / "monday", [[case("a")]])
    for given in ([], ["core-cases"], ["core >= 0.5", "any", "core >= 0.5"]):
        options = [f"--pass-policy={policy}" for policy in given]
        assert run(["report", "monday", "-o", "out/page.html", *options]) == 0
        policies = data_of(here / "out/page.html")["policies"]
        assert policies[0] == (given or ["all-cases"])[0]
        assert sorted(policies) == sorted({*given, *PassPolicy, *RatePolicy})


def printing_tests(text):
    """A run whose every text is this one."""
    said = {"failure_message": text, "calls": [text], "output": text, "markers": [text], "file_path": f"test_{text}.py"}
    return [[case(text, "failed", **said)], f"no: {text}"]


def test_a_hostile_run_has_the_page_of_a_harmless_one(here):
    store(here / "plain", printing_tests("harmless"))
    store(here / "hostile", printing_tests(HOSTILE))
    for name in ("plain", "hostile"):
        assert run(["report", name, "-o", f"{name}.html"]) == 0
    plain, hostile = (Shape((here / f"{name}.html").read_text(encoding="utf-8")) for name in ("plain", "hostile"))
    assert hostile.elements == plain.elements
    assert hostile.policy == plain.policy
    shown = HOSTILE.replace("\u2028\x00\x1b", "\\u2028\ufffd\\x1b").replace("\ud800", "\ufffd")
    part = unpacked(hostile.texts["part-0"])
    assert part["texts"] == [shown, shown]  # the message, which is the output as well, and the reason
    assert "path" not in unpacked(hostile.texts["data"])["data"]["runs"][0]
    assert part["markers"] == [[shown]]
    sheet = unpacked(hostile.texts["data"])["data"]["runs"][0]["problems"][0]
    assert sheet["tests"][0]["name"] == f"test_{shown}.py::{shown}"
    assert sheet["checkpoints"][1]["reason"] == f"no: {shown}"


def test_only_a_page_of_slop_code_is_overwritten(here, capsys):
    store(here / "monday", [[case("a")]])
    assert run(["report", "monday"]) == 0
    assert run(["report", "monday"]) == 0
    (here / "report.html").write_text("<!doctype html>mine")
    assert run(["report", "monday"]) == 2
    assert "report.html: exists, and is no page that slop-code wrote" in capsys.readouterr().err
    assert (here / "report.html").read_text() == "<!doctype html>mine"


def test_a_pipe_is_not_waited_for(here):
    store(here / "monday", [[case("a")]])
    os.mkfifo(here / "report.html")
    assert run(["report", "monday"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["monday", "-o", "monday"], "monday: a folder; give the name of a file with -o"),
        (["monday", "-o", "monday/words/checkpoint_1/snapshot/x.html"], "lies in a snapshot"),
        (["monday", "-o", "monday/words/checkpoint_1/snapshot/a/x.html"], "lies in a snapshot"),
        (
            ["monday", "-o", "monday/words/checkpoint_1/evaluation.json"],
            "a file name of runs or of the results themselves",
        ),
        (["empty"], "no run that has one; give the folder of an evaluated run"),
        (["gone"], "gone: there is no such folder"),
        (["monday", "monday"], "given twice"),
        (["monday", "--pass-policy", "coer == 1"], "coer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_use_is_refused(here, capsys, arguments, message):
    store(here / "monday", [[case("a")]])
    (here / "empty").mkdir()
    (here / "monday/words/checkpoint_1/snapshot").mkdir()
    assert run(["report", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(here.rglob("*.html"))


def test_one_result_is_a_report_too(here):
    store(here / "monday", [[case("a")], [case("a", "failed")]])
    assert run(["report", "monday/words/checkpoint_2/evaluation.json"]) == 0
    (problem,) = data_of(here / "report.html")["runs"][0]["problems"]
    assert [checkpoint["name"] for checkpoint in problem["checkpoints"]] == ["checkpoint_2"]
