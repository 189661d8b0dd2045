"""What the report of a large run costs: to write, to keep, and to open.

Runs are written as evaluations would leave them (`big_run.py`), in three shapes: many problems, one very long one,
and one that fails nearly everything.
`slop-code report` is measured as a process of its own. Then Chromium opens the file from disk, and counts from the
start of the navigation until the overview is drawn, and the timeline of the first problem after it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from big_run import write_big_run
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHAPES = ((20, 5, 0.02), (1, 100, 0.02), (1, 100, 0.95))
ROUNDS = 5
# Looks at each frame: a reader sees nothing earlier. The click is the page's own, as a driver takes its time.
DRAWN = """([overview, link, timeline]) => new Promise((resolve, reject) => {
  const until = (shown, then) =>
    document.querySelector(shown) ? then() : requestAnimationFrame(() => until(shown, then));
  setTimeout(() => reject(new Error("not drawn within a minute")), 60_000);
  until(overview, () => {
    const first = performance.now();
    document.querySelector(link).click();
    until(timeline, () => resolve([first, performance.now()]));
  });
})"""
OVERVIEW = "main table tbody tr"
LINK = "main table th a"
TIMELINE = "main [role=grid] tbody td[aria-label]"


def measured(run: Path, page: Path) -> tuple[float, float]:
    """Seconds, and the peak in MiB of a command that a process of its own started: that of ours would count, too."""
    code = (
        "import json, resource, subprocess, sys, time; began = time.perf_counter();"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); taken = time.perf_counter() - began;"
        "print(json.dumps([taken, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]))"
    )
    argv = [sys.executable, "-m", "slop_code", "report", str(run), "-o", str(page)]
    seconds, peak = json.loads(subprocess.check_output([sys.executable, "-c", code, *argv]))
    return seconds, peak


def opened(browser: Browser, page: Path) -> tuple[float, float]:
    """Seconds from the start until the overview, and until the first timeline, are drawn."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    try:
        tab = context.new_page()
        tab.goto(page.as_uri(), wait_until="commit")
        overview, timeline = tab.evaluate(DRAWN, [OVERVIEW, LINK, TIMELINE])
    finally:
        context.close()
    return overview / 1000, timeline / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=500, help="in each checkpoint (default: 500)")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    arguments = parser.parse_args()
    program = os.environ.get("SLOP_CODE_TEST_BROWSER") or shutil.which("chromium")
    if program is None:
        raise SystemExit(os.environ.get("SLOP_CODE_TEST_NO_BROWSER", "no chromium: use tests/with_browser.py"))
    heads = ("problems", "checkpoints", "breaks", "write s", "peak MiB", "size MB", "overview s", "timeline s")
    found = []
    print(f"the report of a large run, {arguments.tests} tests in each checkpoint, median of {ROUNDS}")
    print("".join(f"{head:>13}" for head in heads), flush=True)
    with tempfile.TemporaryDirectory(prefix="slop-code-bench-") as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        for problems, checkpoints, breaks in SHAPES:
            run, page = Path(name) / f"{problems}x{checkpoints}-{breaks}", Path(name) / "report.html"
            write_big_run(run, problems=problems, checkpoints=checkpoints, tests=arguments.tests, breaks=breaks)
            rounds = [(*measured(run, page), *opened(browser, page)) for _ in range(ROUNDS)]
            seconds, peak, overview, timeline = (statistics.median(values) for values in zip(*rounds, strict=True))
            size = page.stat().st_size / 1e6
            figures = (problems, checkpoints, breaks, seconds, peak, size, overview, timeline)
            found.append(dict(zip(heads, figures, strict=True)))
            shown = (f"{figure:13.2f}" if isinstance(figure, float) else f"{figure:13}" for figure in figures)
            print("".join(shown), flush=True)
        browser.close()
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
