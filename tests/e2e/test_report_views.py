"""The report in a real browser, of results written by hand: what no example shows."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from slop_code.verification.regrade.regrade_record import RegradedCheckpoint, RegradedTest, RegradeRecord, TestState
from tests.e2e.browser import address, visit_report
from tests.factories import case
from tests.reporting.html_runs import store

pytestmark = pytest.mark.e2e

TIMELINE = "#view=timeline&result=any"


def later(number, name, status="passed"):
    return case(name, status, checkpoint=f"checkpoint_{number}", file_path=f"test_checkpoint_{number}.py")


@pytest.fixture
def written(tmp_path, visit):
    """`written({"words": [...]}, "#fragment", width=390)`: a page of one run, opened."""

    def make(problems, fragment="", **options):
        for problem, checkpoints in problems.items():
            store(tmp_path / "run", checkpoints, problem)
        return visit_report(visit, tmp_path / "run", fragment, **options)

    return make


def names(page):
    rows = page.get_by_role("grid").locator("tbody").get_by_role("rowheader")
    return rows.evaluate_all("all => all.map((row) => row.title)")


def open_row(page, number=0):
    page.get_by_role("grid").locator("tbody").get_by_role("rowheader").nth(number).click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


BREAKS = [[case("a")], [case("a"), later(2, "b", "failed")], [case("a", "failed"), later(2, "b", "failed")]]


def test_regrades_are_named_with_their_tests(written, tmp_path):
    """Names and reasons of a run folder are hostile text."""
    old, new = (TestState(status=status, group="Core") for status in ("passed", "failed"))
    hostile = "test_x.py::<img src=x onerror=alert(1)>"
    changed = RegradedTest(test=hostile, kinds=["changed", "status"], why=["its code changed"], old=old, new=new)
    entry = RegradedCheckpoint(problem="words", checkpoint="checkpoint_1", outcome="evaluated again", tests=[changed])
    record = RegradeRecord(label="v1", finished=True, slop_code="0", checkpoints=[entry])
    record.save(tmp_path / "run/.slop-code/earlier/v1")
    page = written({"words": BREAKS})
    note = "regraded: label v1, 1 test changed in 1 checkpoint"
    assert page.locator(".headline p").all_inner_texts()[-1] == note
    page.get_by_text("regraded: label v1, evaluated again, 1 test changed", exact=True).click()
    text = f"{hostile}: test changed, another status, passed (Core) before, failed (Core) now; its code changed"
    expect(page.get_by_role("row").get_by_role("listitem")).to_have_text([text])


@pytest.mark.long
def test_a_new_test_that_fails_did_not_break(written):
    page = written({"words": BREAKS})
    assert page.locator(".checkpoint h3").all_inner_texts() == [
        "checkpoint_2: 1 new test failed",
        "checkpoint_3: 1 broke, 1 still failing",
    ]
    page.get_by_role("link", name="1 test broke here: show them").click()
    expect(page.locator("#left")).to_contain_text("1 of 2 tests shown")
    assert names(page) == ["test_checkpoint_1.py::a"]
    page.go_back()
    page.get_by_role("link", name="checkpoint_2 in the timeline").click()
    expect(page.locator("#left")).to_contain_text("1 of 2 tests shown")
    assert names(page) == ["test_checkpoint_2.py::b"]


@pytest.mark.long
def test_of_several_problems_the_headline_counts_them(written):
    page = written({"larder": [[case("a")]], "words": BREAKS})
    (headline,) = page.locator(".headline p").all_inner_texts()
    assert headline == (
        "NOT PASSED (all-cases): 2 of 4 checkpoints passed; not passed in 1 of 2 problems; "
        "old tests broke in 1 of 2 problems"
    )


OWN = """    def test():
>       assert found == ["a", "b"]
E       AssertionError: ran: x
E       assert ['a', 'c'] == ['a', 'b']
E
E         At index 1 diff: 'c' != 'b'
E
E         Full diff: (-: missing in left side, +: extra in left side)
E           [
E               'a',
E         -     'b',
E         ?      ^
E         +     'c',
E         ?      ^
E           ]

test_x.py:3: AssertionError"""
COMPARED = """E       Failed: ran: main.py
E
E       expected: exit status 0
E       same
E         Leek
E
E       found: exit status 1
E       same
E         leek

test_x.py:3: Failed"""
RIGHT = "- expected (on the right of the comparison), + found (on the left)"
SPLITS = {
    "own": (OWN, [" [", "     'a',", "-    'b',", "?     ^", "+    'c',", "?     ^", " ]"], RIGHT),
    "text": ("E   assert 'a\\nb' == 'a\\nc'\nE     \nE       a\nE     - c\nE     + b", [" a", "-c", "+b"], RIGHT),
    "compared": (COMPARED, ["-exit status 0", "+exit status 1", " same", "-  Leek", "+  leek"], "- expected, + found"),
    "found first": ("E   got: 1\nE   expected: 2", ["-2", "+1"], "- expected, + found"),
    "prefixed": ("E   AssertionError: expected stdout: a\nE   found stdout: b", ["-a", "+b"], "- expected, + found"),
    "values": ("E   assert 1 == 2\nE    +  where 1 = f()", ["-2", "+1"], RIGHT),
    "the last": ("E   assert 1 == 2\n\nduring that\n\nE   assert 3 == 4", ["-4", "+3"], RIGHT),
    "cut": (["E   assert 1 == 2", 9, "E   assert 3 == 4"], ["-4", "+3"], RIGHT),
    "not ==": ("E   assert 1 in [2]", None, None),
    "twice ==": ("E   assert '1 == 1' == 2", None, None),
    "inside": ("E   assert (1 == 2 or False)", None, None),
    "negated": ("E   assert not 1 == 1", None, None),
    "one part": ("E   expected: 1", None, None),
    "no difference": ("E   expected: 1\nE   found: 1", None, None),
    "no mark": ("assert 1 == 2", None, None),
    "nothing": ("", None, None),
}  # fmt: skip


def test_expected_and_actual_values_are_compared(written):
    page = written({"words": BREAKS})
    for name, (text, rows, note) in SPLITS.items():
        found = page.evaluate("text => slop.expected.split(text)", text)
        shown = found and ["".join(row) for row in found["rows"]]
        assert (name, shown, found and found["note"]) == (name, rows, note)


def test_the_failed_comparison_comes_first(written, picture):
    plain = {"calls": ["main.py"], "output": "printed"}
    tests = [case("a", "failed", failure_message=COMPARED, **plain), case("b", "failed", failure_message="no", **plain)]
    page = written({"words": [tests]}, TIMELINE)
    dialog = open_row(page)
    both = ["Expected and found", "What was run", "Output of pytest", "Captured output"]
    assert dialog.get_by_role("heading", level=3).all_inner_texts()[:4] == both
    lines = dialog.get_by_role("region", name="Expected and found").locator("span")
    looks = lines.evaluate_all("all => all.map((e) => [e.innerText, getComputedStyle(e).color])")
    assert [text for text, _ in looks] == ["- exit status 0", "+ exit status 1", "  same", "-   Leek", "+   leek"]
    assert len({colour for _, colour in looks}) == 3
    picture(page, "expected")
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    dialog = open_row(page, 1)
    assert dialog.get_by_role("heading", level=3).all_inner_texts()[:2] == ["What was run", "Output of pytest"]
    expect(dialog.get_by_role("region", name="Output of pytest")).to_have_text("no")


@pytest.mark.long
def test_tests_are_filtered_by_status(written):
    first = [case("p"), case("f", "failed"), case("e", "error"), case("s", "skipped")]
    second = [case("p", "failed"), case("f"), case("e", "error"), case("s", "skipped"), later(2, "n")]
    page = written({"words": [first, second]}, TIMELINE)
    result = page.get_by_label("Result")

    def shown(label):
        result.select_option(label)
        return [name.partition("::")[2] for name in names(page)]

    assert [shown(f"{label} at the end") for label in ("failed", "had an error", "was skipped")] == [
        ["p"],
        ["e"],
        ["s"],
    ]
    assert "result=skipped" in address(page)
    page.locator("#filter-at").select_option("checkpoint_1")
    assert shown("failed there") == ["f"]
    assert shown("had an error there") == ["e"]
    assert shown("did not pass there") == ["f", "e", "s"]
    assert shown("ran there, never passed") == ["e", "s"]
    assert shown("ran there") == ["p", "f", "e", "s"]
    assert not [text for text in result.locator("option").all_inner_texts() if "end" in text or "ever broke" in text]
    page.locator("#filter-at").select_option("any checkpoint")
    assert result.locator("option").all_inner_texts()[:3] == [
        "not always passed",
        "any result",
        "did not pass at the end",
    ]


@pytest.mark.long
def test_a_test_that_cannot_have_been_there_is_absent(written):
    problems = {"words": [[case("a")], "killed", [case("a"), later(2, "b"), later(3, "c", "failed")]]}
    page = written(problems, TIMELINE)
    cells = page.get_by_role("grid").locator("td.cell")
    said = cells.evaluate_all("all => all.map((cell) => cell.getAttribute('aria-label').split(': ')[1])")
    assert [said[:3], said[3:6], said[6:]] == [
        ["new, passed", "no verdict", "still passed"],
        ["not there", "no verdict", "passed; there is nothing before to compare with"],
        ["not there", "not there", "new, failed"],
    ]
    legend = page.get_by_role("list", name="What the signs mean").get_by_role("listitem").all_inner_texts()
    assert {re.sub(r"\s+", " ", text).strip() for text in legend} >= {"+× new, failed", "+ new, passed"}


@pytest.mark.long
def test_a_phone_shows_the_reason_of_a_checkpoint_without_a_verdict(written, picture):
    other = later(2, "test_json")
    problems = {"words": [[case("test_json"), case("test_other")], "the box could not be started", [other]]}
    page = written(problems, width=390, height=800)
    for text in ("the box could not be started", "infrastructure failure: the box could not be started"):
        reason = page.get_by_text(text, exact=True).bounding_box()
        assert reason["x"] > 0
        assert reason["x"] + reason["width"] <= 390
    picture(page, "phone")
    page.get_by_role("link", name="Timeline").click()
    expect(page.get_by_text("Every test passed at every checkpoint with a verdict.")).to_be_visible()
    page.get_by_role("button", name="Show all 3").click()
    whole = ["checkpoint_1.py::test_json", "checkpoint_1.py::test_other", "checkpoint_2.py::test_json"]
    assert names(page) == [f"test_{name}" for name in whole]


def focused(page):
    return page.evaluate("document.activeElement.innerText")


@pytest.mark.long
def test_the_keyboard_is_never_lost(written):
    page = written({"larder": [[case("a")]], "words": BREAKS})
    whole = page.title()
    page.get_by_text("Tests of each checkpoint, by group").click()
    page.get_by_role("link", name="1 test broke here: show them").press("Enter")
    expect(page.locator("#left")).to_have_text("1 of 2 tests shown")
    assert focused(page) == "Timeline: words run"
    assert page.title() == f"Timeline: words (run) – {whole}"
    expect(page.get_by_role("status")).to_have_text("1 of 2 tests shown")
    page.get_by_role("button", name="Clear").press("Enter")
    assert focused(page) == "Clear"
    page.get_by_role("link", name="1 test broke at checkpoint_3").press("Enter")
    assert focused(page) == "Timeline: words run"
    page.get_by_label("Problem").focus()
    page.get_by_label("Problem").select_option("larder")
    assert page.evaluate("document.activeElement.id") == "problem"
    page.get_by_role("link", name="Charts").press("Enter")
    assert focused(page).startswith("Charts: larder")
    assert page.title().startswith("Charts: larder")
    expect(page.get_by_role("status")).to_have_text("")
    page.get_by_role("link", name="Overview").press("Enter")
    assert (focused(page), page.title()) == ("run", whole)


@pytest.mark.long
def test_the_tab_that_is_shown_is_seen_in_forced_colours(written):
    page = written({"words": BREAKS}, forced_colors="active")
    lines = page.locator("#views a").evaluate_all("all => all.map((e) => getComputedStyle(e).borderBottomColor)")
    assert lines[0] not in lines[1:]


@pytest.mark.long
def test_only_a_whole_share_is_100_percent(written):
    many = [case(f"{number}", "passed" if number else "failed") for number in range(2001)]
    page = written({"words": [[case("a")], [case("a")], many]}, "#view=charts")
    assert "Core from 100% to 99.9%" in page.get_by_role("img").first.get_attribute("aria-label")


@pytest.mark.long
def test_tests_whose_names_look_alike(written):
    tests = [case(name, "failed", failure_message=f"of {number}") for number, name in enumerate(["a\nb", r"a\nb"])]
    page = written({"words": [tests]}, TIMELINE)
    for number, word in enumerate([r"$'test_checkpoint_1.py::a\x0ab'", r"'test_checkpoint_1.py::a\nb'"]):
        dialog = open_row(page, number)
        expect(dialog.get_by_role("region", name="Output of pytest")).to_have_text(f"of {number}")
        assert dialog.get_by_role("region", name="Run this test again").inner_text().endswith(f"checkpoint_1 {word}")
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
