"""An evaluator without any defence, as one would write it in a hurry: pytest beside the submission, which it trusts.

`python -m tests.attacks.hurried WORLD PROBLEM TAG` leaves its answer in WORLD.
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

from slop_code.attacks.leftovers import TAG, left_over

LIMIT_S = 60
REPORT = ".scbench/pytest-report.json"
LARGEST_FILE = 200 << 20
PASSED = re.compile(r"::(\w+) PASSED")
NEW_SESSION = {"x86_64": 250, "aarch64": 219}
"""The number of keyctl(2), of which the first operation gives a process keys of its own."""


def evaluate(folder: Path, problem: Path, tag: str) -> dict[str, object]:
    workspace, out = folder / "workspace", folder / "out"
    (folder / "began").touch()
    shutil.copytree(folder / "submission", workspace, symlinks=True)
    shutil.copytree(problem / "tests", workspace / ".evaluation_tests", dirs_exist_ok=True)
    (workspace / ".scbench").mkdir(exist_ok=True)
    install(workspace)
    argv = [python_of(workspace), "-m", "pytest", ".evaluation_tests", "--json-report", f"--json-report-file={REPORT}"]
    argv += ["--timeout=20", f"--entrypoint={sys.executable} main.py", "--checkpoint=checkpoint_1"]
    argv += ["--ignore=.evaluation_tests/test_checkpoint_2.py"]
    path = f"{workspace}{os.pathsep}{folder.parent / 'kept'}"
    (folder / "tmp").mkdir()
    env = {**os.environ, "PYTEST_ADDOPTS": "", TAG: tag, "PYTHONPATH": path, "TMPDIR": str(folder / "tmp")}
    env |= variables_of(workspace)
    done = subprocess.run(argv, cwd=workspace, env=env, capture_output=True, timeout=LIMIT_S - 10)
    shown = done.stdout.decode(errors="replace")
    within = [("left", what) for what in left_over(tag, folder)]
    shutil.copytree(workspace / ".scbench", out)
    report = json.loads((out / Path(REPORT).name).read_bytes())
    within += [("loss", what) for what in archive(workspace, out)]
    passed = [test["nodeid"].rpartition("::")[2] for test in report["tests"] if test["outcome"] == "passed"]
    page = "".join(f"<td>{test.get('call', {}).get('longrepr')}</td>" for test in report["tests"])
    passed += PASSED.findall(shown)
    return {"passed": passed, "total": len(report["tests"]), "shown": shown, "page": page, "within": within}


def archive(workspace: Path, out: Path) -> list[str]:
    """All that there is, with what links lead to, and a list of it; what went wrong."""
    names = [os.path.join(folder, name) for folder, _, files in os.walk(workspace) for name in files]
    try:
        shutil.copytree(workspace, out / "archive")
        (out / "manifest.txt").write_text("\n".join(names), encoding="utf-8")
        listed = (out / "manifest.txt").read_text(encoding="utf-8").split("\n")
        return [] if listed == names else ["the list is not what was put into it"]
    except (OSError, ValueError, RecursionError) as error:
        return [f"the workspace cannot be kept: {error}"[:500]]


def bound() -> None:
    """What must not be done even here."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    ctypes.CDLL(None).syscall(NEW_SESSION[os.uname().machine], 1, None)


def install(workspace: Path) -> None:
    """What the submission asks for, beside the tests, which lie there already."""
    if (workspace / "requirements.txt").exists():
        argv = [sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-cache-dir"]
        argv += ["--target", str(workspace / "installed"), "--requirement", "requirements.txt"]
        subprocess.run(argv, cwd=workspace, capture_output=True, timeout=LIMIT_S)


def python_of(workspace: Path) -> str:
    """That of the submission's own environment, where it brings one."""
    own = workspace / ".venv/bin/python"
    return str(own) if own.exists() else sys.executable


def variables_of(workspace: Path) -> dict[str, str]:
    file = workspace / ".env"
    lines = file.read_text().splitlines() if file.is_file() else []
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


if __name__ == "__main__":
    place, tests, own_tag = sys.argv[1:]
    bound()
    answered = evaluate(Path(place), Path(tests), own_tag)
    Path(place, "answer.json").write_text(json.dumps(answered))
