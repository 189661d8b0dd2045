"""The way to a failure in a real browser: the timeline, the panel of a test, and the steps from failure to failure."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import address, scrolls_sideways, severe_violations, visit_report
from tests.factories import case
from tests.marks import in_long
from tests.reporting.html_runs import store, store_snapshots

pytestmark = pytest.mark.e2e

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\x1b[2J\u202e"
VISIBLE = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
MESSAGE = """E       Failed: ran: main.py count
E
E       expected: exit status 0
E       stdout:
E       {expected}
E
E       found: exit status 0
E       stdout:
E       {found}
E
E       stderr:
E       warned about {found}

test_x.py:3: Failed"""
SIZES = [(1400, "light"), *in_long((1400, "dark"), (390, "light"), (390, "dark"))]


def failed(name, expected="Leek", found="leek", **fields):
    texts = {"calls": ["python main.py count"], "output": f"printed by {name}"}
    message = MESSAGE.format(expected=expected, found=found)
    return case(name, "failed", failure_message=message, **texts, **fields)


SECOND_FILE = {"checkpoint": "checkpoint_2", "file_path": "test_checkpoint_2.py"}
OLD = {"group_type": "Regression"}
ODD = f"odd[{HOSTILE}]"
CHECKPOINTS = [
    [case("a"), case("b"), case(ODD), case("steady")],
    [
        failed("a", **OLD), case("b", **OLD), failed(ODD, "plain", HOSTILE, **OLD), case("steady", **OLD),
        failed("new", **SECOND_FILE), case("fine", **SECOND_FILE),
    ],
    [
        failed("a", **OLD), failed("b", **OLD), case(ODD, **OLD), case("steady", **OLD),
        failed("new", **OLD, **SECOND_FILE), case("fine", **OLD, **SECOND_FILE),
    ],
]  # fmt: skip
CODE = [{"main.py": "one = 1\n"}, {"main.py": f"one = 2  # {HOSTILE}\n"}, {"main.py": "one = 3\n", "more.py": "x\n"}]
TIMELINE = "#view=timeline"


@pytest.fixture
def opened(tmp_path, visit):
    """`opened("#fragment", width=390)`: a page of one run."""

    def make(fragment="", **options):
        store_snapshots(store(tmp_path / "run", CHECKPOINTS), CODE)
        return visit_report(visit, tmp_path / "run", fragment, **options)

    return make


def rows(page):
    return page.get_by_role("grid").locator("tbody").get_by_role("rowheader")


def ids(page):
    return [title.partition("::")[2] for title in rows(page).evaluate_all("all => all.map((row) => row.title)")]


def open_row(page, name):
    rows(page).get_by_text(name, exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


def checkpoint_of(page):
    return parse_qs(address(page)[1:])["checkpoint"]


def position(dialog):
    return dialog.get_by_role("group", name="Failures").locator(".position")


def test_the_timeline_shows_group_and_reason_of_what_did_not_always_pass(opened, picture):
    page = opened(TIMELINE)
    expect(page.locator("#left")).to_have_text("4 of 6 tests shown")
    assert ids(page) == ["a", "b", f"odd[{VISIBLE}]", "new"]
    expect(page.get_by_text("test_checkpoint_1.py — 3 tests")).to_be_visible()
    expect(page.get_by_text("test_checkpoint_2.py — 1 test")).to_be_visible()
    first = page.locator("[role=grid] tr[data-number='0']").get_by_role("gridcell")
    expect(first.nth(0)).to_have_text("Regression")
    expect(first.nth(1)).to_have_text("expected Leek, found leek")
    heads = page.get_by_role("grid").get_by_role("columnheader")
    assert heads.evaluate_all("all => all.slice(0, 3).map((e) => e.innerText)") == [
        "Test",
        "Group",
        "Reason, where it first failed",
    ]
    assert heads.nth(4).locator(".name").inner_text() == "2"
    assert heads.nth(4).get_attribute("title") == "checkpoint_2: not passed"
    picture(page, "timeline")
    page.get_by_role("button", name="Show all 6").click()
    expect(page.locator("#left")).to_have_text("6 tests shown")
    assert "result=any" in address(page)
    assert page.evaluate("window.pwned") is None


def test_no_match_leads_back(opened, picture):
    page = opened(f"{TIMELINE}&q=steady")
    expect(page.get_by_text("No tests match.")).to_be_visible()
    picture(page, "no-match")
    page.get_by_role("button", name="Show 1 that always passed").click()
    assert ids(page) == ["steady"]
    page.get_by_label("Name").fill("nobody")
    expect(page.get_by_text("No tests match.")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator("#left")).to_have_text("4 of 6 tests shown")


def test_a_name_opens_the_checkpoint_that_the_reader_looks_at(opened):
    """The filtered one, else the first at which the test did not pass, else its last."""
    page = opened(TIMELINE)
    for state, name, checkpoint in [
        ({}, "a", "checkpoint_2"),
        ({}, "b", "checkpoint_3"),
        ({"at": "checkpoint_3"}, "a", "checkpoint_3"),
        ({"at": "checkpoint_2", "result": "any"}, "b", "checkpoint_2"),
        ({"result": "any"}, "steady", "checkpoint_3"),
    ]:
        page.evaluate("state => slop.go({ view: 'timeline', ...state })", state)
        dialog = open_row(page, name)
        expect(dialog.get_by_text(f"at words {checkpoint}")).to_be_visible()
        assert checkpoint_of(page) == [checkpoint]
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(page).not_to_have_url(re.compile("test="))


@pytest.mark.long
def test_a_cell_opens_its_checkpoint_and_an_empty_one_the_failure(opened):
    page = opened(TIMELINE)
    row = page.get_by_role("grid").locator("tr", has=page.get_by_title("test_checkpoint_2.py::new"))
    row.get_by_role("gridcell", name="checkpoint_1: not there").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("at words checkpoint_2, where it is new")).to_be_visible()
    page.keyboard.press("Escape")
    row.get_by_role("gridcell", name="checkpoint_3: still not passed").click()
    expect(dialog.get_by_text("at words checkpoint_3, still failing: it never passed")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_panel_explains_a_failure_from_the_reason_to_the_history(opened, picture, width, scheme):
    page = opened(TIMELINE, width=width, color_scheme=scheme)
    dialog = open_row(page, f"odd[{VISIBLE}]")
    expect(dialog.get_by_text("failed at words checkpoint_2, where it broke")).to_be_visible()
    expect(dialog.locator(".why")).to_have_text(re.compile("^expected plain, found "))
    assert dialog.get_by_role("heading", level=3).all_inner_texts() == [
        "Expected and found",
        "What was run",
        "Standard error",
        "Code changed from checkpoint_1 to checkpoint_2",
        "Output of pytest",
        "Captured output",
        "Run this test again",
        "Print all of it",
        "History",
    ]
    compared = dialog.get_by_role("region", name="Expected and found").locator("span").all_inner_texts()
    assert compared == ["  exit status 0", "  stdout:", "- plain", f"+ {VISIBLE}"]
    expect(dialog.get_by_role("region", name="Standard error")).to_have_text(f"warned about {VISIBLE}")
    expect(dialog.get_by_role("region", name="Changes of main.py")).to_contain_text(f"+one = 2  # {VISIBLE}")
    pytest_output = dialog.locator("pre[aria-label='Output of pytest']")
    expect(pytest_output).to_be_hidden()
    assert severe_violations(page) == []
    assert not scrolls_sideways(page)
    picture(page, f"failure-{width}-{scheme}")
    dialog.get_by_text("Output of pytest").click()
    expect(pytest_output).to_contain_text("Failed: ran: main.py count")
    assert page.evaluate("window.pwned") is None
    assert dialog.locator("img, script").count() == 0


SOURCE = """([source, reason]) => {
  const [part, numbers] = [{ texts: [source, reason] }, [null, null, null, null, 1, 0]];
  const sections = slop.message.sections(numbers, part, { level: "h3", more: "" }).flat();
  document.querySelector("main").replaceChildren(...sections.filter(Boolean));
  return slop.message.reason(numbers, part);
}"""


def test_the_source_of_a_test_is_text(opened):
    """Also where it was truncated: head, the number of characters left out, and tail."""
    page = opened(TIMELINE)
    region = page.get_by_role("region", name="Source of the test")
    for source in (HOSTILE, [HOSTILE, 52_428_800, HOSTILE]):
        assert page.evaluate(SOURCE, [source, ["why", 7, HOSTILE]]) == f"why … {HOSTILE}"
        assert region.inner_text().startswith("</script><script>window.pwned=1</script>")
        assert page.locator("main img, main script").count() == 0
    expect(region).to_contain_text("[52,428,800 characters left out]")
    assert page.evaluate("window.pwned") is None


def test_steps_lead_through_the_failures_of_the_filter(opened, picture):
    page = opened(TIMELINE)
    dialog = open_row(page, "a")
    expect(position(dialog)).to_have_text("1 of 4")
    name = dialog.get_by_role("heading", level=2)
    for key, shown, number in [
        ("j", "b", 2), ("ArrowDown", f"odd[{VISIBLE}]", 3), ("ArrowRight", "new", 4), ("j", "new", 4),
        ("k", f"odd[{VISIBLE}]", 3), ("ArrowUp", "b", 2), ("ArrowLeft", "a", 1), ("k", "a", 1),
    ]:  # fmt: skip
        page.keyboard.press(key)
        expect(name).to_contain_text(f"::{shown}")
        expect(position(dialog)).to_have_text(f"{number} of 4")
    following = dialog.get_by_role("button", name="Next failure")
    following.click()
    expect(name).to_contain_text("::b")
    assert checkpoint_of(page) == ["checkpoint_3"]
    expect(following).to_be_focused()  # so that Enter leads on
    page.keyboard.press("Enter")
    expect(position(dialog)).to_have_text("3 of 4")
    link = page.evaluate("location.hash")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator(":focus")).to_have_attribute("title", re.compile(r"::odd\["))
    fresh = opened(link)
    expect(position(fresh.get_by_role("dialog"))).to_have_text("3 of 4")
    picture(fresh, "steps")


def test_back_closes_the_panel_after_any_number_of_steps(opened):
    page = opened(TIMELINE)
    dialog = open_row(page, "a")
    for number in (2, 3, 4):
        page.keyboard.press("j")
        expect(position(dialog)).to_have_text(f"{number} of 4")
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert "test=" not in address(page)


def test_in_the_overview_the_steps_follow_the_lists(opened):
    """Tests that broke come first, then new ones, although one of these has the cause of the first."""
    page = opened("#run=run&problem=words&checkpoint=checkpoint_2&test=test_checkpoint_2.py%3A%3Anew")
    dialog = page.get_by_role("dialog")
    name = dialog.get_by_role("heading", level=2)
    expect(position(dialog)).to_have_text("3 of 3")
    for shown in ("::odd[", "::a"):
        page.keyboard.press("k")
        expect(name).to_contain_text(shown)
    assert checkpoint_of(page) == ["checkpoint_2"]
    assert "view=timeline" not in address(page)


def test_back_after_closing_leads_on_from_the_list(opened):
    page = opened("")
    page.get_by_role("link", name="Timeline", exact=True).click()
    open_row(page, "a")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("test="))  # the browser closes the panel before it goes back
    assert "view=timeline" in address(page)
    page.go_back()
    expect(page.locator(".headline")).to_be_visible()


def test_the_page_does_not_scroll_behind_a_test(opened):
    page = opened("", height=300)
    page.locator(".failure a").first.click()
    page.get_by_role("dialog").wait_for()
    before = page.evaluate("scrollY")
    page.mouse.move(5, 150)
    page.mouse.wheel(0, 400)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert page.evaluate("scrollY") == before


@pytest.mark.parametrize(
    ("fragment", "text"),
    [
        ("#view=timeline&run=nonesuch&test=foo", "This report has no run nonesuch."),
        ("#view=timeline&problem=other", "This report has no problem other."),
        (f"{TIMELINE}&at=checkpoint_9", "This report has no checkpoint checkpoint_9."),
        (f"{TIMELINE}&test=gone&checkpoint=checkpoint_1", "This report has no test gone."),
        (f"#policy={HOSTILE}", "This report has no policy"),
    ],
    ids=["run", "problem", "checkpoint", "test", "policy"],
)
def test_a_link_to_what_is_not_there_says_so(opened, fragment, text):
    page = opened(fragment.replace("\u202e", ""))
    expect(page.get_by_role("alert")).to_contain_text(text)
    assert page.evaluate("window.pwned") is None
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".headline")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_column_has_the_group_of_the_filter(opened):
    page = opened(f"{TIMELINE}&group=Core")
    rows(page).first.wait_for()
    assert {row.locator("td.group").inner_text() for row in page.locator("tr[data-number]").all()} == {"Core"}
    page.locator("#filter-at").select_option("checkpoint_2")
    expect(page.get_by_role("columnheader", name="Reason at checkpoint_2")).to_be_visible()


@pytest.mark.long
def test_arrows_scroll_a_text_that_has_the_focus(opened):
    page = opened(TIMELINE)
    dialog = open_row(page, "a")
    dialog.get_by_role("region", name="Expected and found").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+j")
    expect(position(dialog)).to_have_text("1 of 4")
    page.keyboard.press("j")
    expect(position(dialog)).to_have_text("2 of 4")


@pytest.mark.long
def test_a_failure_is_reached_and_left_by_the_keyboard_alone(opened):
    page = opened(TIMELINE)
    page.get_by_label("Name").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("!!document.activeElement.closest('[role=grid] tbody')"):
            break
    for words in ("Regression", "expected Leek, found leek"):
        page.keyboard.press("ArrowRight")
        expect(page.locator(":focus")).to_have_text(words)
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "checkpoint_1: new, passed")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_text("at words checkpoint_2")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(":focus")).to_have_attribute("title", "test_checkpoint_1.py::a")


SMALL_TARGETS = """all => all.filter((e) => e.checkVisibility()).map((e) => [e.outerHTML, e.getBoundingClientRect()])
  .filter(([, box]) => Math.min(box.width, box.height) < 24).map(([html]) => html)"""
TARGETS = "main :is(button, select, input, .grid a, tbody th, tbody td.cell), dialog :is(button, .history a, summary)"


@pytest.mark.parametrize("scheme", ["light", *in_long("dark")])
def test_a_phone_shows_groups_and_reasons(opened, picture, scheme):
    page = opened(TIMELINE, width=390, height=800, color_scheme=scheme)
    under = rows(page).first.locator(".under")
    expect(under.get_by_text("Regression")).to_be_visible()
    expect(under.get_by_text("expected Leek, found leek")).to_be_visible()
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    picture(page, f"phone-{scheme}")
    rows(page).first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "checkpoint_1: new, passed")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert page.locator(TARGETS).evaluate_all(SMALL_TARGETS) == []


CHANGED = "([number, key, value]) => slop.unpacked().then(({ data }) => { CHECKPOINTS[number][key] = value; })".replace(
    "CHECKPOINTS", "data.runs[0].problems[0].checkpoints"
)


def test_the_cause_of_a_whole_checkpoint_is_shown_with_each_test(opened):
    page = opened(TIMELINE)
    page.evaluate(CHANGED, [1, "cause", VISIBLE])
    expect(open_row(page, "a").get_by_text(f"The whole checkpoint: {VISIBLE}")).to_be_visible()


@pytest.mark.long
def test_checkpoints_whose_names_have_no_numbers_are_counted(opened):
    page = opened(TIMELINE)
    for number, name in enumerate(["first", "checkpoint_9", VISIBLE]):
        page.evaluate(CHANGED, [number, "name", name])
    page.get_by_label("Group").select_option("Regression")
    expect(page.get_by_role("columnheader").locator(".name")).to_have_text(["1", "2", "3"])
