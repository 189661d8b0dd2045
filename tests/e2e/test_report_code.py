"""The report's view of the code in a real browser: diffs of tests that broke, and trends over checkpoints."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import scrolls_sideways, severe_violations, visit_report
from tests.factories import case
from tests.marks import in_long
from tests.reporting.html_runs import MEASURED, quality, store, store_snapshots

pytestmark = pytest.mark.e2e

TIMELINE, CHARTS = "#view=timeline", "#view=charts"
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J\u202e"
FIRST = {"main.py": "".join(f"line_{n} = {n}\n" for n in range(40)), "notes.txt": "a\n"}
SECOND = {**FIRST, "main.py": FIRST["main.py"].replace("line_20 = 20\n", f"line_20 = 21  # {HOSTILE}\nmore = 1\n")}
THIRD = {**SECOND, f"{HOSTILE.replace('/', '')}.py": "x = 1\n", "data.bin": b"\0\1"}
BREAKS = [[case("a"), case("b")], [case("a", "failed"), case("b")], [case("a", "failed"), case("b", "failed")]]


@pytest.fixture
def opened(tmp_path, visit):
    """`opened(BREAKS, [files, ...], "#view=charts", width=390)`"""

    def make(checkpoints, snapshots, fragment, **options):
        store_snapshots(store(tmp_path / "run", checkpoints), snapshots)
        return visit_report(visit, tmp_path / "run", fragment, **options)

    return make


def open_test(page, name, checkpoint):
    page.evaluate(
        "([test, checkpoint]) => slop.go({...slop.address(), test, checkpoint})",
        [f"test_checkpoint_1.py::{name}", checkpoint],
    )
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"at words {checkpoint}").wait_for()
    return dialog


NUMBERS = (
    "rows => rows.map((row) => ['::before', '::after'].map((it) => getComputedStyle(row, it).content.slice(1, -1)))"
)
INNER_SCROLL = "box => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]"


@pytest.mark.parametrize("width", [1400, *in_long(390)])
def test_a_test_that_broke_shows_the_code_that_changed(opened, picture, width):
    page = opened(BREAKS, [FIRST, SECOND, THIRD], TIMELINE, width=width)
    dialog = open_test(page, "a", "checkpoint_2")
    expect(dialog.get_by_role("heading", name="Code changed from checkpoint_1 to checkpoint_2")).to_be_visible()
    expect(dialog.get_by_text("- only at checkpoint_1, + only at checkpoint_2")).to_be_visible()
    expect(dialog.locator(".code-diff summary")).to_have_text("main.py changed, 2 lines added, 1 line removed")
    region = dialog.get_by_role("region", name="Changes of main.py")
    shown = region.inner_text().split("\n")
    hostile = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert shown == [
        "@@ -18,7 +18,8 @@",
        *(f" line_{n} = {n}" for n in (17, 18, 19)),
        "-line_20 = 20",
        f"+line_20 = 21  # {hostile}",
        "+more = 1",
        *(f" line_{n} = {n}" for n in (21, 22, 23)),
    ]
    assert region.locator(".row").evaluate_all(NUMBERS)[:7] == [
        ["", ""], ["18", "18"], ["19", "19"], ["20", "20"], ["21", ""], ["", "21"], ["", "22"]
    ]  # fmt: skip
    assert region.locator("img").count() == 0
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    picture(page, f"diff-{width}")


def test_a_long_diff_is_as_high_as_its_lines_and_wraps_on_a_phone(opened, picture):
    long = {"main.py": "".join(f"name_{n} = '{'long ' * 40}'\n" for n in range(150))}
    page = opened(BREAKS, [FIRST, long, long], TIMELINE, width=390)
    dialog = open_test(page, "a", "checkpoint_2")
    region = dialog.get_by_role("region", name="Changes of main.py")
    expect(region.locator(".row")).to_have_count(80)
    dialog.get_by_role("button", name="Show all 191 lines").click()
    expect(region.locator(".row")).to_have_count(191)
    expect(region).to_be_focused()
    assert region.evaluate(INNER_SCROLL) == [0, 0]
    assert region.bounding_box()["x"] >= 16
    assert not scrolls_sideways(page)
    picture(page, "long-diff")


def test_hunks_that_share_words_with_the_failure_come_first(opened):
    """Words of the reason and of the command, in changed lines; others stay in the order of the file."""
    code = [f"line_{n} = {n}\n" for n in range(60)]
    changed = {1: "alpha", 20: "unit_title", 40: "TITLE"}
    after = "".join(f"{changed[n]} = 0\n" if n in changed else line for n, line in enumerate(code))
    fails = case("a", "failed", failure_message="E   exit status 1: no title, no unit", calls=["python main.py"])
    page = opened(
        [[case("a")], [fails], [fails]], [{"main.py": "".join(code)}, {"main.py": after}, {"main.py": after}], TIMELINE
    )
    region = open_test(page, "a", "checkpoint_2").get_by_role("region", name="Changes of main.py")
    assert region.locator(".row.where").all_inner_texts() == [
        "@@ -18,7 +18,7 @@ shares with the failure: title, unit",
        "@@ -38,7 +38,7 @@ shares with the failure: title",
        "@@ -1,5 +1,5 @@",
    ]


def test_only_a_test_that_broke_has_a_diff_also_where_it_still_fails(opened):
    page = opened(BREAKS, [FIRST, SECOND, THIRD], TIMELINE)
    assert open_test(page, "b", "checkpoint_2").locator(".code-diff").count() == 0
    summaries = open_test(page, "b", "checkpoint_3").locator(".code-diff summary")
    expect(summaries).to_have_count(2)
    assert summaries.all_inner_texts()[1] == "data.bin added, binary"
    assert "added, 1 line added, 0 lines removed" in summaries.all_inner_texts()[0]
    dialog = open_test(page, "a", "checkpoint_3")
    expect(dialog.get_by_text("at words checkpoint_3, still failing since it broke at checkpoint_2")).to_be_visible()
    expect(dialog.get_by_role("heading", name="Code changed from checkpoint_1 to checkpoint_2")).to_be_visible()
    expect(dialog.get_by_role("region", name="Changes of main.py")).to_contain_text("-line_20 = 20")
    dialog.get_by_role("link", name="checkpoint_2").first.click()
    expect(dialog.get_by_text("at words checkpoint_2, where it broke")).to_be_visible()


def test_what_is_missing_of_a_diff_is_said(opened):
    many = {f"f{n:03}.py": "1\n" * 600 for n in range(120)}
    page = opened(
        [*BREAKS, [case("a"), case("b")], [case("a", "failed"), case("b")]], [FIRST, None, FIRST, FIRST, many], TIMELINE
    )
    dialog = open_test(page, "a", "checkpoint_2")
    expect(dialog.get_by_text("Not recorded: a snapshot is missing or cannot be read.")).to_be_visible()
    dialog = open_test(page, "a", "checkpoint_5")
    expect(dialog.get_by_text("201 lines left out here.").first).to_be_visible()
    expect(dialog.get_by_text("22 files left out here.")).to_be_visible()
    expect(dialog.locator(".code-diff summary")).to_have_count(100)


@pytest.mark.parametrize("width", [390, *in_long(1400)])
def test_trends_of_the_code_are_beside_the_pass_rates(opened, picture, width):
    large = {**THIRD, "huge.txt": "x" * (2 << 20)}
    tests = [case("a")]
    page = opened([tests] * 5, [FIRST, SECOND, None, THIRD, large], CHARTS, width=width)
    titles = page.get_by_role("heading", level=3).all_inner_texts()
    both = "Tests that passed, by group, and lines of code"
    assert titles[0] == both
    assert titles[3:] == ["Lines added and removed", "Churn: lines added and removed, of the lines before"]
    lines = page.get_by_role("img").first
    assert "Core from 100% to 100%; lines of code from 41 to 43" in lines.get_attribute("aria-label")
    page.get_by_text("* Figures of 1 checkpoint are incomplete").click()
    expect(page.get_by_text("1 file too large to count")).to_be_visible()
    shown = {}
    for title in (both, *titles[3:]):
        card = page.locator(".card", has=page.get_by_role("heading", name=title, exact=True))
        card.get_by_text("Figures as a table").click()
        shown[title] = [row.split("\t") for row in card.locator("tbody tr").all_inner_texts()]
    assert shown[both] == [
        ["checkpoint_1", "100%", "41"],
        ["checkpoint_2", "100%", "42"],
        ["checkpoint_3", "100%", "–"],
        ["checkpoint_4", "100%", "43"],
        ["checkpoint_5 *", "100%", "43"],
    ]
    assert shown["Lines added and removed"] == [
        ["checkpoint_1", "41", "0"],
        ["checkpoint_2", "2", "1"],
        ["checkpoint_3", "–", "–"],
        ["checkpoint_4", "–", "–"],
        ["checkpoint_5 *", "0", "0"],
    ]
    assert [row[1] for row in shown[titles[4]]] == ["–", "7.3%", "–", "–", "0.0%"]
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    lines.scroll_into_view_if_needed()
    picture(page, f"trends-{width}", whole=True)


@pytest.mark.parametrize("width", [1400, *in_long(390)])
def test_quality_over_checkpoints_is_shown_with_its_gaps(opened, tmp_path, picture, width):
    for number in (1, 3):
        folder = tmp_path / f"run/words/checkpoint_{number}"
        folder.mkdir(parents=True)
        quality(implementation=MEASURED.model_copy(update={"verbosity": number / 10})).save(folder)
    page = opened([[case("a")]] * 3, [FIRST, SECOND, THIRD], CHARTS, width=width)
    titles = page.get_by_role("heading", level=3).all_inner_texts()
    assert titles[5:] == ["Verbosity and erosion", "Source lines"]
    chart = page.get_by_role("img").nth(5)
    assert "verbosity from 10.0% to 30.0%; erosion from 50.0% to 50.0%" in chart.get_attribute("aria-label")
    card = page.locator(".card", has=page.get_by_role("heading", name="Verbosity and erosion", exact=True))
    card.get_by_text("Figures as a table").click()
    assert [row.split("\t") for row in card.locator("tbody tr").all_inner_texts()] == [
        ["checkpoint_1", "10.0%", "50.0%", "0.0%"],
        ["checkpoint_2", "–", "–", "–"],
        ["checkpoint_3", "30.0%", "50.0%", "0.0%"],
    ]
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    chart.scroll_into_view_if_needed()
    picture(page, f"quality-{width}", whole=True)


def test_few_checkpoints_have_figures_and_no_charts(opened):
    page = opened([[case("a")]] * 2, [FIRST, SECOND], CHARTS)
    figures = page.get_by_role("region", name="Figures: Tests that passed, by group, and lines of code")
    expect(figures.get_by_role("row").last).to_have_text("checkpoint_2100%42")
    assert page.get_by_role("img").count() == 0


def test_without_snapshots_the_code_is_not_recorded(opened):
    page = opened([[case("a")]] * 3, [None] * 3, CHARTS)
    expect(page.get_by_text("Not recorded: no snapshot lies beside these results.")).to_be_visible()
    assert page.get_by_role("img").count() == 3
