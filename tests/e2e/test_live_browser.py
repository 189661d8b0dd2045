"""The report of `eval --report`, open in a browser while the evaluation goes on."""

from __future__ import annotations

import re
import signal
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.html.run_page import LiveReport, write_report
from slop_code.runs.read_results import RunResults
from tests.e2e.browser import severe_violations
from tests.e2e.test_follow import letting_go
from tests.factories import case, result
from tests.reporting.html_runs import data_of

WRITTEN = 1_800_000_000.0
LIVE = LiveReport(WRITTEN, every=30)


@pytest.fixture
def page_file(tmp_path):
    """`page_file(3)` writes the page of a run with that many evaluated checkpoints, out of 40."""
    run = tmp_path / "monday"

    def write(count, live=LIVE):
        for number in range(1, 41):
            (run / f"words/checkpoint_{number}/snapshot").mkdir(parents=True, exist_ok=True)
        for number in range(1, count + 1):
            names = {"problem_name": "words", "checkpoint_name": f"checkpoint_{number}"}
            result("+-", **names).save(run / f"words/checkpoint_{number}/evaluation.json")
        write_report([RunResults("monday", run)], [PassPolicy.ALL_CASES], tmp_path / "report.html", live=live)
        return tmp_path / "report.html"

    return write


@pytest.fixture
def open_live(visit):
    """`open_live(file, age=4)`: that many seconds after it was written."""

    def call(file, fragment="", age=0, **options):
        page = visit(file, fragment, clock=WRITTEN + age, **options)
        page.locator(".live").wait_for()
        mark(page)
        return page

    return call


def mark(page):
    """Marks the page until it is loaded again."""
    page.evaluate("document.documentElement.dataset.first = ''")


def is_first(page):
    return page.locator("html[data-first]").count() == 1


def pass_time(page, seconds):
    page.clock.run_for(seconds * 1000)


def close_test(page):
    """The address changes a moment after the key; until then, the test counts as open."""
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("test="))


def expect_reload(page):
    expect(page.locator("html[data-first]")).to_have_count(0)
    expect(page.get_by_role("contentinfo")).to_be_visible()


def test_the_page_says_how_old_it_is_and_loads_the_newer_one_at_the_same_position(page_file, open_live, picture):
    page = open_live(page_file(2), age=2, height=400)
    status = page.get_by_role("status").filter(has_text="Live")
    expect(status).to_have_text("Live: written 2 s ago")
    assert status.get_attribute("aria-live") == "off"
    pass_time(page, 2)
    expect(status).to_have_text("Live: written 4 s ago")
    picture(page, "fresh")
    page.evaluate("scrollTo(0, 300)")
    page_file(3, replace(LIVE, written=WRITTEN + 5))
    pass_time(page, 4)
    expect_reload(page)
    expect(status).to_contain_text("Live: written")
    assert page.evaluate("scrollY") == 300
    assert page.evaluate("history.state") is None
    mark(page)
    page_file(4, None)
    pass_time(page, 60)
    expect_reload(page)
    expect(page.get_by_text("Live:")).to_have_count(0)
    mark(page)
    pass_time(page, 10_000)
    assert is_first(page), "a page of an evaluation that has ended has no timer"


def store_checkpoint(run, number, *names):
    """`names`: of tests that all fail for one cause."""
    home = {"file_path": f"test_checkpoint_{number}.py", "checkpoint": f"checkpoint_{number}"}
    tests = [case(name, "failed", failure_message=f"E   cause {number}", **home) for name in names]
    stored = result(tests, problem_name="words", checkpoint_name=f"checkpoint_{number}")
    stored.save(run / f"words/checkpoint_{number}/evaluation.json")


def test_folds_and_focus_are_kept_by_name_and_restored_when_they_are_drawn(tmp_path, open_live):
    run, file, many = tmp_path / "monday", tmp_path / "report.html", [f"test_{number}" for number in range(9)]

    def write(written):
        live = replace(LIVE, written=written)
        write_report([RunResults("monday", run)], [PassPolicy.ALL_CASES], file, live=live)

    for number in range(1, 13):
        (run / f"words/checkpoint_{number}/snapshot").mkdir(parents=True)
    for number in (1, 3, 12):
        store_checkpoint(run, number, *many)
    write(WRITTEN)
    page = open_live(file, height=400)

    def fold(number):
        return page.locator(f"details[data-checkpoint=checkpoint_{number}]")

    fold(3).locator("summary").first.click()
    fold(12).locator("summary").first.click()
    fold(12).locator(".cause > summary").click()
    link = fold(12).get_by_role("link", name="test_7")
    link.focus()
    link.evaluate("element => element.scrollIntoView({block: 'center'})")
    top = fold(12).locator(".cause").bounding_box()["y"]
    store_checkpoint(run, 2, *many, "test_last")
    write(WRITTEN + 20)
    pass_time(page, 20)
    expect_reload(page)
    expect(fold(12).locator(".cause")).to_have_attribute("open", "")
    expect(fold(12).get_by_role("link", name="test_7")).to_be_focused()
    assert abs(fold(12).locator(".cause").bounding_box()["y"] - top) < 2
    expect(fold(1).locator(".cause")).not_to_have_attribute("open", "")
    expect(fold(2).locator(".cause")).not_to_have_attribute("open", "")
    expect(fold(2)).to_have_attribute("open", "")
    expect(fold(3)).not_to_have_attribute("open", "")
    page.evaluate("scrollTo(0, 0)")
    fold(3).evaluate("element => { element.open = true; }")
    expect(fold(3).locator(".cause")).to_be_visible()
    assert page.evaluate("scrollY") == 0, "a reader who has scrolled is left alone"


TEST = "#view=timeline&problem=words&test=test_checkpoint_1.py%3A%3Atest_1&checkpoint=checkpoint_1"


@pytest.mark.parametrize(
    ("fragment", "begin", "words", "end"),
    [
        pytest.param(
            TEST,
            lambda page: page.get_by_role("dialog").wait_for(),
            "when the test is closed",
            close_test,
            id="open test",
        ),
        pytest.param(
            "",
            lambda page: page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))"),
            "when no text is selected",
            lambda page: page.evaluate("getSelection().removeAllRanges()"),
            id="selected text",
        ),
        pytest.param(
            "#view=timeline",
            lambda page: page.get_by_label("Name").press_sequentially("t"),
            "when nothing is typed",
            lambda page: pass_time(page, 10),
            id="typed text",
        ),
    ],
)
def test_it_waits_while_the_reader_does_something(page_file, open_live, fragment, begin, words, end):
    page = open_live(page_file(2), fragment, age=29)
    pass_time(page, 28)
    begin(page)
    pass_time(page, 8)
    expect(page.locator(".live")).to_contain_text(words)
    assert is_first(page)
    page_file(3, replace(LIVE, written=WRITTEN + 60))
    end(page)
    pass_time(page, 1)
    expect_reload(page)
    if words == "when nothing is typed":
        expect(page.get_by_label("Name")).to_be_focused()
        expect(page.get_by_label("Name")).to_have_value("t")


def test_a_hidden_page_is_loaded_when_it_is_looked_at(page_file, open_live):
    page = open_live(page_file(2))
    hide = "value => Object.defineProperty(document, 'hidden', {configurable: true, get: () => value})"
    page.evaluate(hide, True)
    pass_time(page, 60)
    assert is_first(page)
    page.evaluate(hide, False)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect_reload(page)


def test_a_writer_that_is_gone_is_said_and_asked_less_often(page_file, open_live, picture):
    page = open_live(page_file(2), age=180)
    expect(page.locator(".live")).to_have_text("Not updated for 3 min: the evaluation may have ended or been stopped")
    picture(page, "gone")
    pass_time(page, 58)
    assert is_first(page)
    pass_time(page, 3)
    expect_reload(page)


def test_a_run_without_any_result_says_so(tmp_path, open_live):
    (tmp_path / "monday").mkdir()
    write_report(
        [RunResults("monday", tmp_path / "monday")], [PassPolicy.ALL_CASES], tmp_path / "report.html", live=LIVE
    )
    page = open_live(tmp_path / "report.html")
    expect(page.get_by_text("Nothing is evaluated yet")).to_be_visible()


@pytest.fixture
def evaluation(sums, start, fresh_cache, staying):
    """A page of a run, of which the first checkpoint does not pass and the others stay until they are let go."""
    mains = {name: sums.main(name, first=staying.first) for name in sums.checkpoints}
    run = sums.run("today", mains={**mains, "checkpoint_1": sums.main("wrong", kind="wrong")})
    file = sums.folder / "report.html"
    evaluator = start(fresh_cache("cache"), run, "-j", 3, "--report", file)
    evaluator.until(file.as_uri())
    evaluator.until("NOT PASSED today/sums/checkpoint_1")
    return evaluator, file


def states(file):
    return [checkpoint["state"] for checkpoint in data_of(file)["runs"][0]["problems"][0]["checkpoints"]]


@pytest.mark.long
def test_a_page_of_a_real_evaluation_grows_until_its_end(evaluation, staying, visit, picture):
    evaluator, file = evaluation
    assert f"written, and kept current until the end: {file.as_uri()}" in evaluator.said
    page = visit(file)
    expect(page.get_by_text("Live: written")).to_be_visible()
    expect(page.get_by_role("heading", name="checkpoint_1: ")).to_contain_text("failed")
    assert states(file) == ["evaluated", "not_evaluated", "not_evaluated"]
    expect(page.locator(".headline")).to_contain_text("0 of 3 checkpoints passed; 2 not evaluated yet")
    staying.let_go(staying.arrived(2)[0])
    expect(page.locator(".live").last).to_have_text(
        re.compile("^Running: today/sums/checkpoint_[23] .*1 of . tests done")
    )
    expect(page.locator(".stacked .reason").filter(has_text="running: ")).to_have_count(2)
    assert not severe_violations(page)
    picture(page, "evaluation")
    with letting_go(staying):
        assert evaluator.end() == 1, evaluator.said
    assert data_of(file)["live"] is None
    assert states(file) == ["evaluated"] * 3
    expect(page.get_by_text("not evaluated yet")).to_have_count(0)
    expect(page.get_by_text("Live: written")).to_have_count(0)


def test_an_interrupted_evaluation_leaves_a_page_that_is_not_live(evaluation):
    evaluator, file = evaluation
    evaluator.process.send_signal(signal.SIGINT)
    evaluator.until("Ctrl-C again stops now")
    evaluator.process.send_signal(signal.SIGINT)
    assert evaluator.end() == 130, evaluator.said
    assert data_of(file)["live"] is None
    assert states(file) == ["evaluated", "not_evaluated", "not_evaluated"]
