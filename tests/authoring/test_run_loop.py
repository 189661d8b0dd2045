"""Files that are watched, and the end of a change; the loop itself is tested as a process."""

import os
import threading

import pytest

from slop_code.authoring.run_loop import changed_since, file_states, is_watched, wait_for_change


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        ("test_checkpoint_1.py", True),
        ("expected", True),
        (".test_checkpoint_1.py.swp", False),
        ("test_checkpoint_1.py~", False),
        ("main.pyc", False),
    ],
)
def test_files_of_editors_and_compilers_are_not_watched(name, watched):
    assert is_watched(name) is watched


def test_changed_files_are_listed(tmp_path):
    for name in ("same", "written", "gone", "tests/renamed", "__pycache__/x", ".git/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a")
    before = file_states([tmp_path])
    (tmp_path / "written").write_text("longer")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").touch()
    (tmp_path / "tests/.new").write_text("a")
    os.rename(tmp_path / "tests/.new", tmp_path / "tests/renamed")
    for name in ("__pycache__/x", ".git/x"):
        (tmp_path / name).write_text("b")
    found = changed_since(before, file_states([tmp_path]))
    assert [os.path.relpath(path, tmp_path) for path in found] == ["gone", "new", "tests/renamed", "written"]


def test_what_cannot_be_read_is_no_trouble(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert list(file_states([tmp_path, tmp_path / "missing"])) == [str(tmp_path / "link")]


def test_a_change_is_waited_for(tmp_path):
    file = tmp_path / "a"
    file.write_text("")
    before = file_states([tmp_path])
    found = []
    thread = threading.Thread(target=lambda: found.append(wait_for_change([tmp_path], before, interval=0.001)))
    thread.start()
    file.write_text("changed")
    thread.join(60)
    assert found == [[str(file)]]
