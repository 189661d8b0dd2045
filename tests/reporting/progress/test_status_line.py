"""Status line: redrawn in place where it is live, printed at intervals elsewhere."""

import io
import threading

import pytest
from rich.cells import cell_len

from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress.status_line import CLEAR, StatusLine, fit, is_live
from slop_code.reporting.progress.ticker import TICKER

NEVER = 10_000.0
LONG = ProgressEvent(ProgressKind.PULL_IMAGE, "image")
SHORT = ProgressEvent(ProgressKind.RUN_TESTS, count=3)
COUNTS = ProgressEvent(ProgressKind.TESTS_DONE, count=1, total=3)


class Stream(io.StringIO):
    """Says when so many texts were written."""

    def __init__(self, texts=1, tty=False):
        super().__init__()
        self.left, self.enough, self.tty = texts, threading.Event(), tty

    def write(self, text):
        written = super().write(text)
        self.left -= 1
        if self.left <= 0:
            self.enough.set()
        return written

    def isatty(self):
        return self.tty


class Work:
    def __init__(self, text="half done"):
        self.shown, self.events = text, []

    def __call__(self, event):
        self.events.append(event)

    def text(self):
        return self.shown


def status(stream, work=None, **options):
    return StatusLine(work or Work(), stream, lambda event: event.is_long, **{"live": False, **options})


def test_lines_are_printed_at_intervals_without_a_terminal():
    stream = Stream(texts=2)
    with status(stream, interval=0.001):
        assert stream.enough.wait(60)
    assert set(stream.getvalue().splitlines()) == {"· half done"}


def test_quick_work_prints_no_line_without_a_terminal():
    stream = Stream()
    with status(stream, interval=NEVER) as line:
        line(SHORT)
        line(COUNTS)
    assert stream.getvalue() == ""


def test_a_live_line_is_redrawn_and_vanishes():
    stream = Stream(texts=3)
    with status(stream, live=True, interval=0.001):
        assert stream.enough.wait(60)
    assert stream.getvalue().startswith(f"{CLEAR}· half done{CLEAR}· half done")
    assert stream.getvalue().endswith(CLEAR)
    assert "\n" not in stream.getvalue()


def test_a_live_line_shows_a_step_at_once_and_counts_at_the_next_interval():
    stream, work = Stream(), Work()
    with status(stream, work, live=True, interval=NEVER) as line:
        line(COUNTS)
        assert stream.getvalue() == ""
        line(SHORT)
        assert stream.getvalue() == f"{CLEAR}· half done"
    assert work.events == [COUNTS, SHORT]


def test_a_step_outside_of_the_block_leaves_no_live_line():
    stream = Stream()
    status(stream, live=True, interval=NEVER)(SHORT)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("live", "shown"), [(False, "· pulling image\n"), (True, f"{CLEAR}· pulling image\n{CLEAR}")])
def test_a_long_step_stays(live, shown):
    stream = Stream()
    with status(stream, live=live, interval=NEVER) as line:
        line(LONG)
    assert stream.getvalue() == shown


@pytest.mark.parametrize("live", [False, True])
def test_a_quiet_line_says_nothing_and_starts_no_thread(live):
    stream = Stream()
    with status(stream, live=live, quiet=True, interval=0.001) as line:
        line(LONG)
        line(SHORT)
        assert TICKER not in [thread.name for thread in threading.enumerate()]
    assert stream.getvalue() == ""


def test_no_step_is_shown_while_others_print():
    stream, sent = Stream(), threading.Event()

    class Signalling(Work):
        def __call__(self, event):
            sent.set()

    with status(stream, Signalling(), live=True, interval=NEVER) as line:
        thread = threading.Thread(target=line, args=(LONG,))
        with line.hidden():
            thread.start()
            assert sent.wait(60)
            stream.write("of others\n")
        thread.join()
    assert stream.getvalue() == f"{CLEAR}of others\n{CLEAR}· pulling image\n{CLEAR}"


def test_nothing_is_shown_where_there_is_nothing_to_say():
    stream = Stream()
    with status(stream, Work(""), live=True, interval=NEVER) as line:
        line(SHORT)
    assert stream.getvalue() == CLEAR


def test_a_reader_that_is_gone_does_not_end_the_work():
    class Deaf(Stream):
        def write(self, text):
            super().write(text)
            raise BrokenPipeError

    stream = Deaf(texts=2)
    with status(stream, live=True, interval=0.001) as line:
        line(LONG)
        assert stream.enough.wait(60)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("half done", 9, "half done"),
        ("half done", 8, "ha… done"),
        ("x" * 300 + "end", 79, "x" * 26 + "…" + "x" * 49 + "end"),
        ("日本語日本語 done", 17, "日本語日本語 done"),
        ("日本語日本語 done", 16, "日本 …本語 done"),
    ],
)
def test_a_line_that_is_too_wide_keeps_its_end(text, width, shown):
    assert fit(text, width) == shown
    assert cell_len(shown) <= width


@pytest.mark.parametrize(
    ("tty", "term", "live"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)]
)
def test_only_a_terminal_that_can_redraw_is_live(monkeypatch, tty, term, live):
    monkeypatch.setenv("TERM", term)
    assert is_live(Stream(tty=tty)) is live
