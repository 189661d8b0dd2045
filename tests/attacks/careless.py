"""Shows that an attack is a real one, on an evaluator without any defence: hurried.py.

That one runs in a box of its own, so that what it lets through stops there: with a table of processes of its own, and
nothing to write to but the attack's own world.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.seen import Sight, Verdict
from slop_code.execution.bubblewrap.boxes import working_bwrap
from tests.attacks.hurried import LIMIT_S

if TYPE_CHECKING:
    from slop_code.attacks.attack import Attack
    from slop_code.attacks.world import World

ROOT = Path(__file__).parents[2]
EMPTY = ("/tmp", "/var/tmp", "/dev/shm")


def careless(world: World, attack: Attack) -> Verdict:
    """`attack` decides nothing: there is no environment to be careful with."""
    argv = [str(working_bwrap()), "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    argv += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    argv += [word for place in EMPTY for word in ("--tmpfs", place)]
    argv += [word for place in (ROOT, sys.prefix, sys.base_prefix) for word in ("--ro-bind", str(place), str(place))]
    kept = world.folder.parent / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    places = (world.folder, world.problem.path, kept)
    argv += [word for place in places for word in ("--bind", str(place), str(place))]
    argv += ["--", sys.executable, "-m", "tests.attacks.hurried", str(world.folder), str(world.problem.path), world.tag]
    answer, began = world.folder / "answer.json", world.folder / "began"
    try:
        subprocess.run(argv, cwd=ROOT, timeout=LIMIT_S, capture_output=True, check=True)
        found = json.loads(answer.read_bytes())
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        if not began.exists():
            raise
        return Verdict(frozenset(), 0, f"the careless evaluator was ended: {error}")
    within = tuple(Sight(Effect(effect), what) for effect, what in found.pop("within"))
    return Verdict(frozenset(found.pop("passed")), within=within, **found)
