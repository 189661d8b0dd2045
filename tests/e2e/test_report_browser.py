"""The report in a real browser, as people use it: with a mouse, a keyboard, a narrow screen, in the dark."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from benchmarks.big_run import write_big_run
from tests.command import slop_code
from tests.e2e.browser import address, scrolls_sideways, severe_violations
from tests.factories import write_run
from tests.marks import in_long

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPRESSION = "core == 1 and regression >= 80%"
HEADLINE = (
    "NOT PASSED (all-cases): 2 of 5 checkpoints passed; not passed in 1 of 2 problems; "
    "old tests broke in 1 of 2 problems; 1 without a verdict"
)
OPEN = "#open=drifting"
LARDER = "#view=timeline&run=drifting&problem=larder"
VIEWS = {
    "overview": OPEN,
    "timeline": LARDER,
    "charts": "#view=charts&run=drifting&problem=larder",
    "detail": LARDER,
}


def printed(*arguments, cwd, statuses=(0,)):
    done = slop_code("-p", EXAMPLES / "problems", *arguments, cwd=cwd)
    assert done.returncode in statuses, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs_folder(cache, need_bubblewrap, tmp_path_factory):
    """Two runs. One is evaluated, breaks and lacks a snapshot, and the other passes everything."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("report")
    corkboard = EXAMPLES / "problems/corkboard/solutions/checkpoint_1"
    shutil.copytree(EXAMPLES / "runs/drifting", folder / "drifting")
    write_run(folder / "steady", {"larder": ["+", "++", "+++"]})
    shutil.copytree(corkboard, folder / "drifting/corkboard/checkpoint_1/snapshot")
    printed("eval", "drifting", cwd=folder, statuses=(3,))
    policies = ["--pass-policy", "all-cases", "--pass-policy", EXPRESSION]
    printed("report", "drifting", "steady", *policies, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def report(runs_folder):
    return runs_folder / "report.html"


@pytest.fixture(scope="module")
def history(runs_folder):
    """The tests of the drifting larder: their results by file and id, at the three checkpoints."""
    found = {}
    for number in range(3):
        document = json.loads((runs_folder / f"drifting/larder/checkpoint_{number + 1}/evaluation.json").read_text())
        for test in document["tests"]:
            found.setdefault(f"{test['file_path']}::{test['id']}", [None] * 3)[number] = test
    return found


def statuses(tests):
    return [test and test["status"] for test in tests]


def broken_at_3(history):
    return {
        name for name, tests in history.items() if statuses(tests)[1:] in (["passed", "failed"], ["passed", "error"])
    }


def not_always_passed(history):
    return {name for name, tests in history.items() if set(statuses(tests)) - {"passed", None}}


def grid(page):
    return page.get_by_role("grid")


def row_of(page, name):
    return grid(page).locator("tbody").get_by_role("rowheader").and_(page.get_by_title(name, exact=True))


def expect_rows(page, expected):
    """These are left, whether they are drawn already or not."""
    expect(page.locator("#left")).to_have_text(re.compile(rf"^{len(expected)} "))
    rows = grid(page).locator("tbody").get_by_role("rowheader")
    if len(expected) <= 40:
        expect(rows).to_have_count(len(expected))
    drawn = set(rows.evaluate_all("all => all.map((row) => row.title)"))
    assert drawn
    assert drawn <= set(expected)


def checkpoint_row(page, run, name):
    region = page.get_by_role("region", name=f"Checkpoints of {run}", exact=True)
    return region.get_by_role("row").filter(has_text=name)


def show_figures(page):
    """The table of the run that is open, which has several problems."""
    page.get_by_text("Tests of each checkpoint, by group").click()
    page.get_by_role("region", name="Checkpoints of drifting", exact=True).wait_for()


def open_first_failure(page):
    page.get_by_label("Result").select_option("never passed")
    grid(page).get_by_role("rowheader").first.wait_for()
    grid(page).locator("tbody").get_by_role("rowheader").first.click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


def test_the_overview_counts_tests_of_each_checkpoint(report, visit, picture):
    page = visit(report, OPEN)
    expect(page.get_by_text(HEADLINE)).to_be_visible()
    expect(page.get_by_text("3 of 3 checkpoints")).to_be_visible()
    show_figures(page)
    third = checkpoint_row(page, "drifting", "checkpoint_3")
    cells = third.get_by_role("cell").all_inner_texts()
    assert [re.search(r"\d+/\d+", cell)[0] for cell in cells[1:5]] == ["7/7", "5/8", "6/6", "39/48"]
    assert "not passed" in cells[0]
    apart = checkpoint_row(page, "drifting", "not evaluated")
    assert "no verdict" in apart.inner_text()
    assert "corkboard/checkpoint_2/snapshot: no snapshot" in apart.inner_text()
    picture(page, "overview", whole=True)


@pytest.mark.long
def test_an_infrastructure_failure_is_coloured_as_neither(report, visit):
    page = visit(report, OPEN)
    show_figures(page)

    def colours(row):
        badge = row.get_by_role("cell").first.locator(".badge")
        mark = page.get_by_role("link", name=row_marks[row])
        return [element.evaluate("e => getComputedStyle(e).color") for element in (badge, mark)]

    row_marks = {
        checkpoint_row(page, "drifting", "not evaluated"): "corkboard checkpoint_2",
        checkpoint_row(page, "drifting", "checkpoint_3"): "larder checkpoint_3",
        checkpoint_row(page, "drifting", "checkpoint_1").last: "larder checkpoint_1",
    }
    for three in zip(*map(colours, row_marks), strict=True):
        assert len(set(three)) == 3


def test_regressions_are_one_click_away(report, visit, history, picture):
    broken = broken_at_3(history)
    assert len(broken) == 5
    page = visit(report, OPEN)
    show_figures(page)
    checkpoint_row(page, "drifting", "checkpoint_3").get_by_role("link", name="tests broke here").click()
    grid(page).wait_for()
    expect_rows(page, broken)
    picture(page, "regressions")
    page.get_by_role("button", name="Clear").click()
    expect_rows(page, not_always_passed(history))
    page.get_by_role("link", name="5 tests broke at checkpoint_3").click()
    expect_rows(page, broken)


@pytest.mark.long
def test_the_timeline_shows_the_change_at_each_checkpoint(report, visit, history, picture):
    page = visit(report, LARDER)
    expect_rows(page, not_always_passed(history))
    page.get_by_role("button", name=f"Show all {len(history)}").click()
    expect_rows(page, history)
    name = sorted(broken_at_3(history))[0]
    row = grid(page).locator("tr", has=page.get_by_title(name, exact=True))
    signs = [cell.get_attribute("aria-label") for cell in row.locator("td.cell").all()]
    assert signs[-1] == "checkpoint_3: broke: failed"
    assert signs[-2] in ("checkpoint_2: still passed", "checkpoint_2: new, passed")
    assert len(set(row.locator("td.cell").all_inner_texts())) > 1  # not by colour alone
    picture(page, "timeline")


def test_filters_show_the_matching_tests(report, visit, history, picture):
    ends = {name: [status for status in statuses(tests) if status] for name, tests in history.items()}
    page = visit(report, LARDER)
    for kind, expected in {
        "did not pass at the end": {name for name, found in ends.items() if found[-1] != "passed"},
        "ever broke": {name for name, found in ends.items() if re.search("passed (?!passed)", " ".join(found))},
        "ever recovered": {name for name, found in ends.items() if re.search("(failed|error) passed", " ".join(found))},
        "failed at the end": {name for name, found in ends.items() if found[-1] == "failed"},
        "never passed": {name for name, found in ends.items() if "passed" not in found},
        "always passed": {name for name, found in ends.items() if set(found) == {"passed"}},
    }.items():
        page.get_by_label("Result").select_option(kind)
        expect_rows(page, expected)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Result").select_option("any result")
    page.get_by_label("Group").select_option("Error")
    of_group = {
        name for name, tests in history.items() if any(test and test["group_type"] == "Error" for test in tests)
    }
    expect_rows(page, of_group)
    page.get_by_label("Name").fill("SERVINGS")
    both = {name for name in of_group if "servings" in name.lower()}
    assert both
    expect_rows(page, both)
    expect(page.get_by_role("status")).to_have_text(f"{len(both)} of {len(history)} tests shown")
    picture(page, "filter")
    page.get_by_label("Name").fill("no such test")
    expect(page.get_by_text("No tests match.")).to_be_visible()


def test_the_dialog_shows_message_calls_and_output(runs_folder, report, visit, history, picture):
    page = visit(report, LARDER, permissions=["clipboard-read", "clipboard-write"])
    dialog = open_first_failure(page)
    name = dialog.get_by_role("heading").first.inner_text()
    number = next(number for number, test in enumerate(history[name]) if test and test["status"] != "passed")
    failed = history[name][number]
    expect(dialog.get_by_role("region", name="Source of the test")).to_contain_text("def test_")
    message = failed["failure_message"]
    dialog.get_by_text("Output of pytest").click()
    output = dialog.get_by_role("region", name="Output of pytest")
    expect(output).to_contain_text(message[message.index("\n>") :])
    assert " at 0x" in message
    assert " at 0x" not in output.inner_text()
    assert dialog.get_by_role("region", name="What was run").inner_text() == "\n".join(failed["calls"])
    lines = output.locator("span")
    colours = {line.evaluate("e => e.innerText[0] + getComputedStyle(e).color") for line in lines.all()}
    assert {"E", ">"} <= {colour[0] for colour in colours}
    again, all_of_it = (
        dialog.get_by_role("region", name=title) for title in ("Run this test again", "Print all of it")
    )
    for command, text in {"rerun": again.inner_text(), "show": all_of_it.inner_text()}.items():
        words = ["slop-code", command, f"drifting/larder/checkpoint_{number + 1}", name]
        assert shlex.split(text) == words
        assert name in printed(*words[1:], cwd=runs_folder, statuses=(0, 1))
    expect(dialog.get_by_text("Run it in the folder where the command that wrote this page ran.")).to_be_visible()
    dialog.get_by_role("button", name="Copy").first.click()
    dialog.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == again.inner_text()
    picture(page, "detail")


@pytest.mark.long
def test_a_tests_history_leads_to_the_others(report, visit, history):
    name = sorted(broken_at_3(history))[0]
    page = visit(report, LARDER)
    row_of(page, name).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("failed at larder checkpoint_3, where it broke")).to_be_visible()
    dialog.get_by_role("link", name="checkpoint_2").click()
    dialog.get_by_text("at larder checkpoint_2").wait_for()
    expect(dialog.get_by_text("It passed: no texts were stored.")).to_be_visible()


@pytest.mark.long
def test_the_policy_recolours_without_a_reload(report, visit, picture):
    page = visit(report, OPEN)
    page.evaluate("window.kept = 1")
    mark = page.get_by_role("link", name="larder checkpoint_3: ")
    before = mark.inner_text(), mark.evaluate("e => getComputedStyle(e).color")
    for policy, passed in {"core-cases": 4, EXPRESSION: 4, "all-non-error-cases": 2}.items():
        page.get_by_label("Policy").select_option(policy)
        expect(page.get_by_text(f"({policy}): {passed} of 5 checkpoints passed")).to_be_visible()
        after = mark.inner_text(), mark.evaluate("e => getComputedStyle(e).color")
        assert (after == before) == (policy == "all-non-error-cases")
        if policy == EXPRESSION:
            picture(page, "expression")
    assert page.evaluate("window.kept") == 1
    page.get_by_label("Policy").select_option(EXPRESSION)
    page.reload()
    expect(page.get_by_text(f"({EXPRESSION}): 4 of 5 checkpoints passed")).to_be_visible()


def is_dark(page):
    found = page.evaluate(
        "getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.body).backgroundColor"
    )
    solid = re.findall(r"rgb\((\d+), (\d+), (\d+)\)", found)
    return max(map(int, solid[0])) < 80


def is_dark_after_reload(page):
    """A new process of the browser may read what is stored before the write of the old one has arrived."""
    page.reload()
    page.get_by_text(HEADLINE).wait_for()
    return is_dark(page)


@pytest.mark.long
def test_dark_by_the_system(report, visit):
    assert not is_dark(visit(report))
    page = visit(report, color_scheme="dark")
    assert is_dark(page)


@pytest.mark.long
def test_dark_by_the_switch(report, visit):
    page = visit(report, OPEN)
    page.get_by_label("Theme").select_option("dark")
    assert is_dark(page)
    assert any(is_dark_after_reload(page) for _ in range(20))
    page.get_by_label("Theme").select_option("system")
    assert not is_dark(page)
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)
    page.get_by_label("Theme").select_option("light")
    assert not is_dark(page)


def show(page, view):
    page.get_by_role("heading", level=2).first.wait_for()
    if view == "detail":
        open_first_failure(page)
    elif view == "charts":
        for chart in page.get_by_role("img").all():
            chart.scroll_into_view_if_needed()
        page.evaluate("window.scrollTo(0, 0)")


@pytest.mark.long
@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_screen_never_scrolls_sideways(report, visit, picture, view):
    page = visit(report, VIEWS[view], width=360, height=740)
    show(page, view)
    picture(page, f"{view}-narrow")
    assert not scrolls_sideways(page)


@pytest.mark.parametrize("scheme", ["light", *in_long("dark")])
@pytest.mark.parametrize("view", ["timeline", *in_long(*(view for view in VIEWS if view != "timeline"))])
def test_nobody_is_kept_out(report, visit, picture, view, scheme):
    page = visit(report, VIEWS[view], color_scheme=scheme, reduced_motion="reduce")
    show(page, view)
    picture(page, f"{view}-{scheme}")
    assert severe_violations(page) == []


@pytest.mark.long
def test_charts_have_labels_and_tables(report, visit):
    page = visit(report, VIEWS["charts"])
    charts = page.get_by_role("img")
    assert charts.count() == 5
    assert "Functionality from 100% to 62.5%" in charts.first.get_attribute("aria-label")
    page.get_by_text("Figures as a table").first.click()
    rows = page.get_by_role("region", name="Figures: Tests that passed, by group").get_by_role("row").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["Checkpoint", "checkpoint_1", "checkpoint_2", "checkpoint_3"]
    assert "62.5%" in rows[-1]


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText")


def tab_until(page, wanted, limit=60):
    """Press Tab until this is so; how many presses it took."""
    for presses in range(1, limit):
        page.keyboard.press("Tab")
        if wanted():
            return presses
    raise AssertionError(f"not within {limit} presses of Tab; now at {focused(page)!r}")


def in_grid(page):
    return page.evaluate("!!document.activeElement.closest('[role=grid] tbody')")


@pytest.mark.long
def test_every_view_is_reached_by_keyboard(report, visit, history):
    page = visit(report, OPEN)
    page.get_by_text(HEADLINE).wait_for()
    tab_until(page, lambda: focused(page).startswith("larder"), limit=90)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Timeline: larder").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("servings")
    page.get_by_label("Result").select_option("any result")
    expected = [name for name in history if "servings" in name]
    expect_rows(page, set(expected))
    tab_until(page, lambda: in_grid(page))
    first = focused(page)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert focused(page).startswith("checkpoint_1: ")
    page.keyboard.press("End")
    assert focused(page).startswith("checkpoint_3: ")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert focused(page) == first
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.title")
    assert second in expected
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert dialog.get_by_role("heading").first.inner_text() == second
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.title") == second
    tab_until(page, lambda: not in_grid(page), limit=2)  # the grid is one stop


@pytest.mark.long
def test_links_show_the_same(report, visit, history):
    name = sorted(broken_at_3(history))[0]
    page = visit(report, OPEN)
    show_figures(page)
    checkpoint_row(page, "drifting", "checkpoint_3").get_by_role("link", name="tests broke here").click()
    row_of(page, name).click()
    page.get_by_role("dialog").wait_for()
    fragment = address(page)

    again = visit(report, fragment)
    again.get_by_role("dialog").wait_for()
    assert again.get_by_role("dialog").get_by_role("heading").first.inner_text() == name
    again.reload()
    again.get_by_role("dialog").wait_for()
    again.keyboard.press("Escape")
    expect_rows(again, broken_at_3(history))

    page.go_back()
    page.get_by_role("dialog").wait_for(state="hidden")
    expect_rows(page, broken_at_3(history))
    page.go_back()
    page.get_by_text(HEADLINE).wait_for()
    page.go_forward()
    page.go_forward()
    page.get_by_role("dialog").wait_for()


@pytest.mark.long
@pytest.mark.parametrize(
    "fragment", ["#view=timeline&run=nobody&problem=none&test=x&checkpoint=y", "#%%%", "#view=x&group=9"]
)
def test_a_link_to_something_missing_shows_a_view(report, visit, fragment):
    page = visit(report, fragment)
    expect(page.get_by_role("heading", level=2).first).to_be_visible()


@pytest.mark.long
def test_a_large_run_is_shown_and_filtered(tmp_path, visit, picture):
    run = write_big_run(tmp_path / "large", problems=1, checkpoints=100)
    printed("report", run, "-o", tmp_path / "report.html", cwd=tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 8_000_000
    page = visit(tmp_path / "report.html")
    expect(page.locator(".failure").first).to_be_visible()
    picture(page, "large-overview")
    page.get_by_role("link", name="Timeline", exact=True).click()
    shown = page.locator("#left")
    expect(shown).to_have_text(re.compile("[1-9][0-9]* of 698 tests shown"))
    page.get_by_role("button", name="Show all 698").click()
    expect(shown).to_have_text("698 tests shown")
    grid(page).locator("tbody").get_by_role("rowheader").first.click()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.keyboard.press("Control+End")
    expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile("^checkpoint_100: "))
    picture(page, "large")
    page.get_by_label("Result").select_option("ever broke")
    expect(shown).to_have_text(re.compile("[1-9][0-9]* of 698 tests shown"))
    assert not scrolls_sideways(page)
    page.get_by_label("Result").select_option("did not pass at the end")
    grid(page).locator("tbody").get_by_role("rowheader").first.click()
    page.get_by_role("dialog").get_by_text("Output of pytest").click()
    lines = page.get_by_role("dialog").get_by_role("region", name="Output of pytest").locator("span")
    colours = dict(lines.evaluate_all("all => all.map((e) => [e.innerText.slice(0, 11), getComputedStyle(e).color])"))
    assert len({colours[f"E         {sign}"] for sign in "-+?"}) == 3
    picture(page, "diff")
