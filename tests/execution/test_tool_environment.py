"""The environment of the test tools: errors of uv, retries, and damage in the cache."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.installation.tool_environment import (
    PREFIX,
    REBUILD,
    UnresolvablePackagesError,
    build_tool_environment,
    lock_packages,
    remove_abandoned_unpacks,
    run_uv,
    tool_failure,
    tools_too_late,
)
from slop_code.execution.trees.manifest import ARCHIVES

ARGV = ["uv", "pip", "install", "a b"]
UNREACHABLE = "the package index cannot be reached: check the network, or set HTTPS_PROXY"
OFFLINE = f"{UNREACHABLE}; `slop-code cache warm` fetches them ahead"


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (
            "error: Failed to fetch: https://index/simple/pytest/\n"
            "  cause: client error (Connect)\n"
            "  cause: Connection refused (os error 111)\n",
            OFFLINE,
        ),
        (
            "error: Failed to fetch\n  Caused by: dns error\n  Caused by: failed to lookup address\n\n",
            OFFLINE,
        ),
        (
            "error: No solution found\n"
            "  cause: Because pytest was not found in the cache, nothing fits.\n"
            "\n"
            "hint: Packages were unavailable because the network was disabled.\n",
            OFFLINE,
        ),
        (
            "error: Failed to fetch: x\n  cause: failed to write: No space left on device (os error 28)\n",
            "the disk is full: free space in /cache",
        ),
        (
            "error: Failed to fetch: x\n  cause: HTTP status server error (503 Service Unavailable) for url (y)\n",
            "the package index answered 503 Service Unavailable: try again later",
        ),
        (
            "  × No solution found:\n  ╰─▶ Because there is no pytest, nothing fits.\n",
            f"Because there is no pytest, nothing fits; {REBUILD}",
        ),
        ("`/x/python` is gone\n", f"`/x/python` is gone; {REBUILD}"),
        ("error: the only line\n", f"the only line; {REBUILD}"),
        ("\n", f"uv exited with 2; {REBUILD}"),
    ],
)
def test_the_first_line_has_the_cause_and_the_next_step(output, cause):
    first, second, *rest = str(tool_failure(ARGV, 2, output, "/cache")).split("\n")
    assert first == f"the test tools cannot be installed: {cause}"
    assert second == "`uv pip install 'a b'` exited with 2"
    assert "\n".join(rest) == output.strip()


@pytest.mark.e2e
def test_an_environment_that_uses_the_packages_of_the_host_is_refused(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    ask = [tmp_path / "env/bin/python", "-I", "-c", PREFIX]
    done = subprocess.run(ask, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/env\n"
    (tmp_path / "env/pyvenv.cfg").unlink()
    done = subprocess.run(ask, capture_output=True, text=True)
    assert (done.returncode, "has no packages of its own" in done.stderr) == (1, True)


def test_the_deadline_of_the_tools_is_named():
    message = str(tools_too_late(["uv", "pip", "install", "x"], 900.0, "Resolved 3 packages\n"))
    first, *output = message.split("\n")
    assert "`uv pip install` did not end within the 900 s of timeouts.tools; set a longer one" in first
    assert output == ["Resolved 3 packages"]


class ScriptedUv:
    """uv that fails with these outputs, one after the other, and succeeds for None."""

    folder = ""

    def __init__(self, *outputs):
        self.outputs = list(outputs)

    def put(self, name, text):
        return name

    def uv(self, tool, arguments):
        if (output := self.outputs.pop(0)) is not None:
            raise tool_failure(["uv"], 2, output, "/cache")
        return "done"


LOOKUP_FAILURE = "error: Failed to fetch\n  Caused by: failed to lookup address information: Try again\n"


@pytest.mark.parametrize("outputs", [(None,), (LOOKUP_FAILURE, None), (LOOKUP_FAILURE, LOOKUP_FAILURE, None)])
def test_a_failed_lookup_of_a_host_name_is_retried(outputs):
    builder = ScriptedUv(*outputs)
    assert (run_uv(builder, "uv", []), builder.outputs) == ("done", [])


NO_SOLUTION = "error: No solution found when resolving dependencies\n"


@pytest.mark.parametrize(
    ("output", "fact"),
    [
        (f"{NO_SOLUTION}  cause: Because a was not found in the package registry.\n",
         "the package index has no package a: check its spelling in the list"),
        ("error: Couldn't parse requirement in `extra.in` at position 0\n  cause: Expected one of `@`\n   a b\n   ^\n",
         "Expected one of `@`"),
        (f"{NO_SOLUTION}  cause: Because a was not found in the cache.\n", None),
        (f"{NO_SOLUTION}  cause: Because a was not found.\n\nhint: An index URL could not be queried (401)\n", None),
        (LOOKUP_FAILURE, None),
        ("error: no space left\n", None),
    ],
)  # fmt: skip
def test_only_packages_that_the_index_does_not_have_are_a_mistake_of_the_problem(output, fact):
    with pytest.raises(InfrastructureError) as raised:
        lock_packages(ScriptedUv(*[output] * 3), "python", ["a b"], "")
    assert isinstance(raised.value, UnresolvablePackagesError) is (fact is not None)
    assert fact is None or str(raised.value) == fact


@pytest.mark.parametrize(("outputs", "left"), [((LOOKUP_FAILURE,) * 4, 1), (("error: no such package\n", None), 1)])
def test_a_lasting_failure_is_an_infrastructure_failure(outputs, left):
    builder = ScriptedUv(*outputs)
    with pytest.raises(InfrastructureError, match="the test tools cannot be installed"):
        run_uv(builder, "uv", [])
    assert len(builder.outputs) == left


def test_old_remains_of_killed_uv_processes_are_removed(tmp_path):
    for name in (".tmpOLD", ".tmpNEW", "archive-v0"):
        (tmp_path / name / "half").mkdir(parents=True)
    (tmp_path / ".tmpfile").touch()
    for name in (".tmpOLD", ".tmpfile", "archive-v0"):
        os.utime(tmp_path / name, (0, 0))
    remove_abandoned_unpacks(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmpNEW", "archive-v0"]


@dataclass
class ScriptedSandbox:
    """Its uv makes an environment of one file, unless there is one."""

    cache: Cache
    progress: object
    folder: str = "/nowhere"

    def identity(self):
        return ["scripted"]

    def check_tools(self, entry):
        pass

    def tool_builder(self, scratch):
        return contextlib.nullcontext(self)

    def python(self):
        return "/usr/bin/python3", "3.12.1"

    def put(self, name, text):
        return name

    def uv(self, tool, arguments):
        archives = self.cache.uv / ARCHIVES
        made = sorted(archives.iterdir()) if archives.exists() else []
        if tool == "uvx" and not made:
            made = [archives / os.urandom(4).hex()]
            made[0].mkdir(parents=True)
            (made[0] / "pyvenv.cfg").touch()
            (made[0] / "reports.py").write_text("x = 1\n")
        return f"{made[0]}\n" if "-c" in arguments else "pytest==9.2.0\n"


@pytest.mark.parametrize("content", ["x = 2\n", "x = 1; passed = True\n", None])
def test_damaged_files_of_the_judge_are_installed_again(tmp_path, content):
    cache, events = Cache(tmp_path / "cache"), []
    (tmp_path / "lock").touch()

    def reports():
        sandbox = ScriptedSandbox(cache, events.append)
        build_tool_environment(sandbox, "pytest", ["pytest"], tmp_path / "lock")
        (path,) = cache.uv.glob(f"{ARCHIVES}/*/reports.py")
        return path

    first = reports()
    assert (reports(), len(events)) == (first, 1)
    first.unlink()
    if content is not None:
        first.write_text(content)
    second = reports()
    assert (second == first, second.read_text(), len(events)) == (False, "x = 1\n", 2)
