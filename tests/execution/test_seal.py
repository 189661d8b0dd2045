from __future__ import annotations

import os

import pytest

from slop_code.execution import seal as module
from slop_code.execution.seal import SEAL, check_seal, seal


@pytest.fixture
def entry(tmp_path):
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / "env/bin/python").symlink_to("/usr/bin/python3")
    (tmp_path / "env/empty").write_text("")
    (tmp_path / "env/odd\udcff\n").write_text("odd")
    seal(tmp_path)
    return tmp_path


def test_a_whole_entry(entry):
    check_seal(entry)


def test_what_comes_later_is_not_looked_at(entry):
    (entry / "env/__pycache__").mkdir()
    (entry / "env/__pycache__/late.pyc").write_text("late")
    check_seal(entry)


@pytest.mark.parametrize("name", ["env/pyvenv.cfg", "env/odd\udcff\n", SEAL])
@pytest.mark.parametrize("how", ["flipped", "cut short", "gone", "a folder", "a link"])
def test_damage(entry, name, how):
    path = entry / name
    content = path.read_bytes()
    path.unlink()
    if how == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif how == "cut short":
        path.write_bytes(content[:-1])
    elif how == "a folder":
        path.mkdir()
    elif how == "a link":
        path.symlink_to("env/empty")
    with pytest.raises((ValueError, OSError)):
        check_seal(entry)


def test_beyond_what_is_read_the_sizes_count(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 4)
    (tmp_path / "small").write_text("1234")
    (tmp_path / "large").write_text("12345")
    seal(tmp_path)
    (tmp_path / "large").write_text("54321")
    check_seal(tmp_path)
    (tmp_path / "large").write_text("1234")
    with pytest.raises(ValueError, match="large is damaged"):
        check_seal(tmp_path)


def test_a_tree_without_end_is_sealed_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 3)
    for number in range(9):
        (tmp_path / str(number)).write_text(str(number))
    os.mkfifo(tmp_path / "pipe")
    seal(tmp_path)
    check_seal(tmp_path)
