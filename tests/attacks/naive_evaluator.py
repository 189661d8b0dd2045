"""Naive evaluator without any defence: pytest runs next to the submission and trusts it.

`python -m tests.attacks.naive_evaluator HOST_FOLDER PROBLEM TAG` writes its answer into HOST_FOLDER.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from slop_code.attacks import leftovers
from slop_code.attacks.leftovers import TAG, find_leftovers

leftovers.END_S = 2.0  # nothing is killed here: what is left stays
LIMIT_S = 120
REPORT = ".scbench/pytest-report.json"
MAX_FILE_SIZE = 200 << 20
PASSED = re.compile(r"::(\w+) PASSED")
NEW_SESSION = {"x86_64": 250, "aarch64": 219}
"""The number of keyctl(2), of which the first operation gives a process keys of its own."""

UNUSED_PLUGINS = ("anyio", "hypothesispytest", "xdist")
"""Installed here, not needed by the attacks, and slow to import."""


def evaluate(folder: Path, problem: Path, tag: str) -> dict[str, object]:
    workspace, out = folder / "workspace", folder / "out"
    (folder / "began").touch()
    shutil.copytree(folder / "submission", workspace, symlinks=True)
    shutil.copytree(problem / "tests", workspace / ".evaluation_tests", dirs_exist_ok=True)
    (workspace / ".scbench").mkdir(exist_ok=True)
    install(workspace)
    argv = [python_of(workspace), "-m", "pytest", ".evaluation_tests", "--json-report", f"--json-report-file={REPORT}"]
    argv += ["--timeout=60", f"--entrypoint={sys.executable} main.py", "--checkpoint=checkpoint_1"]
    argv += ["--ignore=.evaluation_tests/test_checkpoint_2.py"]
    argv += [f"-pno:{plugin}" for plugin in UNUSED_PLUGINS]
    path = f"{workspace}{os.pathsep}{folder.parent / 'kept'}"
    (folder / "tmp").mkdir()
    env = {**os.environ, "PYTEST_ADDOPTS": "", TAG: tag, "PYTHONPATH": path, "TMPDIR": str(folder / "tmp")}
    env.pop("PYTEST_DEBUG_TEMPROOT", None)  # pytest would prefer it to TMPDIR
    env |= variables_of(workspace)
    done = subprocess.run(argv, cwd=workspace, env=env, capture_output=True, timeout=LIMIT_S - 10)
    terminal = done.stdout.decode(errors="replace")
    inside = [("left", what) for what in find_leftovers(tag, folder)]
    shutil.copytree(workspace / ".scbench", out)
    report = json.loads((out / Path(REPORT).name).read_bytes())
    inside += [("loss", what) for what in archive(workspace, out)]
    passed = [test["nodeid"].rpartition("::")[2] for test in report["tests"] if test["outcome"] == "passed"]
    page = "".join(f"<td>{test.get('call', {}).get('longrepr')}</td>" for test in report["tests"])
    passed += PASSED.findall(terminal)
    return {"passed": passed, "total": len(report["tests"]), "terminal": terminal, "page": page, "inside": inside}


def archive(workspace: Path, out: Path) -> list[str]:
    """Copy the workspace, following links, with a list of its files; the errors on the way."""
    names = [os.path.join(folder, name) for folder, _, files in os.walk(workspace) for name in files]
    try:
        shutil.copytree(workspace, out / "archive")
        (out / "manifest.txt").write_text("\n".join(names), encoding="utf-8")
        listed = (out / "manifest.txt").read_text(encoding="utf-8").split("\n")
        return [] if listed == names else ["the list is not what was put into it"]
    except (OSError, ValueError, RecursionError) as error:
        return [f"the workspace cannot be kept: {error}"[:500]]


def bound() -> None:
    """Limits that protect the machine even from the naive evaluator."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_SIZE, MAX_FILE_SIZE))
    ctypes.CDLL(None).syscall(NEW_SESSION[os.uname().machine], 1, None)


def install(workspace: Path) -> None:
    """Install the submission's requirements into the workspace, where the tests already are."""
    if (workspace / "requirements.txt").exists():
        argv = [sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-cache-dir"]
        argv += ["--target", str(workspace / "installed"), "--requirement", "requirements.txt"]
        subprocess.run(argv, cwd=workspace, capture_output=True, timeout=LIMIT_S)


def python_of(workspace: Path) -> str:
    """The interpreter of the submission's own virtual environment, if it has one."""
    own = workspace / ".venv/bin/python"
    return str(own) if own.exists() else sys.executable


def variables_of(workspace: Path) -> dict[str, str]:
    file = workspace / ".env"
    lines = file.read_text().splitlines() if file.is_file() else []
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


if __name__ == "__main__":
    host_folder, problem_folder, own_tag = sys.argv[1:]
    bound()
    answered = evaluate(Path(host_folder), Path(problem_folder), own_tag)
    Path(host_folder, "answer.json").write_text(json.dumps(answered))
