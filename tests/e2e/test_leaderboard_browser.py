"""The table of agents in a real browser: twenty runs of four agents, wide, narrow, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from slop_code.reporting.html.run_page import write_report
from slop_code.runs.read_results import read_runs
from tests.e2e.browser import scrolls_sideways, severe_violations
from tests.leaderboard_runs import write_agent_run, write_twenty_runs

pytestmark = pytest.mark.e2e

BEST_FIRST = [
    "aurora-large-20260101, thinking high",
    "aurora-large-20260101, thinking none",
    "basalt-2, thinking high",
    "cinder-mini, thinking high",
]
CHEAP_FIRST = [BEST_FIRST[number] for number in (2, 1, 0, 3)]
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    write_report(read_runs(write_twenty_runs(folder / "runs")), [], folder / "report.html")
    return folder / "report.html"


def names(page):
    return (
        page.get_by_role("region", name="Agents")
        .locator("tbody th a")
        .evaluate_all("links => links.map((link) => link.firstChild.textContent)")
    )


def head(page, name):
    return page.get_by_role("columnheader", name=name, exact=True)


@pytest.mark.parametrize("width", [1400, 390])
def test_the_table_fits_and_keeps_no_one_out(width, report, visit, picture):
    page = visit(report, width=width)
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    assert names(page) == BEST_FIRST
    assert not scrolls_sideways(page)
    hidden = page.get_by_role("region", name="Agents").last.evaluate("box => box.scrollWidth - box.clientWidth")
    assert hidden == 0
    broke = page.get_by_role("region", name="Agents").locator("tbody tr").first.locator("td[data-head='tests: broke']")
    assert 0 <= broke.bounding_box()["x"] < width
    assert severe_violations(page) == []
    picture(page, f"agents-{width}")


def test_a_click_on_a_head_sorts_best_first_and_another_turns_it_round(report, visit):
    page = visit(report, width=1400)
    cost = head(page, "cost")
    expect(cost).to_have_attribute("aria-sort", "none")
    cost.get_by_role("button").click()
    expect(head(page, "cost")).to_have_attribute("aria-sort", "ascending")
    assert names(page) == CHEAP_FIRST
    head(page, "cost").get_by_role("button").click()
    expect(head(page, "cost")).to_have_attribute("aria-sort", "descending")
    assert names(page) == [BEST_FIRST[number] for number in (0, 1, 2, 3)]  # without a cost is last either way
    page.go_back()
    expect(head(page, "cost")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="Agent", exact=True).click()
    expect(head(page, "cost")).to_have_attribute("aria-sort", "none")
    assert names(page) == BEST_FIRST


def test_the_keyboard_sorts_and_keeps_the_focus(report, visit):
    page = visit(report, width=390)
    page.locator("#sort-missing_share").focus()
    page.keyboard.press("Enter")
    expect(head(page, "missing")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(head(page, "missing")).to_have_attribute("aria-sort", "descending")
    assert names(page)[:2] == [BEST_FIRST[3], BEST_FIRST[2]]
    expect(page.locator("#sort-missing_share")).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("sorted by missing, descending")


def test_a_link_shows_the_same_order(report, visit):
    page = visit(report, "#sort=cost", width=1400)
    expect(head(page, "cost")).to_have_attribute("aria-sort", "ascending")
    assert names(page) == CHEAP_FIRST


def test_what_is_missing_is_said_and_the_selected_policy_has_a_column(report, visit):
    page = visit(report, width=1400)
    marked = page.get_by_role("region", name="Agents").locator("tr.apart th")
    expect(marked).to_have_count(2)
    expect(page.get_by_text("cinder-mini, thinking high: 1 problem missing: rollcall")).to_be_visible()
    expect(head(page, "all-cases")).to_be_visible()
    page.get_by_label("Policy").select_option("any-case")
    expect(head(page, "any-case")).to_be_visible()
    cells = page.get_by_role("region", name="Agents").locator("tbody tr").nth(3).locator("td")
    expect(cells.nth(3)).to_have_text("40 66.7%")


def test_each_run_names_its_agent_and_the_words_are_explained(report, visit):
    page = visit(report, width=390)
    first = page.locator(".runs summary").first
    expect(first).to_contain_text("aurora-1 aurora-large-20260101, thinking high")
    page.get_by_text("What the words mean").click()
    for word in ("policy", "missing", "sample", "erosion", "verbosity"):
        expect(page.locator(".meanings dt").get_by_text(word, exact=True)).to_be_visible()


def test_runs_with_the_same_submissions_are_counted_once(visit, tmp_path):
    runs = [
        write_agent_run(tmp_path / name, {"words": ["+"]}, config={"model": "m"}, submission=submission)
        for name, submission in [("a", "one"), ("b", "one"), ("c", "two")]
    ]
    write_report(read_runs(runs), [], tmp_path / "report.html")
    page = visit(tmp_path / "report.html", width=390)
    expect(page.locator("td[data-head='runs']")).to_have_text("2 of 3 distinct")


def test_a_hostile_name_is_text(visit, tmp_path):
    runs = [
        write_agent_run(tmp_path / name, {"words": ["+"]}, config={"model": f"{HOSTILE}{name}", "prompt": HOSTILE})
        for name in ("a", "b")
    ]
    write_report(read_runs(runs), [], tmp_path / "report.html")
    page = visit(tmp_path / "report.html", width=390)
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    assert names(page) == [HOSTILE.replace("\x1b", "\\x1b") + name for name in ("a", "b")]
    assert page.locator("img").count() == 0
    assert not scrolls_sideways(page)


def test_a_single_run_has_no_table_of_agents(visit, tmp_path):
    run = write_agent_run(tmp_path / "a", {"words": ["+"]})
    write_report(read_runs([run]), [], tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    expect(page.get_by_role("heading", name="a", exact=True)).to_be_visible()
    assert page.get_by_role("region", name="Agents").count() == 0
