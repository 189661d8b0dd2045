"""A submission whose output attacks whoever looks at it: everywhere it is text, and there is an end to it."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from slop_code.evaluation import CorrectnessResults
from tests.command import SLOP_CODE, slop_code
from tests.e2e.conftest import PATIENCE_S
from tests.marks import in_long
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.e2e

MIB = 1 << 20
CLOSES = "</script></style></title></textarea>--><script>window.pwned=1</script>"
IMAGE = "<img src=x onerror=window.pwned=1>"
ATTRIBUTE = "\"' onmouseover=window.pwned=1 x=`"
MARKDOWN = "|a|b|\n```\n</details> [x](javascript:pwned) ![y](http://127.0.0.1:9/) @everyone"
TERMINAL = "\x1b]0;pwned\x07\x1b[2J\x1b[31mred\x9b2J\x1b]8;;http://127.0.0.1:9/\x07\r\b\x00\x7f"
BIDI = "\u202epassed\u2066\u200f\u061c\u2028\u2029\ufeff"
FORMULA = '=HYPERLINK("http://127.0.0.1:9/")'
TEXTS = {
    "closes": CLOSES, "image": IMAGE, "attribute": ATTRIBUTE, "markdown": MARKDOWN,
    "terminal": TERMINAL, "bidi": BIDI, "formula": FORMULA, "invalid": "",
}  # fmt: skip
SUBMISSION = f"""
    import sys

    TEXTS = {TEXTS!r}
    for out in (sys.stdout.buffer, sys.stderr.buffer):
        if sys.argv[1] == "flood":
            for _ in range(50 * 1024):
                out.write(b"<b>&\\x1b[2J" * 102 + b"\\n")
        else:
            out.write(TEXTS[sys.argv[1]].encode() + b"\\xff\\xfe\\xed\\xa0\\x80 the end")
"""
TESTS = f"""
    import pytest

    TEXTS = {TEXTS!r}
    EACH = pytest.mark.parametrize("kind", sorted(TEXTS))

    @EACH
    def test_message(run, kind):
        pytest.fail(run(kind, encoding="utf-8", errors="surrogateescape").stdout)

    @EACH
    def test_output(run, kind):
        assert run(kind, capture_output=False).returncode == 1

    @EACH
    def test_calls(run, kind):
        assert run(kind, TEXTS[kind].replace("\\0", ""), text=False).stdout == b""

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.values())
    def test_id(text):
        assert not text, "told by its id"

    def test_flood_in_message(run):
        pytest.fail(run("flood").stdout)

    def test_flood_in_output(run):
        assert run("flood", capture_output=False).returncode == 1

    def test_good(run):
        assert run("image", text=False).returncode == 0
"""
EVALUATED, FORGED = "r&d <img src=x onerror=window.pwned=1>", "forged"


def call(*arguments, cwd, statuses=(0,)):
    done = slop_code(*arguments, cwd=cwd)
    assert done.returncode in statuses, done.stderr
    return done.stdout.encode()


def call_for_bytes(*arguments, cwd):
    argv = [SLOP_CODE, *map(str, arguments)]
    return subprocess.run(argv, cwd=cwd, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=True).stdout


@pytest.fixture(scope="module")
def runs_folder(make_problem, make_submission, need_bubblewrap, cache, tmp_path_factory):
    """A folder with a run that was evaluated, and two whose results have such texts wherever a text may be."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("hostile")
    problem = make_problem({"test_checkpoint_1.py": TESTS}, config={"name": "hostile", "timeout": 60})
    shutil.copytree(problem.path, folder / "problems" / "hostile")
    checkpoint = folder / EVALUATED / "hostile" / "checkpoint_1"
    shutil.copytree(make_submission({"main.py": SUBMISSION}), checkpoint / "snapshot")
    call("eval", EVALUATED, "--problems-dir", "problems", cwd=folder, statuses=(1,))
    forge(checkpoint, folder / FORGED / "hostile/checkpoint_1")
    forge(checkpoint, folder / "other" / "hostile/checkpoint_1", fails=("passed",))
    return folder


def forge(checkpoint, target, *, fails=("failed", "error")):
    """As raw as the format lets them be: our own evaluation never stores them so."""
    everything = "\n".join(TEXTS.values())
    word = everything.replace("\0", "")  # so that a command can name it
    text = {"failure_message": everything, "output": everything, "calls": [everything] * 3}
    results = CorrectnessResults.load(checkpoint / "evaluation.json")
    tests = []
    for number, test in enumerate(results.tests):
        name = {"id": f"test_{number}[{word}]", "file_path": f"test_{word}.py", "checkpoint": everything}
        outcome = {**text, "status": "failed"} if test.status in fails else {"status": "passed"}
        tests.append(test.model_copy(update={**name, **outcome, "markers": [everything]}))
    whole = {"problem_name": everything, "warnings": [everything], "evidence": everything, "tests": tests}
    CorrectnessResults.model_validate({**dict(results), **whole}).save(target / "evaluation.json")
    shutil.copytree(checkpoint / ".scbench", target / ".scbench")


def test_hostile_texts_are_stored_in_the_result(runs_folder):
    """The texts have come this far, all of them."""
    document = (runs_folder / EVALUATED / "hostile/checkpoint_1/evaluation.json").read_text()
    tests = json.loads(document)["tests"]
    assert [test["id"] for test in tests if test["status"] == "passed"] == ["test_id[]", "test_good"]
    assert [test["id"] for test in tests if len(test["output"] or "") > 10_000] == ["test_flood_in_output"]
    for field in ("failure_message", "output", "calls", "id"):
        values = "\n".join(str(test[field]) for test in tests)
        assert CLOSES in values, field
        assert "[2J" in values, field
    assert len(document) < 4 * MIB


@pytest.fixture(scope="module", params=[*in_long(EVALUATED), FORGED], ids=["evaluated", "forged"])
def run(request, runs_folder):
    return runs_folder / request.param


MARKS = "\n\t\u200f\u061c\ufeff"  # a text in Arabic has them, and they turn nothing around
COLOUR = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[K")
"""Styles, and the end of a progress bar, which clears its own line."""


def unseen(text, allowed="\n\t"):
    """Controls, and what turns the direction of a text: none of them may reach a reader as they are."""
    return {f"{c!a}" for c in set(text) - set(allowed) if unicodedata.category(c) in ("Cc", "Cf", "Cs")}


def test_show_on_a_terminal(run):
    result = run / "hostile" / "checkpoint_1"
    shown = on_a_terminal("show", result, cwd=run.parent)
    shown += on_a_terminal("show", result, "-v", cwd=run.parent)
    tests = json.loads((result / "evaluation.json").read_text())["tests"]
    alike = {test["status"]: test for test in tests}  # where every failed test has the same texts
    for test in alike.values() if run.name == FORGED else tests[::5]:
        shown += on_a_terminal("show", result, f"{test['file_path']}::{test['id']}", cwd=run.parent)
    assert "window.pwned" in shown
    assert "\\x1b[31mred" in shown  # the submission's own colour is words
    assert unseen(COLOUR.sub("", shown), "\r\n\t") == set()
    assert len(shown) < 2 * MIB


COMMANDS = {
    "eval-snapshot": ["eval-snapshot", f"{EVALUATED}/hostile/checkpoint_1/snapshot", "-c", "1", "-o", "out"],
    "rerun": ["rerun", f"{EVALUATED}/hostile/checkpoint_1", "test_output[closes]"],
    "verify": ["verify", EVALUATED],
    "verify forged": ["verify", FORGED],
    "compare": ["compare", FORGED, "other"],
}


@pytest.mark.parametrize("name", ["verify", *in_long(*(name for name in COMMANDS if name != "verify"))])
def test_other_commands_on_a_terminal(runs_folder, name):
    problem = ["-p", "problems/hostile"] if name in ("eval-snapshot", "rerun") else []
    shown = on_a_terminal(*COMMANDS[name], *problem, cwd=runs_folder, statuses=(0, 1, 2, 3))
    assert unseen(COLOUR.sub("", shown), "\r\n\t") == set()
    assert "window.pwned" in shown
    assert len(shown) < MIB


@pytest.fixture
def exported(run):
    def export(name):
        data = (call_for_bytes if name == "parquet" else call)("export", run.name, "--format", name, cwd=run.parent)
        assert len(data) < 8 * MIB
        return data

    return export


@pytest.fixture
def tests(run):
    return json.loads((run / "hostile/checkpoint_1/evaluation.json").read_text())["tests"]


def test_junit_has_every_test_and_no_other_elements(exported, tests):
    data = exported("junit")
    document = ElementTree.fromstring(data)
    assert len(list(document.iter("testcase"))) == len(tests)
    assert {element.tag for element in document.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped", "system-out",
        "system-err",
    }  # fmt: skip
    assert CLOSES in "".join(document.itertext())
    assert unseen(data.decode(), MARKS) == set()


def test_ctrf_has_every_test_and_no_control_characters(exported, tests):
    data = exported("ctrf")
    found = json.loads(data)["results"]["tests"]
    assert len(found) == len(tests)
    assert CLOSES in "".join(str(test.get("message")) + str(test.get("trace")) for test in found)
    assert unseen(data.decode(), MARKS) == set()


def test_csv_has_every_test_and_no_formulas(exported, tests):
    rows = list(csv.DictReader(io.StringIO(exported("csv").decode("utf-8-sig"), newline="")))
    assert len(rows) == len(tests)
    assert {None} & set(rows[0]) == set()
    assert sum(row["passed"].lower() == "true" for row in rows) == 2
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@", "\t", "\r"))]


def test_parquet_has_every_test(exported, tests):
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(exported("parquet")))
    assert table.num_rows == len(tests)
    assert sum(table.column("passed").to_pylist()) == 2


SHAPE = "() => [...document.querySelectorAll('*')].map((e) => e.tagName).filter((name) => name !== 'OPTION')"
OURS = {"HTML", "HEAD", "META", "TITLE", "STYLE", "BODY", "MAIN", "NOSCRIPT", "SCRIPT", "FOOTER"}


def outline(page):
    """The document's own elements, which no text may add to."""
    return [name for name in page.evaluate(SHAPE) if name in OURS]


def test_hostile_texts_add_no_elements_to_the_page(runs_folder, run, visit, picture, tmp_path):
    call("report", run.name, "-o", tmp_path / "report.html", cwd=runs_folder)
    assert (tmp_path / "report.html").stat().st_size < 2 * MIB
    page = visit(tmp_path / "report.html")
    page.get_by_role("heading", level=2).first.wait_for()
    before = outline(page)
    assert before.count("TITLE") == 1
    assert {"IMG", "B", "IFRAME"} & set(page.evaluate(SHAPE)) == set()
    page.locator(".failure").first.wait_for()
    shown_first = page.locator("main").inner_text()
    assert CLOSES in shown_first
    assert unseen(shown_first, MARKS + "\xa0") == set()
    page.get_by_role("link", name="in the timeline").first.click()
    rows = page.get_by_role("grid").locator("tbody").get_by_role("rowheader")
    shown = ""
    for number in range(0, rows.count(), 5):
        rows.nth(number).click()
        dialog = page.get_by_role("dialog")
        dialog.wait_for()
        shown += dialog.inner_text()
        if not number:
            picture(page, "forged" if run.name == FORGED else "evaluated")
        assert {"IMG", "B", "IFRAME"} & set(page.evaluate(SHAPE)) == set()
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
    page.get_by_role("link", name="Charts").click()
    assert outline(page) == before
    assert page.evaluate("typeof window.pwned") == "undefined"
    assert CLOSES in shown
    assert "\\x1b[31mred" in shown
    assert unseen(shown, MARKS + "\xa0") == set()


class Elements(HTMLParser):
    """Those of a document with their attributes, and the text that is no code."""

    def __init__(self):
        super().__init__()
        self.found, self.inside, self.prose = [], [], ""

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, sorted(name for name, _ in attributes)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        assert self.inside.pop() == tag

    def handle_data(self, data):
        self.prose += "" if {"code", "pre"} & set(self.inside) else data


def test_hostile_texts_add_no_elements_to_markdown(exported):
    from markdown_it import MarkdownIt

    text = exported("markdown").decode()
    assert len(text) < 65_536
    assert unseen(text, MARKS) == set()
    page = Elements()
    page.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    assert {tag for tag, _ in page.found} <= {
        "h1", "h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "code",
        "strong", "em", "ul", "li", "br", "hr",
    }  # fmt: skip
    assert {name for _, names in page.found for name in names} <= {"style", "class"}
    assert page.inside == []
    assert not re.search("pwned|@|127", page.prose)
