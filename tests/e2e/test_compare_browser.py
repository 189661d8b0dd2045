"""The comparison in a real browser, as people use it: with a mouse, a keyboard, a narrow screen, in the dark."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from slop_code.comparison.diff import compare_sides
from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.html.compare_page import write_comparison
from tests.e2e.browser import scrolls_sideways, severe_violations
from tests.factories import write_run
from tests.marks import in_long

pytestmark = pytest.mark.e2e

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\x1b[2J\u202e"
NAMES = ["test_steady", "test_better", "test_worse", f"test_odd[{HOSTILE}]", "test_new"]
MANY = 300


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Two runs and a third; texts that would be markup, scripts or commands elsewhere."""
    folder = tmp_path_factory.mktemp("compare")
    message = (
        "    def test():\n>       assert 1 == 2\nE       assert 1 == 2\nE         - one\nE         + two\n" + HOSTILE
    )
    base = write_run(folder / "base", {"words": ["+-++", "++", "+"]}, names=NAMES, text="of the base")
    other = write_run(folder / "other", {"words": ["++--+", "+s", "!"]}, names=NAMES, text=message)
    again = write_run(folder / "again", {"words": ["+--+"]}, names=NAMES, text="told later", submission=str(base))
    return written(folder, base, other, again)


@pytest.fixture(scope="module")
def samples_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for side, marks in (("weak", "--+"), ("strong", "+++")):
        for number, mark in enumerate(marks):
            write_run(folder / side / f"run_{number}", {"words": [mark * MANY]}, text=f"of {side} {number}")
    return written(folder, folder / "weak", folder / "strong")


def written(folder, *sides):
    path = folder / "compare.html"
    write_comparison(*compare_sides(sides, PassPolicy.ALL_CASES, samples=True), path)
    return path


@pytest.fixture
def opened(visit):
    """A page whose tests are drawn."""

    def go(file, fragment="", **options):
        page = visit(file, fragment, **options)
        rows(page).first.wait_for(state="attached")
        return page

    return go


def rows(page):
    return page.get_by_role("region", name="Tests that differ").locator("tbody").get_by_role("row")


def names(page):
    return [text.partition("::")[2] for text in rows(page).get_by_role("rowheader").all_inner_texts()]


def open_test(page, name):
    page.get_by_role("link", name=name).click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


def test_the_comparison_shows_its_verdict_and_counts(page_file, opened, picture):
    page = opened(page_file)
    assert page.get_by_text("other passes 1 checkpoint fewer than base (all-cases): gained 1 test, lost 3").is_visible()
    first = page.get_by_role("region", name="Checkpoints").get_by_role("row").filter(has_text="checkpoint_1")
    assert "not passed" in first.inner_text()
    assert names(page)[0] == "test_worse"
    assert names(page)[-1] == "test_better"
    assert page.evaluate("window.pwned") is None
    picture(page, "overview", whole=True)


def test_the_policy_recolours_without_a_reload(page_file, opened, picture):
    page = opened(page_file)
    page.evaluate("window.kept = 1")
    verdict = "other passes as many checkpoints as base (any-case): gained 1 test, lost 3"
    page.get_by_label("Policy").select_option("any-case")
    page.get_by_text(verdict).wait_for()
    first = page.get_by_role("region", name="Checkpoints").get_by_role("row").filter(has_text="checkpoint_1")
    assert "not passed" not in first.inner_text()
    picture(page, "policy", whole=True)
    page.get_by_role("link", name="gained at words checkpoint_1").click()
    page.get_by_text("1 of 5 tests shown").first.wait_for()
    assert page.get_by_text(verdict).is_visible()
    assert page.evaluate("window.kept") == 1
    page.reload()
    page.get_by_text(verdict).wait_for()
    assert page.get_by_label("Policy").input_value() == "any-case"


@pytest.mark.parametrize("width", [1400, *in_long(390)])
def test_the_side_with_texts_has_the_whole_width(page_file, opened, picture, width):
    page = opened(page_file, width=width)
    dialog = open_test(page, "test_worse")
    sides = dialog.locator(".sides > section")
    boxes = [side.bounding_box() for side in sides.all()]
    assert boxes[1]["width"] == boxes[0]["width"] > 0.85 * dialog.bounding_box()["width"]
    assert boxes[0]["height"] < 120
    assert "passed" in sides.first.inner_text()
    picture(page, f"one-side-{width}")


def test_a_count_leads_to_its_tests(page_file, opened):
    page = opened(page_file)
    page.get_by_role("link", name="gained at words checkpoint_1").click()
    page.get_by_text("1 of 5 tests shown").first.wait_for()
    assert names(page) == ["test_better"]
    page.get_by_label("Change").select_option("added")
    page.get_by_text("1 of 5 tests shown").first.wait_for()
    assert names(page) == ["test_new"]
    page.get_by_role("button", name="Clear").click()
    assert len(names(page)) == 4
    page.go_back()
    page.get_by_text("1 of 5 tests shown").first.wait_for()
    assert names(page) == ["test_new"]


@pytest.mark.long
def test_text_filter_by_keyboard(page_file, opened):
    page = opened(page_file)
    page.keyboard.press("/")
    page.keyboard.type("worse")
    page.get_by_text("1 of 5 tests shown").first.wait_for()
    assert names(page) == ["test_worse"]
    assert page.get_by_label("Name").evaluate("e => e === document.activeElement")
    page.get_by_label("Name").fill("no such test")
    assert page.get_by_text("No tests match.").is_visible()
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_text("4 of 5 tests shown").first.wait_for()


def test_both_sides_of_a_test(page_file, opened, picture):
    page = opened(page_file)
    dialog = open_test(page, "test_odd")
    assert dialog.get_by_role("heading", level=3).all_inner_texts() == ["base", "other"]
    dialog.get_by_text("Output of pytest").click()
    failure = dialog.get_by_role("region", name="Output of pytest: other")
    assert "</script><script>window.pwned=1</script>" in failure.inner_text()
    assert failure.locator(".less").inner_text() == "E         - one"
    both = dialog.get_by_role("region", name="Expected and found: other")
    assert both.locator("span").all_inner_texts() == ["- one", "+ two"]
    assert "\x1b" not in dialog.inner_text()
    assert page.evaluate("window.pwned") is None
    assert "slop-code show" in dialog.get_by_role("region", name="Print all of other").inner_text()
    picture(page, "detail")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.wait_for_url(lambda url: "test=" not in url)


@pytest.mark.long
def test_a_count_takes_the_keyboard_along(page_file, opened):
    page = opened(page_file)
    assert page.title().startswith("base → other – Comparison: ")
    page.get_by_role("link", name="gained at words checkpoint_1").press("Enter")
    page.get_by_text("1 of 5 tests shown").first.wait_for()
    assert page.evaluate("document.activeElement.innerText") == "Tests that differ"
    page.get_by_label("Change").focus()
    page.get_by_label("Change").select_option("lost")
    assert page.evaluate("document.activeElement.id") == "filter-change"


@pytest.mark.long
def test_arrows_move_through_the_tests(page_file, opened):
    page = opened(page_file)
    rows(page).get_by_role("link").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert "test_odd" in dialog.get_by_role("heading", level=2).inner_text()


@pytest.mark.long
def test_a_link_shows_the_same(page_file, opened):
    page = opened(page_file)
    page.get_by_label("Change").select_option("lost")
    open_test(page, "test_worse")
    fragment = page.evaluate("location.hash")
    named = {"of": ["words"], "checkpoint": ["checkpoint_1"], "test": ["test_checkpoint_1.py::test_worse"]}
    assert parse_qs(fragment[1:]) == {"change": ["lost"], **named}
    fresh = opened(page_file, fragment)
    fresh.get_by_role("dialog").wait_for()
    assert "test_worse" in fresh.get_by_role("dialog").get_by_role("heading", level=2).inner_text()
    fresh.keyboard.press("Escape")
    assert len(names(fresh)) == 3
    fresh.reload()
    rows(fresh).first.wait_for()
    assert len(names(fresh)) == 3


@pytest.mark.long
def test_another_pair_of_runs_can_be_chosen(page_file, opened, picture):
    page = opened(page_file)
    page.get_by_label("Pair").select_option("base → again")
    page.get_by_role("heading", name="base → again").wait_for()
    assert names(page) == ["test_worse"]
    assert "flaky" in rows(page).first.inner_text()
    picture(page, "flaky", whole=True)
    assert "told later" in open_test(page, "test_worse").inner_text()


@pytest.mark.long
def test_several_runs_of_a_side_are_counted_together(samples_file, opened, picture):
    page = opened(samples_file)
    assert page.get_by_text("with 3 and 3 runs no p below 0.1 is possible").is_visible()
    assert page.get_by_role("columnheader", name="p (Holm)").is_visible()
    assert 0 < len(names(page)) < MANY  # those that come near are drawn
    rows(page).last.scroll_into_view_if_needed()
    dialog = open_test(page, "test_0")
    assert "1/3 passed" in dialog.inner_text()
    assert "of weak 0" in dialog.inner_text()
    picture(page, "samples")


@pytest.mark.parametrize("scheme", ["light", *in_long("dark")])
@pytest.mark.parametrize("view", ["overview", "detail"])
def test_axe_finds_no_serious_violation(page_file, opened, picture, scheme, view):
    page = opened(page_file, color_scheme=scheme)
    if view == "detail":
        open_test(page, "test_odd")
    assert severe_violations(page) == []
    picture(page, f"{view}-{scheme}")


@pytest.mark.long
def test_the_switch_makes_it_dark(page_file, opened):
    page = opened(page_file, color_scheme="light")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_label("Theme").select_option("dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


def test_a_phone_shows_both_sides_of_each_row_at_once(page_file, opened, picture):
    page = opened(page_file, width=390)
    for table in ("Checkpoints", "Tests that differ"):
        region = page.get_by_role("region", name=table)
        assert region.evaluate("box => box.scrollWidth <= box.clientWidth")
        row = region.get_by_role("row").filter(has=page.get_by_role("cell")).first
        shown = [row.get_by_role("cell").locator(f"xpath=self::*[@data-head='{side}']") for side in ("base", "other")]
        boxes = [cell.bounding_box() for cell in shown]
        assert 0 <= boxes[0]["x"] < boxes[1]["x"] < boxes[1]["x"] + boxes[1]["width"] <= 390
        assert boxes[0]["y"] == boxes[1]["y"]
    heights = page.locator("a, button, select, input, summary").evaluate_all(
        "found => found.filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    picture(page, "phone", whole=True)


def test_the_words_are_explained_by_keyboard(page_file, opened, picture):
    page = opened(page_file)
    meaning = page.get_by_text("every test outside the group Regression passed")
    assert not meaning.is_visible()
    page.get_by_label("Theme").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    meaning.wait_for()
    assert page.get_by_text("chance that at least one of k runs of the agent solves a checkpoint").is_visible()
    assert severe_violations(page) == []
    picture(page, "words")


@pytest.mark.long
@pytest.mark.parametrize("view", ["overview", "detail"])
def test_a_narrow_screen_never_scrolls_sideways(page_file, opened, picture, view):
    page = opened(page_file, width=360)
    if view == "detail":
        open_test(page, "test_odd")
    assert not scrolls_sideways(page)
    picture(page, f"{view}-narrow", whole=view == "overview")
