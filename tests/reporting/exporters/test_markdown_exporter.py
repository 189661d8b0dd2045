"""The summary for a pull request: short enough, and with no markup but its own."""

import re

import pytest
from markdown_it import MarkdownIt

from slop_code.evaluation.policy import parse_policy
from slop_code.reporting.exporters.markdown_exporter import (
    MAX_CHECKPOINT_FAILURES,
    MAX_DOCUMENT_BYTES,
    MAX_FAILURES,
    code,
    ending,
    within,
)
from slop_code.runs.checkpoint_lines import Regressions

CELL = re.compile(r"(?<!\\)\|")


@pytest.fixture
def markdown(export):
    return lambda *entries, **options: export("markdown", *entries, **options).decode("utf-8")


def table_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines]


def test_the_verdict_comes_first_and_a_row_for_each_checkpoint(markdown, make_entry, make_test):
    error = make_test("b", "failed", group_type="Error")
    text = markdown(
        make_entry(make_test()),
        make_entry(
            make_test(),
            error,
            checkpoint="checkpoint_2",
            regressions=Regressions(since="checkpoint_1", introduced=1, repaired=2),
        ),
    )
    assert text.splitlines()[0] == "**NOT PASSED** (`all-cases`): 1 of 2 checkpoints passed, 1 regression"
    assert text.splitlines()[2] == (
        "rates: strict 1 of 2 solved (mean 75.0%), isolated 1 of 2 solved (mean 75.0%), core 2 of 2 solved (mean 100%)"
    )
    assert table_of(text) == [
        ["checkpoint", "verdict", "core", "error", "broke", "recovered"],
        ["---", "---", "--:", "--:", "--:", "--:"],
        ["`words/checkpoint_1`", "passed", "1/1", "", "", ""],
        ["`words/checkpoint_2`", "**not passed**", "1/1", "0/1", "1", "2"],
    ]


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        ("core-cases", "**PASSED** (`core-cases`): 1 of 1 checkpoint passed"),
        ("error >= 50%", "**NOT PASSED** (`error >= 50%`): 0 of 1 checkpoint passed"),
    ],
)
def test_the_verdict_is_by_the_policy(markdown, make_entry, make_test, policy, line):
    entry = make_entry(make_test(), make_test("b", "failed", group_type="Error"))
    assert markdown(entry, policy=parse_policy(policy)).splitlines()[0] == line


def test_without_a_verdict_it_says_so_and_why(markdown, make_entry, make_test):
    text = markdown(make_entry(make_test(), reason="out of\nmemory"), make_entry(gone="no snapshot", problem="sums"))
    assert text.splitlines()[0] == "**NO VERDICT** (`all-cases`): 0 of 2 checkpoints passed, 2 without a verdict"
    assert [row[1] for row in table_of(text)[2:]] == ["**no verdict**: `out of`", "**no verdict**: `no snapshot`"]
    assert "1/1" not in text


def test_several_runs_have_different_labels(markdown, make_entry, make_test):
    text = markdown(make_entry(make_test()), make_entry(make_test(), run="tuesday"))
    assert [row[0] for row in table_of(text)[2:]] == ["`monday/words/checkpoint_1`", "`tuesday/words/checkpoint_1`"]


def test_the_first_failures_are_listed(markdown, make_entry, make_test):
    tests = [make_test(f"test_{number}", "failed", failure_message=f"E   no {number}") for number in range(8)]
    text = markdown(make_entry(*tests))
    assert text.count("<details>") == text.count("</details>") == MAX_CHECKPOINT_FAILURES
    assert "<code>words/checkpoint_1 test_checkpoint_1.py::test_0</code></summary>\n\n```text\nE   no 0\n```" in text
    assert f"{8 - MAX_CHECKPOINT_FAILURES} more tests did not pass." in text


def structure(text):
    """What a reader makes of it, without the texts: `<code>` in HTML, code spans and fences."""

    def walk(tokens):
        for token in tokens:
            html = re.sub("<code>[^<>]*</code>", "", token.content) if token.type.startswith("html") else ""
            yield token.type, token.tag, html
            yield from walk(token.children or [])

    return list(walk(MarkdownIt("commonmark").enable("table").parse(text)))


def test_hostile_text_stays_text(markdown, hostile, make_entry, make_test):
    harmless = make_entry(make_test("a", "failed"), make_test("b", "error"), make_test("c", "skipped"))
    bad = markdown(hostile, make_entry(gone=hostile.line.problem, run=hostile.line.run))
    good = markdown(harmless, make_entry(gone="no snapshot"))
    assert structure(bad) == structure(good)
    assert ("html_block", "", "<details><summary>failed Core </summary>\n") in structure(bad)
    assert not re.search("[\x1b\x9b\x07\r\u202e\u2028]", bad)
    assert "@everyone" in bad


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("", "`(empty)`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("a``", "``` a`` ```"),
        ("a|b", r"`a\|b`"),
        ("a\\|b", r"`a\ \|b`"),
        ("a\nb", r"`a\nb`"),
        ("<b>@me", "`<b>@me`"),
        ("a\\", r"`a\`"),
        ("x" * 121, f"`{'x' * 120} [... 1 characters]`"),
    ],
)
def test_code_is_quoted_with_enough_backticks(text, shown):
    assert code(text) == shown


@pytest.mark.e2e
def test_it_is_never_too_long(markdown, make_entry, make_test):
    tests = [make_test(f"test_{n}", "failed", failure_message="E   ☃`\n" * 1000) for n in range(3)]
    many = [make_entry(*tests, checkpoint=f"{'☃|' * 100}{number}") for number in range(400)]
    text = markdown(*many)
    assert MAX_DOCUMENT_BYTES * 0.8 < len(text.encode()) <= MAX_DOCUMENT_BYTES
    assert text.count("<details>") == text.count("</details>") == text.count("```text") > 5
    assert re.search(r"\d+ more checkpoints: not shown here\.", text)
    assert re.search(r"\d+ more tests did not pass\.\n$", text)


@pytest.mark.e2e
def test_of_very_many_checkpoints_those_that_did_not_pass_are_seen(markdown, make_entry, make_test):
    many = [make_entry(make_test(), checkpoint=f"{'x' * 100}_{number}") for number in range(400)]
    many.append(make_entry(make_test(status="failed"), checkpoint="the_last"))
    shown = [row[0] for row in table_of(markdown(*many))]
    assert shown[-1] == "`words/the_last`"
    assert len(shown) < 300


def test_failures_are_kept_in_bounds(markdown, make_entry, make_test):
    many = [make_entry(make_test(status="failed"), checkpoint=f"c{number}") for number in range(MAX_FAILURES + 5)]
    assert markdown(*many).count("<details>") == MAX_FAILURES


@pytest.mark.parametrize(
    ("pieces", "limit", "kept"),
    [([], 5, []), (["a", "b"], 4, ["a", "b"]), (["a", "b"], 3, ["a"]), (["☃"], 3, []), (["abcdef", "a"], 4, [])],
)
def test_pieces_are_kept_up_to_a_limit(pieces, limit, kept):
    assert within(pieces, limit) == kept


def test_a_message_keeps_its_end():
    text = ending("\n".join(f"{number:03} {'x' * 95}" for number in range(100)))
    assert text.startswith("[80 lines left out]\n080 ")
    assert text.endswith(f"\n099 {'x' * 95}")
    assert ending("a\nb") == "a\nb"
