"""The driver's output: figures, or a reason for anything unexpected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slop_code.quality.scb_check_driver import MARK, MAX_REASON_LENGTH
from slop_code.quality.scb_check_output import parse_output

REPORT = {
    "verbosity": 0.5, "erosion": 0.25, "cog_erosion": 0.0, "files_scanned": 2, "total_loc": 10,
    "verbosity_flagged_loc": 5, "clone_loc": 4, "ast_grep_flagged_loc": 1, "total_functions": 3,
    "high_cc_functions": 1, "high_cog_functions": 0,
    "syntax_by_language": {"python": {"tree_count": 2, "node_count": 9}},
}  # fmt: skip
COPIES = {"a.py": "a.py", "b.py": "b.py"}


def line(report: Any = REPORT, **keys: Any) -> str:
    return MARK + json.dumps({"report": report, "max_complexity": 12, "left_out": {}, **keys})


def test_figures_are_those_of_the_report():
    figures = parse_output(f"a warning\n\n{line()}\n", COPIES).figures

    assert figures is not None
    assert (figures.verbosity, figures.erosion, figures.cog_erosion) == (0.5, 0.25, 0.0)
    assert (figures.source_lines, figures.files, figures.functions, figures.max_complexity) == (10, 2, 3, 12)
    assert (figures.flagged_lines, figures.clone_lines, figures.high_cc_functions) == (5, 4, 1)
    assert figures.languages == {"python": 2}


def test_a_file_that_was_left_out_is_not_counted():
    output = parse_output(line({**REPORT, "files_scanned": 1}, left_out={"b.py": "it has syntax errors"}), COPIES)

    assert output.figures is not None
    assert output.left_out == {"b.py": "it has syntax errors"}


def test_an_error_of_the_driver_is_the_reason():
    output = parse_output(MARK + json.dumps({"error": "none", "left_out": {"a.py": "why"}}), COPIES)

    assert (output.figures, output.reason, output.left_out) == (None, "none", {"a.py": "why"})


@pytest.mark.parametrize(
    "log",
    [
        "",
        "Segmentation fault",
        line() + "\n" + line(),
        MARK,
        MARK + "[]",
        MARK + "null",
        MARK + '{"report": {}}',
        MARK + "[" * 100_000,
        line({}),
        line([]),
        line({**REPORT, "verbosity": 1.5}),
        line({**REPORT, "verbosity": float("nan")}),
        line({**REPORT, "erosion": float("inf")}),
        line({**REPORT, "erosion": "0.1"}),
        line({**REPORT, "total_loc": -1}),
        line({**REPORT, "total_loc": 1.5}),
        line({**REPORT, "files_scanned": 0}),
        line({**REPORT, "files_scanned": 1}),
        line({**REPORT, "files_scanned": 3}),
        line({**REPORT, "syntax_by_language": {"python": 2}}),
        line(max_complexity="12"),
        line(left_out={"../etc/passwd": "why"}),
        line(left_out={"a.py": 1}),
        line(left_out=["a.py"]),
        line(report=None),
        line().replace("0.5", "1" * 5000),
    ],
)
def test_anything_unexpected_is_a_reason_and_never_figures(log):
    output = parse_output(log, COPIES)

    assert output.figures is None
    assert output.reason
    assert len(output.reason) <= MAX_REASON_LENGTH
