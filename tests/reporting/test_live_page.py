"""The page that is kept current while an evaluation goes on."""

import errno
import threading

import pytest

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.html.live_page import interval, live_page
from slop_code.runs.read_results import RunResults
from tests.factories import cases
from tests.reporting.html_runs import data_of, store


@pytest.mark.parametrize(
    ("cost", "changed", "seconds"),
    [(0, True, 3), (0, False, 30), (0.1, True, 3), (1, True, 20), (1, False, 30), (10, True, 200), (10, False, 200)],
)
def test_the_interval_grows_with_the_time_that_writing_takes(cost, changed, seconds):
    assert interval(cost, changed=changed) == seconds


class Results:
    """Results of a run, which say when they were read."""

    def __init__(self, folder):
        self.folder, self.was_read = folder, threading.Event()

    def __call__(self):
        self.was_read.set()
        return [RunResults("monday", self.folder)]


@pytest.fixture
def results(tmp_path):
    store(tmp_path / "monday", [cases("+-")])
    return Results(tmp_path / "monday")


def keep(path, results, warnings, error=None, announce=lambda: None):
    with live_page(path, PassPolicy.ALL_CASES, warnings.append, announce) as show:
        show(results)
        assert results.was_read.wait(600)
        if error:
            raise error


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), ValueError()])
def test_the_last_page_is_not_live_whatever_happened(tmp_path, results, error):
    warnings = []
    if error:
        with pytest.raises(type(error)):
            keep(tmp_path / "report.html", results, warnings, error)
    else:
        keep(tmp_path / "report.html", results, warnings)
    assert data_of(tmp_path / "report.html")["live"] is None
    assert warnings == []


def test_the_page_is_announced_once_it_can_be_opened(tmp_path, results):
    path, announced, warnings = tmp_path / "report.html", [], []
    keep(path, results, warnings, announce=lambda: announced.append(path.exists()))
    assert (announced, warnings) == ([True], [])


def test_a_page_that_cannot_be_written_is_one_warning(tmp_path, results):
    (tmp_path / "file").write_text("no folder")
    warnings = []
    announced = []
    keep(tmp_path / "file/report.html", results, warnings, announce=lambda: announced.append(True))
    assert (len(warnings), announced) == (1, [])
    assert warnings[0].startswith(f"the report cannot be written: {tmp_path}/file/report.html: ")


def test_a_full_disk_is_named_with_the_page(tmp_path):
    def fails():
        error = OSError(errno.ENOSPC, "No space left on device")
        error.filename, error.filename2 = "report.html", None  # as after a failed write
        raise error

    warnings = []
    with live_page(tmp_path / "report.html", PassPolicy.ALL_CASES, warnings.append, print) as show:
        show(fails)
    reason = "report.html: No space left on device; the disk is full: free space there"
    assert warnings == [f"the report cannot be written: {reason}"]


def test_an_error_of_ours_is_a_warning_too(tmp_path):
    def fails():
        raise ZeroDivisionError("a defect")

    warnings = []
    with live_page(tmp_path / "report.html", PassPolicy.ALL_CASES, warnings.append, print) as show:
        show(fails)
    assert warnings == [f"the report cannot be written: {tmp_path}/report.html: ZeroDivisionError('a defect')"]


def test_without_results_nothing_is_written(tmp_path):
    with live_page(tmp_path / "report.html", PassPolicy.ALL_CASES, print, print):
        pass
    assert not (tmp_path / "report.html").exists()
