"""An evaluator without any defence, as one would write it in a hurry: pytest beside the submission, which it trusts.

It shows that an attack is a real one. It runs in a box of its own, so that what it lets through stops there: with
a table of processes of its own, and nothing to write to but the attack's own world.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.seen import Sight, Verdict, files, processes
from slop_code.attacks.world import TAG
from slop_code.execution.backends.bubblewrap import working_bwrap

if TYPE_CHECKING:
    from slop_code.attacks.attack import Attack
    from slop_code.attacks.world import World

LIMIT_S = 60
EMPTY = ("/tmp", "/var/tmp", "/dev/shm")
REPORT = ".scbench/pytest-report.json"


def careless(world: World, attack: Attack) -> Verdict:
    """`attack` decides nothing: there is no environment to be careful with."""
    argv = [str(working_bwrap()), "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    argv += [word for place in EMPTY for word in ("--tmpfs", place)]
    argv += [word for place in (world.folder, world.problem.path) for word in ("--bind", str(place), str(place))]
    argv += [
        "--",
        sys.executable,
        "-m",
        "tests.attacks.careless",
        str(world.folder),
        str(world.problem.path),
        world.tag,
    ]
    answer = world.folder / "answer.json"
    try:
        subprocess.run(argv, cwd=Path(__file__).parents[2], timeout=LIMIT_S, capture_output=True, check=True)
        found = json.loads(answer.read_bytes())
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return Verdict(frozenset(), 0, f"the careless evaluator was ended: {error}")
    within = tuple(Sight(Effect(effect), what) for effect, what in found.pop("within"))
    return Verdict(frozenset(found.pop("passed")), within=within, **found)


def evaluate(folder: Path, problem: Path, tag: str) -> dict[str, object]:
    workspace, out = folder / "workspace", folder / "out"
    shutil.copytree(folder / "submission", workspace, symlinks=True)
    shutil.copytree(problem / "tests", workspace / ".evaluation_tests", dirs_exist_ok=True)
    (workspace / ".scbench").mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "pytest", ".evaluation_tests", "--json-report", f"--json-report-file={REPORT}"]
    argv += ["--timeout=20", f"--entrypoint={sys.executable} main.py", "--checkpoint=checkpoint_1"]
    env = {**os.environ, TAG: tag, "PYTHONPATH": str(workspace)}
    done = subprocess.run(argv, cwd=workspace, env=env, capture_output=True, timeout=LIMIT_S - 10)
    shown = done.stdout.decode(errors="replace")
    left = [("left", what) for what in (*processes(tag), *files(tag))]
    shutil.copytree(workspace / ".scbench", out)
    report = json.loads((out / Path(REPORT).name).read_bytes())
    passed = [test["nodeid"].rpartition("::")[2] for test in report["tests"] if test["outcome"] == "passed"]
    return {"passed": passed, "total": len(report["tests"]), "shown": shown, "within": left}


if __name__ == "__main__":
    place, tests, own_tag = sys.argv[1:]
    answered = evaluate(Path(place), Path(tests), own_tag)
    Path(place, "answer.json").write_text(json.dumps(answered))
