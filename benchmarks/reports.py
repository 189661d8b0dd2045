"""(f) The report of a large run: time to write it, its size, and time to open it.

Runs are generated (`big_run.py`) in three shapes: many problems, one very long one,
and one that fails nearly everything. `slop-code report` is measured as a process of its own. Then Chromium opens the
file from disk, and counts from the start of the navigation until the overview is drawn (verdict and checkpoints), until
the first failures are there, and until the timeline of the first problem is drawn after them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from benchmarks.big_run import write_big_run
from benchmarks.measuring import ours
from benchmarks.table import Part, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from benchmarks.setting import Bench

TITLE = "the report of a large run"
SHAPES = ((20, 5, 0.02), (1, 100, 0.02), (1, 100, 0.95))
# Looks at each frame: a reader sees nothing earlier. The click is the page's own, as a driver takes its time.
DRAWN = """([overview, failures, link, timeline]) => new Promise((resolve, reject) => {
  const until = (shown, then) =>
    document.querySelector(shown) ? then() : requestAnimationFrame(() => until(shown, then));
  setTimeout(() => reject(new Error("not drawn within a minute")), 60_000);
  until(overview, () => {
    const first = performance.now();
    until(failures, () => {
      const second = performance.now();
      document.querySelector(link).click();
      until(timeline, () => resolve([first, second, performance.now()]));
    });
  });
})"""
OVERVIEW = "main .checkpoint h3"
FAILURES = "main .failures li"
LINK = "main a[href*='view=timeline']"
TIMELINE = "main [role=grid] tbody td[aria-label]"


def measure(bench: Bench) -> Part:
    rows: list[Row] = []
    with chromium(wanted=bench.scale != "least") as browser:
        for shape in bench.size(SHAPES, SHAPES[:1], ((1, 2, 0.02),)):
            rows += of_shape(bench, shape, browser)
    missing = os.environ.get("SLOP_CODE_TEST_NO_BROWSER", "not asked for; run `make bench`")
    return Part("f", TITLE, tuple(rows), () if browser else (f"no time to draw without Chromium: {missing}",))


def of_shape(bench: Bench, shape: tuple[int, int, float], browser: Browser | None) -> list[Row]:
    problems, checkpoints, breaks = shape
    tests = bench.size(500, 500, 5)
    name = f"{problems * checkpoints} checkpoints × {tests} tests of {problems} problem{'s' * (problems > 1)}"
    name += ", nearly all fail" if breaks > 0.5 else ""
    bench.print_step(name)
    run, page = bench.folder("big"), bench.folder("page") / "report.html"
    write_big_run(run, problems=problems, checkpoints=checkpoints, tests=tests, breaks=breaks)
    rounds = bench.size(3, 2, 1)
    spent = [ours("report", run, "-o", page) for _ in range(rounds)]
    rows = [
        Row(f"{name}: written", "s", tuple(each.seconds for each in spent)),
        Row(f"{name}: memory", "MiB", tuple(each.mebibytes for each in spent)),
        Row(f"{name}: size", "MB", (page.stat().st_size / 1e6,)),
    ]
    if browser is not None:
        drawn = [opened(browser, page) for _ in range(rounds)]
        views = zip(("overview", "failures", "timeline"), zip(*drawn, strict=True), strict=True)
        rows += [Row(f"{name}: {view} drawn", "s", seconds) for view, seconds in views]
    return rows


@contextlib.contextmanager
def chromium(*, wanted: bool) -> Iterator[Browser | None]:
    """None where there is no such program; `tests/with_browser.py` installs one."""
    program = os.environ.get("SLOP_CODE_TEST_BROWSER") or shutil.which("chromium-headless-shell")
    if program is None or not wanted:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


def opened(browser: Browser, page: Path) -> tuple[float, ...]:
    """Seconds from the start until the overview, the first failures, and the first timeline are drawn."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    try:
        tab = context.new_page()
        tab.goto(page.as_uri(), wait_until="commit")
        drawn = tab.evaluate(DRAWN, [OVERVIEW, FAILURES, LINK, TIMELINE])
    finally:
        context.close()
    return tuple(milliseconds / 1000 for milliseconds in drawn)
