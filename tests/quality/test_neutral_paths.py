"""Paths of copies: plain names, and no two modules with the same name."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from slop_code.quality.neutral_paths import ROOT, neutral_paths


def paths_of(*names):
    """The paths of the copies, in the same order."""
    return list(neutral_paths([PurePosixPath(name) for name in names]).values())


def modules_of(*names):
    """The names that scb-check gives to the modules of these copies."""
    copies = [PurePosixPath(ROOT, name) for name in paths_of(*names)]
    packages = {copy.parent for copy in copies if copy.name == "__init__.py"}
    modules = []
    for copy in copies:
        parts, folder = [copy.stem], copy.parent
        while folder in packages:
            parts, folder = [folder.name, *parts], folder.parent
        modules.append(".".join(parts).removesuffix(".__init__"))
    return modules


@pytest.mark.parametrize(
    "names",
    [
        ["main.py"],
        ["pkg/__init__.py", "pkg/core.py", "pkg/deep/__init__.py", "pkg/deep/core.py", "core.py"],
        ["a/b-c/d.ts", "src/x.c++"],
        ["a/__init__.py", "a/utils.py", "b/__init__.py", "b/utils.py", "utils.py"],
    ],
)
def test_plain_paths_stay_as_they_are(names):
    assert paths_of(*names) == names


@pytest.mark.parametrize(
    "path",
    [
        "new\nline.py", "-option.py", ".hidden.py", "späte.py", "not-utf8-\udcff.py", "a.b.py", "script",
        "/".join(["deep"] * 300) + "/main.py", f"{'x' * 250}.py", f"{'y' * 100}/{'x' * 100}.py", "UPPER.PY",
        "window.pyw", "new.py3", "_0123456789abcdef01234567.py",
    ],
)  # fmt: skip
def test_a_path_that_the_tool_would_not_read_gets_another(path):
    neutral = PurePosixPath(*paths_of(path))

    assert neutral.suffix == ".py"
    assert str(neutral).isascii()
    assert str(neutral).isprintable()
    assert len(str(neutral)) <= 200
    assert not str(neutral).startswith("-")
    assert str(neutral) != path


@pytest.mark.parametrize(
    "names",
    [
        ["a/utils.py", "b/utils.py", "utils.py"],
        ["a.py", "a.js", "a.PY", "a.pyw", "a_pyw.py", "a"],
        ["a/x/__init__.py", "a/x/core.py", "b/x/__init__.py", "b/x/core.py", "b/x/other.py", "other.py"],
        ["pkg/__init__.py", "pkg/a.py", "pkg/a.js", "pkg/a/__init__.py", "pkg/a/b.py"],
        ["a/__init__.py", "a.py", "b/a.py"],
        ["a/__init__.py", "a/b.py", "a.b.py", "c/a.b.py"],
        ["__init__.py", "main.py", "a/sources/__init__.py", "a/sources/main.py", "sources.py"],
        ["a/späte.py", "b/späte.py", "c/späte.py"],
        [f"{'/'.join(['deep'] * 50)}/{top}/{name}.py" for top in "ab" for name in ("__init__", "main")],
    ],
)
def test_no_two_modules_share_a_name_or_a_copy(names):
    assert len(set(paths_of(*names))) == len(names)
    assert len(set(modules_of(*names))) == len(names)
