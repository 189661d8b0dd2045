from pathlib import Path

import pytest

from slop_code.evaluation.report import CorrectnessResults
from slop_code.reporting.verification_lines import (
    NEVER_CHECKED,
    SHOWN_FINDINGS,
    finding_text,
    from_first_difference,
    verification_totals,
    verified,
)
from slop_code.verification.contradictions import Discrepancy
from slop_code.verification.verify import Verification

STORED = CorrectnessResults.load(Path(__file__).parents[1] / "data" / "results" / "stored" / "evaluation.json")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (Discrepancy("status", "f::t", "passed", "failed"), "f::t status: stored passed, the raw reports say failed"),
        (
            Discrepancy("test", "f::t", "passed", "no such test"),
            "f::t: stored passed, the raw reports say no such test",
        ),
        (Discrepancy("passed", "passed.any", "true", "false"), "passed.any: stored true, the raw reports say false"),
        (Discrepancy("raw report", ".scbench/x.json", "whole", "is missing"), ".scbench/x.json is missing"),
        (Discrepancy("digest", "digests.tests", "a", "b in c"), "digests.tests: stored a, the problem has b in c"),
        (
            Discrepancy("snapshot", "digests.submission", "a", "b"),
            "digests.submission: stored a, the snapshot is not what was evaluated, it has b",
        ),
        (Discrepancy("summary", "state", "a", "b"), "state: stored a, checkpoint_results.jsonl says b"),
        (
            Discrepancy("quarantine", "f::t", "quarantined", "not quarantined"),
            "f::t: stored quarantined, by tests/flaky.json of the problem it is not quarantined",
        ),
        (Discrepancy("contradiction", "f::t", "passed in x", "failed in y"), "f::t: passed in x, but failed in y"),
        (Discrepancy("status", "f::status", "a", "b"), "f::status status: stored a, the raw reports say b"),
        (Discrepancy("status", "f::\x1b[2J\n", "a", "b"), "f::\\x1b[2J\\n status: stored a, the raw reports say b"),
    ],
)
def test_each_finding_is_one_sentence(finding, words):
    assert finding_text(finding) == words


def test_long_texts_are_shown_from_first_difference():
    one, other = from_first_difference("x" * 500 + "a" + "y" * 10, "x" * 500 + "b" + "y" * 10)
    assert (one, other) == ("..." + "x" * 30 + "ayyyyyyyyyy", "..." + "x" * 30 + "byyyyyyyyyy")
    assert from_first_difference("a" * 200, "b" * 200) == ("a" * 200, "b" * 200)


def test_a_verified_result_has_one_line_and_findings_are_bounded():
    words = "here: verified: 8 tests, 4 groups, 7 policies from json-report"
    assert [text for text, _ in verified("here", Verification(STORED, [], []))] == [words]
    with_problem = Verification(STORED, [], [], with_problem=True)
    assert [text for text, _ in verified("here", with_problem)] == [f"{words}, and the problem's tests and config"]
    finding = Discrepancy("status", "f::t", "passed", "failed")
    said = [text for text, _ in verified("here", Verification(STORED, [finding] * 30, ["the rest"]))]
    assert said[0] == "here: DIFFERS from its raw reports: 30 findings"
    assert said[-2:] == ["  ... and 10 more; --json has them all", "  not checked: the rest"]
    assert len(said) == SHOWN_FINDINGS + 3


def test_the_last_lines_count_verified_results():
    never = f"not checked: {NEVER_CHECKED}"
    assert [text for text, _ in verification_totals(1, 1)] == [never]
    assert [text for text, _ in verification_totals(2, 3)] == ["2 of 3 results verified", never]
    assert [text for text, _ in verification_totals(0, 2)] == ["0 of 2 results verified"]
