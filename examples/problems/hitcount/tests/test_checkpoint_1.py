"""Counting statuses, paths and bytes."""

from collections.abc import Callable
from pathlib import Path

import pytest

Check = Callable[..., None]
Expected = Callable[[str], str]

LINE = "2024-03-01T09:12:44 GET /index.html 200 5120\n"


@pytest.mark.parametrize("command", ["status", "paths", "bytes"])
def test_summary_of_a_file(check: Check, day: Path, expected: Expected, command: str) -> None:
    check(command, day, stdout=expected(command))


@pytest.mark.parametrize(("command", "stdout"), [("status", "200 2"), ("paths", "2 /index.html"), ("bytes", "10240")])
def test_summary_of_standard_input(check: Check, command: str, stdout: str) -> None:
    check(command, stdin=LINE * 2, stdout=stdout)


@pytest.mark.functionality
@pytest.mark.parametrize(("count", "stdout"), [(1, "4 /api/orders"), (3, "4 /api/orders\n3 /index.html\n1 /about")])
def test_only_the_first_paths(check: Check, day: Path, count: int, stdout: str) -> None:
    check("paths", "-n", count, day, stdout=stdout)


@pytest.mark.functionality
def test_paths_in_byte_order(check: Check) -> None:
    lines = [f"2024-03-01T09:12:44 GET {path} 200 1\n" for path in ("/b", "/B", "/a_b", "/a-b")]
    check("paths", stdin="".join(lines), stdout="1 /B\n1 /a-b\n1 /a_b\n1 /b")


@pytest.mark.functionality
def test_empty_log(check: Check) -> None:
    check("bytes", stdout="0")
    check("status", stdin="\n\n", stdout="")


@pytest.mark.error
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("GET /index.html 200", "expected 5 fields, found 3"),
        ("2024-03-01T09:12:44 GET / ok 12", 'bad status "ok"'),
        ("2024-03-01T09:12:44 GET / 200 -", 'bad bytes "-"'),
    ],
)
def test_bad_line(check: Check, line: str, message: str) -> None:
    check("status", stdin=f"{LINE}\n{line}\nrubbish\n", code=1, stderr=f"hitcount: line 3: {message}")


@pytest.mark.error
def test_missing_file(check: Check, tmp_path: Path) -> None:
    file = tmp_path / "no.log"
    check("bytes", file, code=1, stderr=f"hitcount: cannot read {file}")


@pytest.mark.error
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], 'unknown command ""'),
        (["guess"], 'unknown command "guess"'),
        (["paths", "-n", "few"], "-n needs a whole number"),
    ],
)
def test_wrong_use(check: Check, args: list[str], message: str) -> None:
    check(*args, code=2, stderr=f"hitcount: {message}")
