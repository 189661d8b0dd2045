"""Blocks of a page that need the package of another system, run in its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.pages import DOCS, ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Mapping


def run_page(page: str, runner: Path, python: Path, home: Path, settings: Mapping[str, str]) -> None:
    """One shell for all blocks, in a folder with the examples. A block that begins with `# NAME.py` is that file."""
    shutil.copytree(ROOT / "examples", home / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    lines = ["set -e"]
    for number, block in enumerate(block for block in blocks(DOCS / page) if block.runner == runner):
        first = block.text.partition("\n")[0].removeprefix("# ")
        if block.language == "python":
            name = first if first.endswith(".py") else f"block_{number}.py"
            (home / name).write_text(block.text, encoding="utf-8")
            lines += [f"python {name}"] if name != first else []
        else:
            lines.append(block.text)
    assert len(lines) > 1
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "SCBENCH_PR"))
    }
    path = os.pathsep.join([str(python.parent), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    argv = ["bash", "-c", "\n".join(lines)]
    done = subprocess.run(argv, cwd=home, env={**kept, "PATH": path, **settings}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
