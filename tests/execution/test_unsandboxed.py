"""Reports that are taken from a workspace without a sandbox."""

import os

from slop_code.execution import unsandboxed
from slop_code.execution.sandbox import LOG
from slop_code.execution.unsandboxed import take_reports


def test_only_regular_files_are_taken(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "report.json").write_text("{}")
    (source / "folder").mkdir()
    (source / "link").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    (source / LOG).write_text("that of the judge is elsewhere")
    take_reports(source, target)
    assert {path.name: path.read_text() for path in target.iterdir()} == {"report.json": "{}"}


def test_a_file_without_an_end_is_not_copied_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(unsandboxed, "MAX_COPIED_REPORTS", 3 * unsandboxed.CHUNK + 5)
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    for name in ("a", "b"):
        with (source / name).open("wb") as stream:
            stream.truncate(1 << 36)
    take_reports(source, target)
    assert sum(path.stat().st_size for path in target.iterdir()) == 3 * unsandboxed.CHUNK + 5
