"""Types of the examples: every Python block of the documentation passes mypy's strict checks.

Blocks that are files of a problem or a submission may leave out annotations, as pytest passes fixtures by name.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, blocks

CACHE = str(Path(__file__).parents[2] / ".mypy_cache")
"""Filled by the lint step, whose options are the same: that saves most of the time."""

CONFIG = """
[mypy]
strict = true
plugins = pydantic.mypy

[mypy-problem_files.*]
disallow_untyped_defs = false
disallow_incomplete_defs = false
disallow_untyped_calls = false

[mypy-main]
ignore_missing_imports = true

[mypy-pandas.*]
ignore_missing_imports = true
"""


@pytest.mark.e2e
def test_every_python_example_is_typed(tmp_path: Path) -> None:
    known = [block for page in PAGES for block in blocks(page) if block.runner is None]
    examples = [block for block in known if block.language == "python"]
    folders = {True: tmp_path / "problem_files", False: tmp_path / "programs"}
    for folder in folders.values():
        folder.mkdir()
        (folder / "__init__.py").touch()
    for number, block in enumerate(examples):
        (folders[bool(block.file)] / f"example_{number}.py").write_text(f"# {block}\n{block.text}", encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIG, encoding="utf-8")
    completed = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", CACHE, *sorted(path.name for path in folders.values())],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    names = [f"example_{number}.py: {block}" for number, block in enumerate(examples)]
    assert completed.returncode == 0, "\n".join([completed.stdout, completed.stderr, *names])
    assert len(examples) > 10
