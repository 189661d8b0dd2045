"""Filters and hours."""

from collections.abc import Callable
from pathlib import Path

import pytest

Check = Callable[..., None]


def test_hours(check: Check, day: Path, expected: Callable[[str], str]) -> None:
    check("hours", day, stdout=expected("hours"))


@pytest.mark.parametrize(
    ("args", "stdout"),
    [
        (["status", "-m", "POST"], "201 1\n500 1"),
        (["paths", "-s", "200"], "2 /index.html\n1 /about\n1 /api/orders\n1 /style.css"),
        (["bytes", "-s", "4xx"], "202"),
        (["status", "-p", "/api/"], "200 1\n201 1\n403 1\n500 1"),
    ],
)
def test_filter(check: Check, day: Path, args: list[str], stdout: str) -> None:
    check(*args, day, stdout=stdout)


@pytest.mark.functionality
def test_filters_must_all_hold(check: Check, day: Path) -> None:
    check("hours", "-p", "/api", "-m", "POST", "-s", "5xx", day, stdout="2024-03-01T10 1")
    check("paths", "-n", 1, "-m", "GET", day, stdout="3 /index.html")


@pytest.mark.functionality
def test_the_last_of_two_counts(check: Check, day: Path) -> None:
    check("status", "-m", "GET", "-m", "DELETE", day, stdout="403 1")


@pytest.mark.functionality
def test_a_prefix_is_no_pattern(check: Check) -> None:
    log = "2024-03-01T09:12:44 GET /a.b 200 1\n2024-03-01T09:12:44 GET /axb 200 2\n"
    check("bytes", "-p", "/a.", stdin=log, stdout="1")


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["status", "-s", "44"], 'bad status filter "44"'),
        (["status", "-z"], 'unknown option "-z"'),
        (["bytes", "-n", "1"], 'unknown option "-n"'),
        (["hours", "-p"], "-p needs a value"),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check(*args, code=2, stderr=f"hitcount: {message}")


@pytest.mark.error
def test_filtered_lines_are_checked(check: Check) -> None:
    log = "2024-03-01T09:12:44 GET / 200 1\n2024-03-01T09:12:44 PUT / 200 many\n"
    check("bytes", "-m", "GET", stdin=log, code=1, stderr='hitcount: line 2: bad bytes "many"')


@pytest.mark.regression
def test_without_filters_all_is_as_before(check: Check, day: Path, expected: Callable[[str], str]) -> None:
    check("bytes", day, stdout=expected("bytes"))
    check("paths", "-n", 1, day, stdout="4 /api/orders")
