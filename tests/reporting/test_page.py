"""The shell of a page: whatever text it holds, its elements stay those that we wrote."""

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from slop_code.reporting.html.compare_page import SCRIPTS as COMPARED
from slop_code.reporting.html.page import MARKER, SHARED, asset, pack, render_page
from slop_code.reporting.html.run_page import SCRIPTS
from tests.reporting.html_runs import Shape, unpacked

ASSETS = files("slop_code.reporting.html") / "assets"
LIBRARIES = {"chart.js": "Permission is hereby granted, free of charge", "diff.js": "BSD 3-Clause License"}
OURS = sorted(file.name for file in ASSETS.iterdir() if file.name.endswith(".js") and file.name not in LIBRARIES)
STYLES = sorted(file.name for file in ASSETS.iterdir() if file.name.endswith(".css"))
HOSTILE = [
    "</script><script>window.pwned=1</script>",
    "<!-- <script>",
    "--></title><img src=x onerror=alert(1)>",
    "\u2028\u2029",
    "\x00\x1b]0;x\x07",
    "\ud800 \udfff",
    "\u202edetrever",
    "&lt;script&gt; &amp; \"quoted\" 'quoted'",
]


def page_of(text):
    return render_page(text, scripts=["filter.js"], data={text: [text]}, parts={text: pack({text: text})})


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_changes_the_elements_of_a_page(text):
    page = page_of(text)
    page.encode("utf-8")
    shape = Shape(page)
    assert shape.elements == Shape(page_of("harmless")).elements
    assert unpacked(shape.texts["data"]) == {"data": {text: [text]}, "parts": [text]}
    assert unpacked(shape.texts["part-0"]) == {text: text}
    assert "\0" not in page


def test_a_title_is_text():
    title = next(text for name, text in Shape(page_of("<b>&\x00")).texts.items() if name.startswith("title"))
    assert title == "<b>&\ufffd"


def test_packed_data_has_no_markup_character():
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", pack(["<>&\"'" * 1000]))


def test_only_scripts_of_the_page_may_run():
    page = render_page("x", scripts=SCRIPTS, data={})
    policy = Shape(page).policy
    inlined = re.findall(r"<(script|style)>(.*?)</\1>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for _, text in inlined]
    assert len(inlined) == len(SHARED) + len(SCRIPTS) + 1
    assert re.findall(r"'sha256-([^']+)'", policy) == [*digests[1:], digests[0]]
    assert policy.startswith("default-src 'none'; ")
    assert "base-uri 'none'" in policy
    assert "form-action 'none'" in policy
    assert "unsafe" not in policy


SVG_NAMESPACE = "http://www.w3.org/2000/svg"
"""A name that browsers know, and never load."""


@pytest.mark.parametrize("name", OURS)
def test_scripts_are_short_and_never_make_markup_of_text(name):
    text = asset(name).replace(f'"{SVG_NAMESPACE}"', "")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|\beval\b|Function\(", text
    )
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(|sendBeacon|WebSocket", text)
    assert text.count("\n") <= 250


@pytest.mark.parametrize("name", [*OURS, *STYLES])
def test_lines_of_assets_are_short(name):
    assert [line for line in asset(name).splitlines() if len(line) > 120] == []


def test_every_script_is_used():
    assert {*SHARED, *SCRIPTS, *COMPARED} == {*OURS, *LIBRARIES}


@pytest.mark.parametrize("name", STYLES)
def test_a_style_loads_nothing(name):
    assert not re.search(r"url\(|@import|@font-face", asset(name))


def test_a_library_brings_its_licence_and_its_banner():
    page = render_page("x", scripts=LIBRARIES, data={})
    assert all(licence in page for licence in LIBRARIES.values())
    assert "Chart.js v4" in page
    assert "jsdiff 9" in page
    assert "sourceMappingURL" not in page


def test_a_page_is_known_by_its_head():
    assert MARKER in page_of("x")[:200]


def test_the_same_data_make_the_same_page():
    assert page_of("x") == page_of("x")
