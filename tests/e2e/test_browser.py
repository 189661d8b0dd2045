"""The browser of the other tests: what it must not let pass."""

from __future__ import annotations

import pytest

from tests.e2e.browser import scrolls_sideways, severe_violations, visits

pytestmark = pytest.mark.e2e

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>
{}<main><h1>A page</h1>{}</main></html>"""
CLOSED = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'">"""


@pytest.fixture
def write(tmp_path):
    def make(body, head=""):
        file = tmp_path / "page.html"
        file.write_text(PAGE.format(head, body))
        return file

    return make


def test_a_page_without_faults(write, visit):
    """axe comes into a page that lets no script in."""
    page = visit(write("<p>Good.</p>", CLOSED))
    assert page.get_by_role("heading", name="A page").is_visible()
    assert severe_violations(page) == []
    assert not scrolls_sideways(page)


def test_severe_violations_are_found(write, visit):
    page = visit(write('<input><p style="color: #ccc">pale</p>'))
    assert [fault.partition(":")[0] for fault in severe_violations(page)] == ["color-contrast", "label"]


def test_a_page_that_scrolls_sideways(write, visit):
    assert scrolls_sideways(visit(write(f"<p>{'x' * 500}</p>"), width=360))


@pytest.mark.parametrize(
    ("body", "head", "found"),
    [
        ('<img alt="" src="http://127.0.0.1:9/">', "", "http://127.0.0.1:9/"),
        ('<img alt="" src="beside.png">', "", "/beside.png"),
        ("<script>throw Error('thrown here')</script>", "", "thrown here"),
        ("<script>console.error('told here')</script>", "", "told here"),
        ("<script>let a</script>", CLOSED, "Content Security Policy"),
    ],
    ids=["request", "file", "exception", "console", "policy"],
)
def test_what_a_page_must_not_do(browser, write, body, head, found):
    def go():
        with visits(browser) as visit:
            visit(write(body, head))

    with pytest.raises(AssertionError, match=found):
        go()
