"""Programs that run another system with a scripted agent, and what the agent does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("programs")
LARDER = ROOT / "examples/problems/larder"


def write_files(folder: Path) -> str:
    """A command that writes the files of a folder."""
    lines = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        lines.append(f"mkdir -p $(dirname {name}) && cat > {name} <<'END_OF_FILE'\n{path.read_text()}END_OF_FILE")
    return "\n".join(lines)


def snapshot(run: str, checkpoint: int) -> Path:
    return ROOT / f"examples/runs/{run}/larder/checkpoint_{checkpoint}/snapshot"


def run_process(argv: list[Any], folder: Path, text: str = "") -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    kept["PYTHONPATH"] = f"{PROGRAMS}:{PROGRAMS / 'offline'}"
    done = subprocess.run([*map(str, argv)], env=kept, cwd=folder, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
