"""Pages in a real Chromium. No page may ask anything of anyone, and none may have an error: either fails the test.

Pictures go to out/screenshots/, where people can look at them afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slop_code.reporting.html.run_page import write_report
from slop_code.runs.read_results import read_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

PICTURES = Path(__file__).parents[2] / "out" / "screenshots"
PATIENCE_MS = 100_000
GRAVE = ("serious", "critical")


def program() -> str:
    """Skips with the reason where there is none; where every check counts that is a failure."""
    found = os.environ.get("SLOP_CODE_TEST_BROWSER") or shutil.which("chromium")
    if found:
        return found
    missing = os.environ.get("SLOP_CODE_TEST_NO_BROWSER", "no chromium here; `make test` as root installs Debian's")
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for the tests of a file, not for all: as long as it is there, no other test can use asyncio.

    It has a home of its own, as it leaves settings and caches there.
    """
    executable, home = program(), tmp_path_factory.mktemp("home")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    own = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    with sync_playwright() as playwright:
        with playwright.chromium.launch(executable_path=executable, env={**own, "HOME": str(home)}) as started:
            yield started


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """`visit(file, "#fragment", width=360, color_scheme="dark")`: opened from disk, in a context of its own.

    `clock`: seconds since the epoch at which the clock of the page stands still until the test moves it.
    """
    with visits(browser) as go:
        yield go


@contextlib.contextmanager
def visits(browser: Browser) -> Iterator[Callable[..., Page]]:
    opened: set[str] = set()
    asked: list[str] = []
    errors: list[str] = []

    def go(
        file: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        clock: float | None = None,
        **options: Any,
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        contexts.callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda request: asked.append(request.url))
        context.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
        context.on("weberror", lambda thrown: errors.append(str(thrown.error)))
        page = context.new_page()
        if clock is not None:
            page.clock.install(time=clock - 1)
            page.clock.pause_at(clock)
        opened.add(file.resolve().as_uri())
        page.goto(file.resolve().as_uri() + fragment)
        return page

    with contextlib.ExitStack() as contexts:
        yield go
    strange = [url for url in asked if url.partition("#")[0] not in opened and not url.startswith("data:")]
    assert not strange, strange
    assert not errors, errors


def visit_report(visit: Callable[..., Page], run: Path, fragment: str = "", **options: Any) -> Page:
    """The report of a run, written beside it and opened."""
    report = run.parent / "report.html"
    write_report(read_runs([run]), [], report)
    page = visit(report, fragment, **options)
    page.get_by_role("heading", level=2).first.wait_for()
    return page


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`picture(page, "overview-dark")`"""
    topic = Path(request.node.path).stem.removeprefix("test_")

    def take(page: Page, name: str, *, whole: bool = False) -> None:
        page.screenshot(path=PICTURES / f"{topic}-{name}.png", full_page=whole, animations="disabled")

    return take


def grave_faults(page: Page) -> list[str]:
    """What axe finds that keeps people out, each with the places where it is."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {fault['help']}: {[node['target'] for node in fault['nodes'][:5]]}"
        for fault in found
        if fault["impact"] in GRAVE
    ]


def scrolls_sideways(page: Page) -> bool:
    return bool(page.evaluate("document.scrollingElement.scrollWidth > window.innerWidth"))


def address(page: Page) -> str:
    """The fragment of the address; `page.url` follows it a moment later."""
    return str(page.evaluate("location.hash"))
