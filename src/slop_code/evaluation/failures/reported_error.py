"""Error of the submission in a failure message: an uncaught exception, or an exit status with standard error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.failures.error_lines import outcome_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINE_LENGTH = 2000
"""Characters of a line that are looked at; a line may have megabytes."""
SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")

_FRAME = re.compile(r'File "([^"]*)", line (\d{1,9})')
_EXCEPTION = re.compile(r"[\w.]{0,200}(?:Error|Exception|Exit|Interrupt|Iteration|Warning)(?:: |$)")
_OUTPUT_HEADS = ("stderr:", "output:")
_PROCESS = "CompletedProcess(args="
_RETURN_CODE = re.compile(r", returncode=(-?\d{1,10}), stdout=")
_STDERR = ", stderr="
_STATUS_ASSERTION = re.compile(r"(?:AssertionError: )?assert (-?\d{1,10}) == (-?\d{1,10})$")


@dataclass(frozen=True, slots=True)
class ReportedError:
    text: str
    syntax_file: str | None = None
    """Name of the file with a syntax error, where that is the error."""


def reported_error(lines: Sequence[str]) -> ReportedError | None:
    """`lines` are those of a failure message that say why."""
    blocks = outcome_blocks(lines)
    if blocks is None:
        return _exception(lines) or _process_error(lines)
    status, output, wanted = blocks.actual[0], _output(blocks.actual), _output(blocks.expected)
    if status != blocks.expected[0]:
        return _exit_status_error(status, output)
    return _exception(output) if any(wanted) and wanted != output else None


def _exit_status_error(status: str, output: Sequence[str]) -> ReportedError | None:
    """An exception stands for its exit status, which is always 1."""
    last = next((line.strip() for line in reversed(output) if line.strip()), None)
    return _exception(output) or (ReportedError(f"{status}, {last}") if last else None)


def _output(block: Sequence[str]) -> Sequence[str]:
    """The last part of a block, with the standard error or all output of the submission."""
    heads = [number for number, line in enumerate(block) if line.strip() in _OUTPUT_HEADS]
    return block[heads[-1] + 1 :] if heads else []


def _exception(lines: Sequence[str]) -> ReportedError | None:
    """The exception below the last frame of a traceback."""
    for number in range(len(lines) - 1, -1, -1):
        frame = _FRAME.search(lines[number][:MAX_LINE_LENGTH])
        if frame is not None:
            below = (line.strip()[:MAX_LINE_LENGTH] for line in lines[number + 1 :])
            text = next((line for line in below if _EXCEPTION.match(line)), None)
            return None if text is None else _with_location(text, *frame.groups())
    return None


def _with_location(text: str, file: str, line: str) -> ReportedError:
    if not text.startswith(SYNTAX_ERRORS):
        return ReportedError(text)
    name = file.rpartition("/")[2]
    return ReportedError(f"{text} in {name} line {line}", name)


def _process_error(lines: Sequence[str]) -> ReportedError | None:
    """Of an assertion about the exit status, or about a call that ended with an error and no output.

    pytest prints the `CompletedProcess` of `subprocess.run` with such an assertion.
    """
    for line in lines:
        start = line.find(_PROCESS)
        code = _RETURN_CODE.search(line, start) if start >= 0 else None
        if code is None:
            continue
        stderr, rest = _literal(line[line.rfind(_STDERR, code.end()) + len(_STDERR) :])
        is_status = rest == ".returncode"
        if code[1] != "0" and (is_status or line.startswith(("''", "None"), code.end())):
            error = _exit_status_error(f"exit status {code[1]}", stderr)
            if error is not None:
                return error
        statuses = next(filter(None, map(_STATUS_ASSERTION.match, map(str.strip, lines))), None)
        if is_status and statuses is not None:
            return ReportedError(f"expected exit status {statuses[2]}, found exit status {statuses[1]}")
        return None
    return None


def _literal(text: str) -> tuple[list[str], str]:
    """The lines of the string literal that the text begins with, and what follows the parenthesis behind it."""
    text = text.removeprefix("b")
    end = text.rfind(f"{text[:1]})")
    if text[:1] not in ("'", '"') or end < 1:
        return [], text.rpartition(")")[2]
    return text[1:end].replace("\\'", "'").split("\\n"), text[end + 2 :]
