"""Damage in uv's cache is detected and removed."""

from __future__ import annotations

import base64
import hashlib

import pytest

from slop_code.execution.trees.manifest import (
    ARCHIVES,
    check_installed,
    damage_removed,
    record_installed,
)


@pytest.fixture
def wheel(empty_cache):
    folder = empty_cache.uv / ARCHIVES / "wheel"
    (folder / "tool-1.dist-info").mkdir(parents=True)
    (folder / "tool.py").write_text("x = 1\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).decode().rstrip("=")
    (folder / "tool-1.dist-info/RECORD").write_text(f"tool.py,sha256={digest},6\ntool-1.dist-info/RECORD,,\n")
    return folder


@pytest.fixture
def made(empty_cache):
    folder = empty_cache.uv / ARCHIVES / "made"
    (folder / "lib/__pycache__").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "lib/reports.py").write_text("x = 1\n")
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda wheel: (wheel / "tool.py").write_text("x = 2\n"),
        lambda wheel: (wheel / "tool.py").unlink(),
        lambda wheel: (wheel / "new.py").touch(),
        lambda wheel: (wheel / "tool-1.dist-info/RECORD").unlink(),
        lambda wheel: (wheel / "tool-1.dist-info/RECORD").write_bytes(b"\xff\x00"),
        lambda wheel: (wheel / "tool-1.dist-info/RECORD").write_text("tool.py\n"),
        lambda wheel: (wheel / "tool-1.dist-info/RECORD").write_text("tool.py,nonsense=1,6\n"),
    ],
    ids=["changed", "gone", "new", "no record", "no text", "too short", "no such digest"],
)
def test_a_wheel_that_differs_from_its_record_is_removed(empty_cache, wheel, change):
    with damage_removed(empty_cache):
        assert wheel.exists()
    change(wheel)
    with damage_removed(empty_cache):
        assert not wheel.exists()


@pytest.mark.parametrize(
    "left",
    [["bin/pytest"], ["tool.py"], ["tool-1.dist-info/METADATA"], []],
    ids=["environment", "wheel", "info", "none"],
)
def test_what_a_killed_process_left_of_a_folder_is_removed(empty_cache, left):
    """Without `pyvenv.cfg` and packages of its own, such an environment would import those of the host."""
    folder = empty_cache.uv / ARCHIVES / "half"
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    with damage_removed(empty_cache):
        assert not folder.exists()


def test_a_folder_is_moved_away_before_its_files_are_removed(empty_cache, made, monkeypatch):
    def killed(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("slop_code.execution.cache.remove_tree", killed)
    with pytest.raises(KeyboardInterrupt), damage_removed(empty_cache):
        pass
    (rest,) = empty_cache.uv.glob(".tmp*/made")
    assert not made.exists()
    assert (rest / "pyvenv.cfg").exists()


def test_an_environment_is_removed_once_it_is_changed(empty_cache, made):
    assert record_installed(empty_cache, made) == "made"
    check_installed(empty_cache, "made")
    with damage_removed(empty_cache):
        assert made.exists()
    (made / "lib/reports.py").write_text("x = 1; passed = True\n")
    with pytest.raises(ValueError, match=r"lib/reports\.py is damaged"):
        check_installed(empty_cache, "made")
    with damage_removed(empty_cache):
        assert not made.exists()


@pytest.mark.parametrize("name", ["lib/sitecustomize.py", "lib/more.pth", "lib/fast.so", "lib/reports.pyc"])
def test_a_new_file_is_damage(empty_cache, made, name):
    record_installed(empty_cache, made)
    (made / name).touch()
    with pytest.raises(ValueError, match="is new"):
        check_installed(empty_cache, "made")


def test_an_environment_without_a_manifest_is_removed(empty_cache, made):
    with damage_removed(empty_cache):
        assert not made.exists()


def test_an_environment_elsewhere_has_no_name(empty_cache, tmp_path):
    assert record_installed(empty_cache, tmp_path / "slop/judge/uv-cache" / ARCHIVES / "made") is None
