"""The first screen of the report in a real browser: failures by cause, marks of problems, runs among others."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from slop_code.reporting.html.run_page import write_report
from slop_code.runs.read_results import read_runs
from tests.e2e.browser import address, scrolls_sideways, severe_violations, visit_report
from tests.factories import case, result
from tests.leaderboard_runs import write_twenty_runs
from tests.marks import in_long
from tests.reporting.html_runs import store, store_snapshots

pytestmark = pytest.mark.e2e

HOSTILE = "</script><img src=x onerror=window.pwned=1>\x1b[31m\u202e"
SHOWN_HOSTILE = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
LOOKS = [(390, "dark"), *in_long((1400, "light"), (1400, "dark"), (390, "light"))]
TARGETS = "main a, main button, main summary, #top a, #top select"


def failed(name, message, **fields):
    return case(name, "failed", failure_message=f"E   {message}", **fields)


def later(number, name, message=None, **fields):
    home = {"checkpoint": f"checkpoint_{number}", "file_path": f"test_checkpoint_{number}.py", **fields}
    return failed(name, message, **home) if message else case(name, **home)


OLD = [f"old_{number}" for number in range(6)]
DRIFTS = [
    [case(name) for name in OLD],
    [*(case(name) for name in OLD), later(2, "new_a", "no title"), later(2, "new_b", "no unit")],
    [
        *(failed(name, "exit status 1, larder: -: no title", group_type="Regression") for name in OLD[:4]),
        failed("old_4", "expected: Leek: 3, found: leek: 3", group_type="Regression"),
        case("old_5"),
        later(2, "new_a", "no title", group_type="Regression"),
        later(2, "new_b", group_type="Regression"),
        later(3, "newest", "no pantry"),
    ],
]
SNAPSHOTS = [{"main.py": "title = 1\n"}, {"main.py": "title = 1\nunit = 1\n"}, {"main.py": "unit = 1\npantry = 1\n"}]


@pytest.fixture
def written(tmp_path, visit):
    """`written({"words": [...]}, "#fragment", width=390)`: a page of one run, opened."""

    def make(problems, fragment="", **options):
        for problem, checkpoints in problems.items():
            store_snapshots(store(tmp_path / "run", checkpoints, problem), SNAPSHOTS[: len(checkpoints)], problem)
        return visit_report(visit, tmp_path / "run", fragment, **{"width": 1400, **options})

    return make


def names(rows):
    return [row.get_by_role("link").first.inner_text() for row in rows.all()]


def section(page, checkpoint):
    return page.locator(f"details.checkpoint[data-checkpoint={checkpoint}]")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_failures_come_first_and_what_they_were_made_from_last(written, picture, width, scheme):
    page = written({"larder": DRIFTS}, width=width, color_scheme=scheme)
    expect(page.locator(".headline")).to_have_text("NOT PASSED (all-cases): 1 of 3 checkpoints passed")
    titles = page.get_by_role("heading", level=3)
    expect(titles.first).to_have_text("checkpoint_2: 2 new tests failed")
    assert titles.all_inner_texts() == [
        "checkpoint_2: 2 new tests failed",
        "checkpoint_3: 5 broke, 1 new test failed, 1 still failing",
        "Tests of each checkpoint, by group",
        "Made from",
    ]
    made = page.locator(".made-from")
    shown = dict(zip(made.locator("dt").all_inner_texts(), made.locator("dd").all_inner_texts(), strict=True))
    assert {"slop-code", "pytest", "Python", "sandbox"} <= set(shown)
    third = section(page, "checkpoint_3")
    expect(third.get_by_role("heading", level=4)).to_have_text(["Broke 5", "New tests that failed 1"])
    alone = third.locator(".kind.broke > ul > .failure")
    assert names(alone) == ["test_checkpoint_1.py::old_4"]
    expect(alone).to_contain_text("Regression")
    expect(alone).to_contain_text("expected: Leek: 3, found: leek: 3")
    expect(third.get_by_text("exit status 1, larder: -: no title")).to_be_visible()
    expect(third.get_by_text("4 tests:")).to_be_visible()
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    picture(page, f"failures-{width}-{scheme}", whole=True)


def test_one_click_from_a_failure_to_the_code_that_broke_it(written, picture):
    page = written({"larder": DRIFTS})
    page.get_by_role("link", name="old_4").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("at larder checkpoint_3, where it broke")).to_be_visible()
    expect(dialog.get_by_role("region", name="Changes of main.py")).to_contain_text("-title = 1")
    assert "view=" not in address(page)
    picture(page, "one-click")
    page.reload()
    expect(dialog.get_by_text("at larder checkpoint_3, where it broke")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator(".headline")).to_be_visible()
    page.go_forward()
    expect(dialog).to_be_visible()


def test_a_cause_of_few_tests_lists_them_and_folds_by_keyboard(written):
    page = written({"larder": DRIFTS})
    cause = section(page, "checkpoint_3").locator("details.cause")
    expect(cause).to_have_count(1)
    members = cause.get_by_role("listitem")
    expect(members).to_have_count(4)
    cause.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(members.first).to_be_hidden()
    page.keyboard.press("Enter")
    expect(members.first).to_be_visible()
    assert names(members) == [f"test_checkpoint_1.py::{name}" for name in OLD[:4]]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_text("where it broke")).to_be_visible()
    page.keyboard.press("Escape")
    expect(members.first.get_by_role("link")).to_be_focused()
    still = section(page, "checkpoint_3").get_by_text("1 still failing", exact=True)
    still.click()
    expect(section(page, "checkpoint_3").locator(".still .failure")).to_contain_text("no title")


def test_long_lists_are_drawn_in_steps(written):
    many = [failed(f"test_{number}", f"reason {number}") for number in range(312)]
    same = [failed(f"same_{number}", "alike") for number in range(60)]
    page = written({"larder": [[*many, *same]]})
    rows = page.locator(".kind > ul > li")
    expect(rows).to_have_count(50)
    expect(page.locator(".cause .failure")).to_have_count(0)
    page.get_by_text("60 tests").click()
    expect(page.locator(".cause .failure")).to_have_count(50)
    page.get_by_role("button", name="Show all 60 tests").click()
    expect(page.locator(".cause .failure")).to_have_count(60)
    page.get_by_role("button", name="Show all 201 causes").click()
    expect(rows).to_have_count(201)
    expect(rows.nth(50).get_by_role("link")).to_be_focused()
    rows.last.locator("summary").click()
    expect(rows.last.locator(".failure").last).to_contain_text("reason")


def test_the_cause_of_a_whole_checkpoint_stands_at_its_heading(written, picture):
    page = written({"larder": [[case("a")], "the box could not be started", [failed("a", "x")]]})
    expect(page.locator(".headline")).to_contain_text("NOT PASSED (all-cases): 1 of 3 checkpoints passed; 1 without")
    second = section(page, "checkpoint_2")
    expect(second.get_by_role("heading")).to_have_text("checkpoint_2: no verdict")
    expect(second.get_by_text("the box could not be started")).to_be_visible()
    assert second.locator(".failure").count() == 0
    picture(page, "no-verdict")


def test_the_cause_of_a_set_up_that_failed(visit, tmp_path):
    tests = [failed(name, "not there") for name in "abc"]
    why = f"pip install failed: {HOSTILE}"
    stored = result(tests, problem_name="larder", checkpoint_name="checkpoint_1", setup_failure=why)
    stored.save(tmp_path / "run/larder/checkpoint_1/evaluation.json")
    write_report(read_runs([tmp_path / "run"]), [], tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    expect(page.locator(".cause-of-all")).to_contain_text(f"pip install failed: {SHOWN_HOSTILE}")
    assert page.locator("img").count() == 0


def test_tests_that_the_cause_of_the_checkpoint_explains_are_one_line(written, picture):
    error = 'File "/workspace/main.py", line 3\nE   SyntaxError: invalid syntax'
    tests = [*(failed(f"t{number}", error) for number in range(7)), failed("other", "Leek")]
    page = written({"larder": [tests]})
    area = section(page, "checkpoint_1")
    expect(area.get_by_role("heading", level=3)).to_have_text("checkpoint_1: 8 new tests failed")
    expect(area.locator(".cause-of-all")).to_have_text("SyntaxError: invalid syntax in main.py line 3")
    line = area.get_by_text("7 tests, for this cause")
    expect(line).to_be_visible()
    expect(area.locator(".failure")).to_have_count(1)
    expect(area.get_by_role("heading", level=4)).to_have_text("New tests that failed 1")
    expect(area.locator(".kind")).to_contain_text("Leek")
    picture(page, "explained")
    line.click()
    expect(area.locator(".cause .failure")).to_have_count(7)
    area.get_by_role("link", name="t6").click()
    expect(page.get_by_role("dialog").get_by_text("7 of 8")).to_be_visible()


def test_a_lenient_policy_folds_what_passed(written):
    tests = [case("core"), failed("other", "x", group_type="Error")]
    page = written({"larder": [tests]}, "#policy=core-cases")
    expect(page.locator(".headline")).to_have_text("PASSED (core-cases): 1 of 1 checkpoint passed")
    only = section(page, "checkpoint_1")
    expect(only.get_by_role("heading")).to_have_text("checkpoint_1: 1 new test failed (passed by this policy)")
    assert only.get_attribute("open") is None
    only.locator("summary").first.click()
    expect(only.get_by_role("link", name="other")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_marks_of_problems_show_the_failures_of_a_checkpoint(written, picture, width, scheme):
    problems = {"corkboard": [[case("a")], "killed"], "larder": DRIFTS}
    page = written(problems, width=width, color_scheme=scheme)
    marks = page.get_by_role("region", name="Problems and checkpoints of run")
    rows = marks.get_by_role("row")
    expect(rows).to_have_count(3)
    assert marks.locator(".tick").evaluate_all("all => all.map((e) => e.textContent)") == [
        "✓corkboard checkpoint_1: passed",
        "?corkboard checkpoint_2: no verdict",
        "✓larder checkpoint_1: passed",
        "×larder checkpoint_2: not passed",
        "▼larder checkpoint_3: not passed, 5 tests broke",
    ]
    shown = page.locator(".marks-and-failures .checkpoint")
    expect(shown.get_by_role("heading", level=3)).to_have_text("larder checkpoint_2: 2 new tests failed")
    marks.get_by_role("link", name="larder checkpoint_3").press("Enter")
    expect(shown.get_by_role("heading", level=3)).to_contain_text("larder checkpoint_3: 5 broke")
    expect(marks.get_by_role("link", name="larder checkpoint_3")).to_be_focused()
    expect(marks.locator("[aria-current]")).to_have_count(1)
    expect(shown.get_by_role("link", name="old_4")).to_be_visible()
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    picture(page, f"matrix-{width}-{scheme}", whole=True)
    page.reload()
    expect(shown.get_by_role("heading", level=3)).to_contain_text("larder checkpoint_3: 5 broke")
    marks.get_by_role("link", name="corkboard checkpoint_2").click()
    expect(shown.get_by_text("killed")).to_be_visible()
    page.go_back()
    expect(shown.get_by_role("heading", level=3)).to_contain_text("larder checkpoint_3: 5 broke")


def test_figures_of_several_problems_are_folded(written):
    page = written({"corkboard": [[case("a")]], "larder": DRIFTS})
    table = page.get_by_role("table", name="Checkpoints of run: tests passed")
    expect(table).to_have_count(0)
    page.get_by_text("Tests of each checkpoint, by group").click()
    expect(table.get_by_role("row")).to_have_count(1 + 2 + 4)


def test_many_checkpoints_are_marks_in_a_line(written):
    broken = [[case("a")], *[[failed("a", "x")]] * 11]
    page = written({"larder": broken})
    marks = page.get_by_role("list", name="Checkpoints of larder").get_by_role("link")
    expect(marks).to_have_count(12)
    assert section(page, "checkpoint_12").get_attribute("open") is None
    page.get_by_role("link", name="larder checkpoint_12: not passed").click()
    expect(section(page, "checkpoint_12")).to_have_attribute("open", "")
    expect(section(page, "checkpoint_12").locator("summary").first).to_be_focused()
    section(page, "checkpoint_12").get_by_text("1 still failing", exact=True).click()
    expect(section(page, "checkpoint_12").get_by_role("link", name="::a")).to_be_visible()


def test_a_phone_shows_every_group_and_has_large_targets(written, picture):
    page = written({"larder": DRIFTS}, width=390, height=800)
    table = page.get_by_role("table", name="Checkpoints of run: tests passed")
    table.scroll_into_view_if_needed()
    cells = table.get_by_role("row").filter(has_text="checkpoint_3").get_by_role("cell").all()
    boxes = [cell.bounding_box() for cell in cells]
    assert len(boxes) == 8
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    heads = table.locator("td[data-head]").evaluate_all(
        "all => all.map((e) => getComputedStyle(e, '::before').content)"
    )
    assert {'"Core"', '"Functionality"', '"Error"', '"Regression"', '"Broke"'} <= set(heads)
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    expect(page.locator(".cause .failure")).to_have_count(4)
    small = page.locator(TARGETS).evaluate_all(
        "all => all.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML)"
    )
    assert small == []
    picture(page, "phone-groups", whole=True)


def test_hostile_names_and_causes_are_text(written, tmp_path):
    text = HOSTILE.replace("/", "")
    tests = [failed(f"t{number}[{HOSTILE}]", HOSTILE) for number in range(3)]
    page = written({f"p{text}": [tests, tests, tests], "words": [tests]}, width=390)
    expect(page.locator(".cause .failure").first).to_contain_text(SHOWN_HOSTILE)
    page.locator(".cause .failure a").first.click()
    expect(page.get_by_role("dialog")).to_contain_text(SHOWN_HOSTILE)
    assert page.locator("img").count() == 0
    assert page.evaluate("typeof window.pwned") == "undefined"
    page.keyboard.press("Escape")
    assert not scrolls_sideways(page)


@pytest.fixture(scope="module")
def twenty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twenty")
    write_report(read_runs(write_twenty_runs(folder / "runs")), [], folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_of_many_runs_two_clicks_show_a_failure(twenty, visit, picture, width, scheme):
    page = visit(twenty, width=width, color_scheme=scheme)
    runs = page.locator(".runs > details")
    expect(runs).to_have_count(20)
    assert page.get_by_role("heading", level=2).all_inner_texts() == ["Agents", "Runs"]
    expect(runs.nth(2).locator("summary").first).to_contain_text("aurora-3")
    expect(runs.nth(2).locator("summary").first).to_contain_text("11 of 12 checkpoints")
    lines = page.get_by_role("img", name="Tests that passed over 12 checkpoints")
    expect(lines).to_have_count(15)
    picture(page, f"runs-{width}-{scheme}", whole=True)
    runs.nth(2).locator("summary").first.click()
    failure = runs.nth(2).locator("details.cause summary")
    expect(failure).to_contain_text("3 tests")
    assert "open=aurora-3" in address(page)
    assert not scrolls_sideways(page)
    assert severe_violations(page) == []
    picture(page, f"run-open-{width}-{scheme}")
    runs.nth(2).locator(".cause .failure a").first.click()
    expect(page.get_by_role("dialog").get_by_text("at rollcall checkpoint_4, where it broke")).to_be_visible()
    linked = page.evaluate("location.hash")
    page.reload()
    expect(page.get_by_role("dialog").get_by_text("at rollcall checkpoint_4, where it broke")).to_be_visible()
    page.keyboard.press("Escape")
    expect(runs.nth(2)).to_have_attribute("open", "")
    copied = visit(twenty, linked, width=width)
    copied.get_by_role("dialog").wait_for()
    link = copied.locator("[data-run-name=aurora-3] .cause .failure a").first
    link.wait_for(state="attached")  # drawn when the run behind the dialog is opened
    copied.keyboard.press("Escape")
    expect(copied.locator(":focus")).to_have_attribute("href", str(link.get_attribute("href")))


def test_columns_of_runs_line_up(twenty, visit):
    page = visit(twenty, width=1400)
    lefts = page.locator(".runs > details > summary").evaluate_all(
        "all => all.map((e) => [...e.children].map((cell) => Math.round(cell.getBoundingClientRect().left)).join())"
    )
    assert len(set(lefts)) == 1


def test_an_agent_leads_to_its_first_run(twenty, visit):
    page = visit(twenty, "#sort=cost", width=1400)
    page.get_by_role("region", name="Agents").get_by_role("link", name="basalt-2").click()
    first = page.locator(".runs > details[data-run-name=basalt-1]")
    expect(first).to_have_attribute("open", "")
    expect(first.locator("summary").first).to_be_focused()
    assert "sort=cost" in address(page)
    first.locator("summary").first.click()
    expect(first).not_to_have_attribute("open", "")
    assert "open=" not in address(page)


def test_the_timeline_is_that_of_the_open_run(twenty, visit):
    page = visit(twenty, "#open=basalt-2", width=1400)
    page.locator("[data-run-name=basalt-2] .failure a").first.click()
    expect(page.get_by_role("dialog").get_by_role("definition").first).to_have_text("basalt-2")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Timeline", exact=True).click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("basalt-2")
    assert page.evaluate("scrollY") == 0
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.locator("[data-run-name=basalt-2]")).to_have_attribute("open", "")


HOLD = """(words) => {
  const { text } = Response.prototype;
  const released = new Map(words.map((word) => {
    let release;
    return [word, [new Promise((resolve) => (release = resolve)), () => release()]];
  }));
  window.release = (word) => released.get(word)[1]();
  Response.prototype.text = async function () {
    const unpacked = await text.call(this);
    for (const [word, [promise]] of released) if (unpacked.includes(word)) await promise;
    return unpacked;
  };
}"""


def test_what_is_visible_takes_a_click_while_other_failures_are_unpacked(written):
    """A link that moves between the press and the release of the button loses its click."""
    page = written({"words": DRIFTS}, alone=True)
    page.add_init_script(f'({HOLD})(["no unit", "no pantry"])')  # a text of each of two checkpoints
    page.reload()
    later_link = page.get_by_role("link", name="newest", include_hidden=True)
    page.evaluate("release('no pantry')")
    later_link.wait_for(state="attached")
    assert not later_link.is_visible()  # the failures before it have no place yet
    expect(page.get_by_role("heading", name="checkpoint_2")).to_be_visible()
    page.evaluate("release('no unit')")
    expect(later_link).to_be_visible()
    position = later_link.bounding_box()
    later_link.click()
    expect(page.get_by_role("dialog")).to_contain_text("no pantry")
    assert later_link.bounding_box() == position
