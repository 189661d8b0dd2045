"""The tests' environment: what is said when it cannot be made, and when it is made anew."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.installed_files import ARCHIVES
from slop_code.execution.tool_environment import fetch, remove_abandoned_unpacks, tools_failure, warm_tools

ARGV = ["uv", "pip", "install", "a b"]
STEP = "is there a network? `slop-code cache warm` fetches it ahead"


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (
            "error: Failed to fetch: https://index/simple/pytest/\n"
            "  cause: client error (Connect)\n"
            "  cause: Connection refused (os error 111)\n",
            "Connection refused (os error 111)",
        ),
        (
            "error: Failed to fetch\n  Caused by: dns error\n  Caused by: failed to lookup address\n\n",
            "failed to lookup address",
        ),
        (
            "error: No solution found\n"
            "  cause: Because pytest was not found in the cache, nothing fits.\n"
            "\n"
            "hint: Packages were unavailable because the network was disabled.\n",
            "Because pytest was not found in the cache, nothing fits",
        ),
        (
            "  × No solution found:\n  ╰─▶ Because there is no pytest, nothing fits.\n",
            "Because there is no pytest, nothing fits",
        ),
        ("`/x/python` is gone\n", "`/x/python` is gone"),
        ("error: the only line\n", "the only line"),
        ("\n", "uv exited with 2"),
    ],
)
def test_the_first_line_has_the_cause_and_the_next_step(output, cause):
    first, second, *rest = str(tools_failure(ARGV, 2, output)).split("\n")
    assert first == f"the test environment cannot be made: {cause}; {STEP}"
    assert second == "`uv pip install 'a b'` exited with 2"
    assert "\n".join(rest) == output.strip()


class Shop:
    """uv that says these one after the other; None: it works."""

    folder = ""

    def __init__(self, *said):
        self.said = list(said)

    def uv(self, tool, arguments):
        if (output := self.said.pop(0)) is not None:
            raise tools_failure(["uv"], 2, output)
        return "done"


NO_NAME = "error: Failed to fetch\n  Caused by: failed to lookup address information: Try again\n"


@pytest.mark.parametrize("said", [(None,), (NO_NAME, None), (NO_NAME, NO_NAME, None)])
def test_a_name_that_cannot_be_looked_up_is_tried_again(said):
    shop = Shop(*said)
    assert (fetch(shop, "uv", []), shop.said) == ("done", [])


@pytest.mark.parametrize(("said", "left"), [((NO_NAME,) * 4, 1), (("error: no such package\n", None), 1)])
def test_what_goes_on_failing_is_told(said, left):
    shop = Shop(*said)
    with pytest.raises(InfrastructureError, match="the test environment cannot be made"):
        fetch(shop, "uv", [])
    assert len(shop.said) == left


def test_what_a_killed_uv_left_goes_when_it_is_old(tmp_path):
    for name in (".tmpOLD", ".tmpNEW", "archive-v0"):
        (tmp_path / name / "half").mkdir(parents=True)
    (tmp_path / ".tmpfile").touch()
    for name in (".tmpOLD", ".tmpfile", "archive-v0"):
        os.utime(tmp_path / name, (0, 0))
    remove_abandoned_unpacks(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmpNEW", "archive-v0"]


@dataclass
class Tools:
    """A sandbox whose uv makes an environment of one file, unless it has one."""

    cache: Cache
    folder: str = "/nowhere"

    def identity(self):
        return ["scripted"]

    def check_tools(self, kept):
        pass

    def tool_builder(self, scratch):
        return contextlib.nullcontext(self)

    def python(self):
        return "/usr/bin/python3", "3.12.1"

    def put(self, name, text):
        return name

    def uv(self, tool, arguments):
        kept = self.cache.uv / ARCHIVES
        made = sorted(kept.iterdir()) if kept.exists() else []
        if tool == "uvx" and not made:
            made = [kept / os.urandom(4).hex()]
            made[0].mkdir(parents=True)
            (made[0] / "pyvenv.cfg").touch()
            (made[0] / "reports.py").write_text("x = 1\n")
        return f"{made[0]}\n" if "-c" in arguments else "pytest==9.2.0\n"


@pytest.mark.parametrize("content", ["x = 2\n", "x = 1; passed = True\n", None])
def test_the_judges_own_files_are_what_was_installed(tmp_path, content):
    """Or they are installed anew: what decides is not taken from a file that somebody else wrote."""
    cache, told = Cache(tmp_path / "cache"), []
    (tmp_path / "lock").touch()

    def reports():
        warm_tools(Tools(cache), "pytest", ["pytest"], [], tmp_path / "lock", cache, told.append)
        (found,) = cache.uv.glob(f"{ARCHIVES}/*/reports.py")
        return found

    first = reports()
    assert (reports(), len(told)) == (first, 1)
    first.unlink()
    if content is not None:
        first.write_text(content)
    second = reports()
    assert (second == first, second.read_text(), len(told)) == (False, "x = 1\n", 2)
