"""Driver of scb-check, for the Python of its own environment: measures all files below a folder, and prints JSON.

The command `scb-check check --report --include-all` has no largest complexity and does not name the files that it could
not parse. Where ast-grep fails it counts no findings, and one file that it cannot analyse ends it. So the driver calls
the functions behind that command, each time in a process of its own: a parser in C that crashes or does not end takes
no other file along. The lock pins their version.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

MARK = "scb-check-figures "
MEMORY = 1536 << 20
PROCESSORS = 4
WHOLE_S = 60
FILE_S = 10
ALONE_S = 300
"""Seconds of processor time, which a busy machine does not change: of an analysis of all files together, of one alone,
and of all of these. Each process of ast-grep has the same limit again."""

MAX_REASON_LENGTH = 200
NONE_PARSED = "none of the files can be parsed"
SYNTAX_ERRORS = "it has syntax errors"


class AstGrepError(Exception):
    """ast-grep failed; scb-check itself would go on without its findings."""


class _FailingLogger:
    """In the place of the logger of scb-check's module for ast-grep, which only warns."""

    def warning(self, event: str, **_facts: object) -> None:
        raise AstGrepError(event)


def main(root: Path) -> None:
    _isolate()
    files = sorted(path for path in root.rglob("*") if path.is_file())
    failures: dict[Path, str] = {}
    result = analyse_apart(files, WHOLE_S)
    if isinstance(result, str):  # one file must not decide about the others
        failures = failures_alone(files)
        result = analyse_apart([file for file in files if file not in failures], WHOLE_S)
    if not isinstance(result, str):
        measured = set(result.pop("measured"))
        failures |= {file: SYNTAX_ERRORS for file in files if file not in failures and str(file) not in measured}
        result = result if measured else NONE_PARSED
    left_out = {file.relative_to(root).as_posix(): reason for file, reason in failures.items()}
    answer = {"error": result} if isinstance(result, str) else result
    print(f"\n{MARK}{json.dumps({**answer, 'left_out': left_out})}", flush=True)


def _isolate() -> None:
    """scb-check prefers a global `sg`, and ast-grep looks for a configuration from the current folder upwards."""
    os.environ["PATH"] = os.path.dirname(sys.executable)
    os.chdir("/")
    # ast-grep starts a thread for each processor, and on a large machine their stacks alone would exceed the memory.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, random.sample(processors, min(len(processors), PROCESSORS)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def failures_alone(files: list[Path]) -> dict[Path, str]:
    """The files that cannot be analysed by themselves, with the reason."""
    failures = {}
    start = _used_seconds()
    for file in files:
        if _used_seconds() - start > ALONE_S:
            outcome: dict[str, Any] | str = "the files before it took too much processor time"
        else:
            outcome = analyse_apart([file], FILE_S)
        if isinstance(outcome, str):
            failures[file] = outcome
    return failures


def _used_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def analyse_apart(files: list[Path], seconds: int) -> dict[str, Any] | str:
    """The figures and the measured files, or why there are none."""
    if not files:
        return "none of the files can be analysed"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(files, seconds, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"it took more than {seconds} s of processor time"
    if status != 0:
        return f"scb-check ended with exit status {status}"
    answer: dict[str, Any] | str = json.loads(text)
    return answer


def _answer(files: list[Path], seconds: int, writer: int) -> NoReturn:
    """In the child: nothing but the answer leaves it."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        text = json.dumps(_attempt(files))
        with os.fdopen(writer, "w") as stream:
            stream.write(text)
        status = 0
    finally:
        os._exit(status)


def _attempt(files: list[Path]) -> dict[str, Any] | str:
    from scb_check.analysis import astgrep
    from scb_check.pipeline import analyze_files

    astgrep.logger = _FailingLogger()
    try:
        return _figures(analyze_files(tuple(files), include_all=True))
    except RecursionError:
        return "it is nested too deeply"
    except MemoryError:
        return "it took too much memory"
    except AstGrepError as error:
        return f"ast-grep failed: {error}"[:MAX_REASON_LENGTH]
    except Exception as error:  # noqa: BLE001  (any error of scb-check is one of these files)
        name = type(error).__name__
        return SYNTAX_ERRORS if name in ("SyntaxError", "TokenError") else f"scb-check cannot analyse it: {name}"


def _figures(result: Any) -> dict[str, Any]:
    from scb_check.reporting.score import compute_report

    measured = list(map(str, result.source_lines_by_file))
    if not measured:
        return {"measured": []}
    complexities = [function.cyc_complexity for function in result.flags.findings.all_functions]
    report = compute_report(result.flags).to_dict()
    return {"report": report, "max_complexity": max(complexities, default=None), "measured": measured}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
