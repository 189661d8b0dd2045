"""Naive evaluator in a box, to show that each attack works where nothing defends against it.

The box confines what the naive evaluator lets through: its own process table, and nothing writable but the attack's
own host folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.effects import Observation, ObservedVerdict
from slop_code.execution.bubblewrap.bwrap_binary import working_bwrap
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from tests.attacks.naive_evaluator import LIMIT_S

if TYPE_CHECKING:
    from slop_code.attacks.attack import Attack
    from slop_code.attacks.attack_host import AttackHost

ROOT = Path(__file__).parents[2]
EMPTY = ("/tmp", "/var/tmp", "/dev/shm")


def boxed_naive_evaluator(host: AttackHost, attack: Attack) -> ObservedVerdict:
    """`attack` is part of the signature only: the naive evaluator knows no environment."""
    argv = [str(working_bwrap()), "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    # Not the whole of `/`: bwrap fails if something below a folder that it mounts is unmounted at that moment.
    argv += ["--cap-drop", "ALL", *system_arguments(), "--dev", "/dev", "--proc", "/proc"]
    argv += [word for path in EMPTY for word in ("--tmpfs", path)]
    readable = (Path.home(), ROOT, sys.prefix, sys.base_prefix)
    argv += [word for path in readable for word in ("--ro-bind", str(path), str(path))]
    kept = host.folder.parent / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    writable = (host.folder, host.problem.path, kept)
    argv += [word for path in writable for word in ("--bind", str(path), str(path))]
    argv += [
        "--",
        sys.executable,
        "-m",
        "tests.attacks.naive_evaluator",
        str(host.folder),
        str(host.problem.path),
        host.tag,
    ]
    answer, began = host.folder / "answer.json", host.folder / "began"
    try:
        subprocess.run(argv, cwd=ROOT, timeout=LIMIT_S, capture_output=True, check=True)
        data = json.loads(answer.read_bytes())
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        if not began.exists():
            error.add_note(str(getattr(error, "stderr", "")))
            raise
        return ObservedVerdict(frozenset(), 0, f"the naive evaluator was ended: {error}")
    inside = tuple(Observation(Effect(effect), detail) for effect, detail in data.pop("inside"))
    return ObservedVerdict(frozenset(data.pop("passed")), inside=inside, **data)
