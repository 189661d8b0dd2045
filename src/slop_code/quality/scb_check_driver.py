"""Driver of scb-check, for the Python of its own environment: measures all files below a folder, and prints JSON.

The command `scb-check check --report --include-all` has no largest complexity and does not name the files that it could
not parse. Where ast-grep fails it counts no findings, and one file that it cannot analyse ends it. So the driver calls
the functions behind that command. The lock pins their version.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
from pathlib import Path
from typing import Any

MARK = "scb-check-figures "
MEMORY = 1536 << 20
PROCESSORS = 4
WHOLE_S = 60.0
FILE_S = 10.0
"""Seconds of processor time for all files together, and for one alone, which a busy machine does not change."""

MAX_REASON_LENGTH = 200


class TimeLimitError(Exception):
    """An analysis took too much processor time."""


class AstGrepError(Exception):
    """ast-grep failed; scb-check itself would go on without its findings."""


class _FailingLogger:
    """In the place of the logger of scb-check's module for ast-grep, which only warns."""

    def warning(self, event: str, **_facts: object) -> None:
        raise AstGrepError(event)


def main(root: Path) -> None:
    _isolate()
    from scb_check.analysis import astgrep
    from scb_check.pipeline import analyze_files

    astgrep.logger = _FailingLogger()
    files = sorted(path for path in root.rglob("*") if path.is_file())
    failures: dict[Path, str] = {}
    result = _attempt(analyze_files, files, WHOLE_S)
    if isinstance(result, str):  # one file must not decide about the others
        outcomes = {file: _attempt(analyze_files, [file], FILE_S) for file in files}
        failures = {file: outcome for file, outcome in outcomes.items() if isinstance(outcome, str)}
        result = _attempt(analyze_files, [file for file in files if file not in failures], WHOLE_S)
    if not isinstance(result, str):
        unparsed = [file for file in files if file not in failures and file not in result.source_lines_by_file]
        failures |= dict.fromkeys(unparsed, "it has syntax errors")
        result = result if result.source_lines_by_file else "none of the files can be parsed"
    left_out = {file.relative_to(root).as_posix(): reason for file, reason in failures.items()}
    answer = {"error": result} if isinstance(result, str) else _figures(result)
    print(f"\n{MARK}{json.dumps({**answer, 'left_out': left_out})}", flush=True)


def _isolate() -> None:
    """scb-check prefers a global `sg`, and ast-grep looks for a configuration from the current folder upwards."""
    os.environ["PATH"] = os.path.dirname(sys.executable)
    os.chdir("/")
    # ast-grep starts a thread for each processor, and on a large machine their stacks alone would exceed the memory.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, random.sample(processors, min(len(processors), PROCESSORS)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, _raise_time_limit)


def _raise_time_limit(_number: int, _frame: object) -> None:
    raise TimeLimitError


def _attempt(analyze_files: Any, files: list[Path], seconds: float) -> Any:
    """The analysis, or why there is none."""
    if not files:
        return "none of the files can be analysed"
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return analyze_files(tuple(files), include_all=True)
    except TimeLimitError:
        return f"it took more than {seconds:g} s of processor time"
    except RecursionError:
        return "it is nested too deeply"
    except MemoryError:
        return "it took too much memory"
    except Exception as error:  # noqa: BLE001  (any error of scb-check is one of these files)
        return f"{type(error).__name__}: {error}"[:MAX_REASON_LENGTH]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _figures(result: Any) -> dict[str, Any]:
    from scb_check.reporting.score import compute_report

    complexities = [function.cyc_complexity for function in result.flags.findings.all_functions]
    return {"report": compute_report(result.flags).to_dict(), "max_complexity": max(complexities, default=None)}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
