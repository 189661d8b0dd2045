"""The page of a comparison, without a browser: what it holds, and that no text breaks out of it."""

import base64
import gzip
import json
from html.parser import HTMLParser

import pytest

from slop_code.comparison.diff import compare_sides
from slop_code.errors import UsageError
from slop_code.evaluation.policy import NAMED_POLICIES, PassPolicy, parse_policy
from slop_code.reporting.html.compare_page import comparison_data, write_comparison
from tests.factories import write_run

HOSTILE = "</script><script>window.pwned=1</script><!--<img src=x onerror=alert(1)>\u2028\x00\x1b[2J\ud800"


def unpacked(packed):
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def made(*folders, **options):
    data, parts = comparison_data(*compare_sides(folders, PassPolicy.ALL_CASES, samples=True), **options)
    return data, {name: unpacked(part) for name, part in parts.items()}


def test_a_differing_test_has_its_texts(tmp_path):
    base = write_run(tmp_path / "base", {"words": ["++", "+"]}, text="of the base")
    other = write_run(tmp_path / "other", {"words": ["+-", "+s"]}, text="of the other")
    data, parts = made(base, other)
    (pair,) = data["pairs"]
    lost, added = pair["tests"]
    assert lost[:6] == [0, "test_checkpoint_1.py::test_1", "Core", 0, {"passed": 1}, {"failed": 1}]
    assert data["changes"][added[3]] == "added"
    assert pair["by_policy"][0]["verdict"].startswith("other passes 2 checkpoints fewer than base")
    assert list(parts) == ["0/0", "0/1"]
    (differing,) = parts["0/0"]["tests"]
    texts = [None if number is None else parts["0/0"]["texts"][number] for number in parts["0/0"]["text_numbers"][0]]
    assert differing == [0, 0, 1]
    assert texts == [
        *[None] * 6,
        "of the other",
        "python main.py of the other",
        "of the other",
        None,
        "of the other",
        None,
    ]
    assert parts["0/0"]["folders"]["1"] == f"{other}/words/checkpoint_1"
    assert parts["0/1"]["tests"] == [[1, None, 1]]


def test_every_named_policy_has_its_verdicts(tmp_path):
    """Also where the comparison itself is by an expression. Tests differ by no policy."""
    base = write_run(tmp_path / "base", {"words": ["++", "!"]})
    other = write_run(tmp_path / "other", {"words": ["+-", "+"]})
    compared = compare_sides([base, other], parse_policy("core >= 50%"))
    data, _ = comparison_data(*compared)
    (pair,) = data["pairs"]
    assert data["policies"] == ["core >= 50%", *NAMED_POLICIES]
    shown = dict(zip(data["policies"], pair["by_policy"], strict=True))
    for policy, passed in {"core >= 50%": 1, "any-case": 1, "all-cases": 0, "strict": 0, "core": 0}.items():
        first, second = shown[policy]["checkpoints"]
        assert (policy, first["base"], first["other"]) == (policy, [1, 1], [passed, 1])
        assert first["change"] == (None if passed else "lost")
        assert second["base"] == [0, 0]
        assert f"({policy}): gained 0 tests, lost 1" in shown[policy]["verdict"]
        assert shown[policy]["lost"]


def test_of_several_runs_one_that_did_not_pass_is_shown(tmp_path):
    for number, mark in enumerate("++-"):
        write_run(tmp_path / "a" / f"run_{number}", {"words": [mark]}, text=f"of run {number}")
    base = write_run(tmp_path / "base", {"words": ["+"]})
    _, parts = made(base, tmp_path / "a")
    assert parts["0/0"]["tests"] == [[0, 0, 3]]
    assert "of run 2" in parts["0/0"]["texts"]


def test_only_tests_that_differ_are_in_the_page(tmp_path):
    base = write_run(tmp_path / "base", {"words": ["+-"]}, text="secret")
    data, parts = made(base, write_run(tmp_path / "other", {"words": ["+-"]}, text="secret"))
    assert (data["pairs"][0]["tests"], parts) == ([], {})


def test_texts_have_an_end(tmp_path):
    """One text is cut, and where all of them together are too much they are left out."""
    base = write_run(tmp_path / "base", {"words": ["+", "+"]})
    other = write_run(tmp_path / "other", {"words": ["-", "-"]}, text="x" * 100_000)
    _, parts = made(base, other)
    head, left_out, tail = parts["0/0"]["texts"][0]
    assert len(head) + left_out + len(tail) == 100_000
    assert len(json.dumps(parts)) < 50_000
    _, parts = made(base, other, limit=0)
    assert [part["texts"] for part in parts.values()] == [[], []]
    assert parts["0/0"]["text_numbers"] == [[*[None] * 6, -1, -1, -1, None, -1, None]]


def test_equal_names_get_a_number(tmp_path):
    alike = ["a\nb", r"a\nb"]
    base = write_run(tmp_path / "base", {"words": ["++", "+"]}, names=alike)
    data, _ = made(base, write_run(tmp_path / "other", {"words": ["--", "-"]}, names=alike))
    names = [(test[0], test[1].partition("::")[2]) for test in data["pairs"][0]["tests"]]
    assert names == [(0, r"a\nb"), (0, r"a\nb (test 2)"), (1, r"a\nb")]


def test_a_result_that_is_gone_meanwhile_has_no_texts(tmp_path):
    base, other = write_run(tmp_path / "base", {"words": ["+"]}), write_run(tmp_path / "other", {"words": ["-"]})
    compared = compare_sides([base, other], PassPolicy.ALL_CASES)
    (other / "words/checkpoint_1/evaluation.json").unlink()
    _, parts = comparison_data(*compared)
    assert unpacked(parts["0/0"])["text_numbers"] == [[None] * 12]


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)

    def handle_comment(self, data):
        self.found.append("comment")


def texts_in(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(inner)


def page_of(folder, text, names, base="base"):
    base = write_run(folder / base, {"words": ["++", "!"]}, text=text, names=names)
    other = write_run(folder / "other", {"words": ["+-", "+"]}, text=text, names=names)
    path = folder / "compare.html"
    write_comparison(*compare_sides([base, other], PassPolicy.ALL_CASES), path)
    return path.read_text(encoding="utf-8")


def test_no_text_becomes_markup(tmp_path):
    harmless = page_of(tmp_path / "harmless", "harmless", ["test_a", "test_b"])
    hostile = page_of(tmp_path / "hostile", HOSTILE, ["test_a", f"test_b[{HOSTILE}]"], base="<img src=x>")
    assert Elements(hostile).found == Elements(harmless).found
    assert "pwned" not in hostile
    data, parts = made(tmp_path / "hostile/<img src=x>", tmp_path / "hostile/other")
    assert "window.pwned=1" in data["pairs"][0]["tests"][0][1]
    assert all(text.replace("\n", "").isprintable() for text in texts_in([data, list(parts.values())]))


def test_only_a_page_of_slop_code_is_overwritten(tmp_path):
    page_of(tmp_path, "once", [])
    page_of(tmp_path, "twice", [])
    (tmp_path / "compare.html").write_text("mine")
    with pytest.raises(UsageError, match="no page that slop-code wrote"):
        page_of(tmp_path, "thrice", [])
    assert (tmp_path / "compare.html").read_text() == "mine"
