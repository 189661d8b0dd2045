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

    from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

PICTURES = Path(__file__).parents[2] / "out" / "screenshots"
PATIENCE_MS = 100_000
SEVERE_IMPACTS = ("serious", "critical")


def program() -> str:
    """Skips with the reason where there is none; where every check counts that is a failure."""
    found = os.environ.get("SLOP_CODE_TEST_BROWSER") or shutil.which("chromium-headless-shell")
    if found:
        return found
    missing = os.environ.get("SLOP_CODE_TEST_NO_BROWSER", "no chromium-headless-shell; `make test` as root installs it")
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


@pytest.fixture(scope="module")
def shared_page(browser: Browser) -> Iterator[Page]:
    """For the first visit of each test: the process of a page that is opened anew takes most of its time."""
    with browser.new_context(offline=True) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()


@pytest.fixture
def visit(browser: Browser, shared_page: Page) -> Iterator[Callable[..., Page]]:
    """`visit(file, "#fragment", width=360, color_scheme="dark")`: opened from disk, with nothing stored.

    `clock`: seconds since the epoch at which the clock of the page stands still until the test moves it.
    `alone`: in a context of its own, as with any other option, for a test that changes more than storage and media.
    """
    with visits(browser, shared_page) as go:
        try:
            yield go
        finally:
            reset_page(shared_page)


def reset_page(page: Page) -> None:
    """Nothing of a test is left to the next one."""
    if page.url != "about:blank":
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        page.mouse.move(0, 0)
        page.goto("about:blank")


@contextlib.contextmanager
def visits(browser: Browser, shared_page: Page | None = None) -> Iterator[Callable[..., Page]]:
    opened: set[str] = set()
    asked: list[str] = []
    errors: list[str] = []
    free = [shared_page] if shared_page else []
    listeners: dict[Any, Callable[[Any], None]] = {
        "request": lambda request: asked.append(request.url),
        "console": lambda said: errors.append(said.text) if said.type in ("error", "warning") else None,
        "weberror": lambda thrown: errors.append(str(thrown.error)),
    }

    def listen(context: BrowserContext) -> None:
        for event, listener in listeners.items():
            context.on(event, listener)
            stack.callback(context.remove_listener, event, listener)

    def shared(size: ViewportSize, scheme: Any, motion: Any) -> Page:
        page = free.pop()
        listen(page.context)
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        return page

    def own(**options: Any) -> Page:
        context = browser.new_context(offline=True, **options)
        stack.callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        listen(context)
        return context.new_page()

    def go(
        file: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        clock: float | None = None,
        color_scheme: str = "light",
        reduced_motion: str = "no-preference",
        alone: bool = False,
        **options: Any,
    ) -> Page:
        size: ViewportSize = {"width": width, "height": height}
        if free and clock is None and not alone and not options:
            page = shared(size, color_scheme, reduced_motion)
        else:
            page = own(viewport=size, color_scheme=color_scheme, reduced_motion=reduced_motion, **options)
        if clock is not None:
            page.clock.install(time=clock - 3600)  # it goes on until it is paused
            page.clock.pause_at(clock)
        opened.add(file.resolve().as_uri())
        page.goto(file.resolve().as_uri() + fragment)
        return page

    with contextlib.ExitStack() as stack:
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


def severe_violations(page: Page) -> list[str]:
    """What axe finds that keeps people out, each with the places where it is."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {fault['help']}: {[node['target'] for node in fault['nodes'][:5]]}"
        for fault in found
        if fault["impact"] in SEVERE_IMPACTS
    ]


def scrolls_sideways(page: Page) -> bool:
    return bool(page.evaluate("document.scrollingElement.scrollWidth > window.innerWidth"))


def address(page: Page) -> str:
    """The fragment of the address; `page.url` follows it a moment later."""
    return str(page.evaluate("location.hash"))
