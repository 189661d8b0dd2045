"""Measurement of the cost of slop-code over bare pytest: `python -m benchmarks` writes a table, JSON, and a page.

Every figure is a median over rounds that take turns within one session on one machine: compare the ratios, not the
seconds of two sessions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import (
    many_tests,
    nothing_to_do,
    one_checkpoint,
    processors,
    reports,
    stages,
    start_up,
    subject_calls,
    whole_runs,
)
from benchmarks.machine import machine
from benchmarks.measuring import BenchError
from benchmarks.setting import Bench, sandboxes
from benchmarks.table import Part, document, markdown, terminal, with_table
from benchmarks.throughput import short_programs, tiny_evaluations

if TYPE_CHECKING:
    from types import ModuleType

PARTS: dict[str, ModuleType] = {
    "a": one_checkpoint,
    "b": subject_calls,
    "c": whole_runs,
    "d": nothing_to_do,
    "e": many_tests,
    "f": reports,
    "g": start_up,
    "h": stages,
    "i": tiny_evaluations,
    "j": processors,
    "w": short_programs,
}


def letters(text: str) -> list[str]:
    chosen = [letter.strip() for letter in text.split(",")]
    if unknown := [letter for letter in chosen if letter not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    return chosen


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return int(text)


def parser() -> argparse.ArgumentParser:
    about = "; ".join(f"{letter}: {module.TITLE}" for letter, module in PARTS.items())
    root = argparse.ArgumentParser(prog="python -m benchmarks", description=f"What slop-code costs. Parts: {about}.")
    option = root.add_argument
    option("--only", type=letters, default=list(PARTS), metavar="a,c", help="these parts (default: all)")
    option("--quick", action="store_true", help="less of everything: a look, not a measurement")
    option("--soak", type=positive, metavar="SECONDS", help="how long part (i) looks for growth (default: 30)")
    option("--tiny", type=positive, metavar="N", help="checkpoints of the larger run of part (c) (default: 100)")
    option("--json", type=Path, default=Path("out/bench.json"), metavar="FILE", help="(default: out/bench.json)")
    option("--page", type=Path, metavar="FILE", help="write the table between the two marks of this page")
    return root


def main() -> int:
    arguments = parser().parse_args()
    if arguments.page and (arguments.quick or arguments.only != list(PARTS)):
        print("--page shows a whole session: use neither --quick nor --only with it", file=sys.stderr)
        return 2
    facts, parts, failed = machine(), [], False
    with tempfile.TemporaryDirectory(prefix="slop-code-bench-", ignore_cleanup_errors=True) as name:
        os.environ["SCBENCH_CACHE_DIR"] = f"{name}/cache"
        working, missing = sandboxes()
        scale = "quick" if arguments.quick else "whole"
        bench = Bench(Path(name), scale, working, missing, print_step, arguments.soak, arguments.tiny)
        for letter in arguments.only:
            began = time.monotonic()
            try:
                parts.append(measured(letter, bench))
            except BenchError as error:
                print(f"({letter}) was not measured: {error}", file=sys.stderr)
                failed = True
                continue
            print(terminal(parts[-1]), f"  measured in {time.monotonic() - began:.0f} s\n", sep="\n", flush=True)
            arguments.json.parent.mkdir(parents=True, exist_ok=True)
            arguments.json.write_text(json.dumps(document(parts, facts), indent=1) + "\n")
    if parts:
        print(f"written: {arguments.json}")
    if arguments.page and not failed:
        page = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(with_table(page, markdown(parts, facts)), encoding="utf-8")
        print(f"written: {arguments.page}")
    return int(failed)


def measured(letter: str, bench: Bench) -> Part:
    bench.print_step(f"({letter}) {PARTS[letter].TITLE}")
    part: Part = PARTS[letter].measure(bench)
    return part


def print_step(step: str) -> None:
    print(f"· {step}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
