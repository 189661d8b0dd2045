"""Parser of the driver's output: one line of JSON in a log, to figures or to a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from slop_code.evaluation.result_files.stored_record import first_mistake
from slop_code.quality.quality_record import QualityFigures
from slop_code.quality.scb_check_driver import MARK, MAX_REASON_LENGTH

if TYPE_CHECKING:
    from collections.abc import Collection

FIELDS = {
    "verbosity": "verbosity",
    "erosion": "erosion",
    "cog_erosion": "cog_erosion",
    "total_loc": "source_lines",
    "files_scanned": "files",
    "total_functions": "functions",
    "high_cc_functions": "high_cc_functions",
    "high_cog_functions": "high_cog_functions",
    "verbosity_flagged_loc": "flagged_lines",
    "clone_loc": "clone_lines",
}
"""Keys of scb-check's report, to fields of the figures."""


@dataclass(frozen=True, slots=True)
class ScbCheckOutput:
    figures: QualityFigures | None = None
    reason: str | None = None
    """Why there are no figures."""

    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons by the path of the copy."""


def parse_output(log: str, copies: Collection[str]) -> ScbCheckOutput:
    """`copies` has paths of the files that the driver was given. Anything unexpected is a reason, and never figures."""
    lines = [line for line in log.splitlines() if line.startswith(MARK)]
    try:
        if len(lines) != 1:
            raise ValueError("it printed no figures")
        answer = json.loads(lines[0].removeprefix(MARK))
        left_out = _left_out(answer["left_out"], copies)
        if "error" in answer:
            return ScbCheckOutput(reason=_text(answer["error"]), left_out=left_out)
        figures = _figures(answer)
    except ValidationError as error:
        return ScbCheckOutput(reason=f"scb-check: unexpected output: {first_mistake(error)}"[:MAX_REASON_LENGTH])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return ScbCheckOutput(reason=f"scb-check: unexpected output: {error}"[:MAX_REASON_LENGTH])
    if figures.files != len(copies) - len(left_out):
        return ScbCheckOutput(
            reason=f"scb-check: {figures.files} files measured, expected {len(copies) - len(left_out)}"
        )
    return ScbCheckOutput(figures, left_out=left_out)


def _left_out(reasons: dict[str, str], copies: Collection[str]) -> dict[str, str]:
    if unknown := [path for path in reasons if path not in copies]:
        raise ValueError(f"an unknown file {unknown[0]!r}")
    return {path: _text(reason) for path, reason in reasons.items()}


def _text(reason: object) -> str:
    if not isinstance(reason, str):
        raise TypeError("a reason that is no text")
    return reason[:MAX_REASON_LENGTH]


def _figures(answer: dict[str, Any]) -> QualityFigures:
    report = answer["report"]
    languages = {name: facts["tree_count"] for name, facts in report["syntax_by_language"].items()}
    fields = {field: report[key] for key, field in FIELDS.items()}
    return QualityFigures.model_validate(
        {**fields, "max_complexity": answer["max_complexity"], "languages": languages}, strict=True
    )
