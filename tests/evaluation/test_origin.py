import os
import subprocess
import sys

import pytest

from slop_code.evaluation.result_files.origin import ORIGIN_FILE, Origin, environment_reference, origin_in


def test_it_is_kept_and_found_from_the_nearest_folder(tmp_path):
    near, far = tmp_path / "run" / "words", tmp_path / "run"
    near.mkdir(parents=True)
    Origin(problems_dir=str(tmp_path)).keep(far)
    assert origin_in([near, far]) == Origin(problems_dir=str(tmp_path))
    Origin(problem=str(near), environment="local").keep(near)
    assert origin_in([near, far]) == Origin(problem=str(near), environment="local")


def test_what_is_gone_was_never_said(tmp_path):
    gone = str(tmp_path / "gone")
    Origin(problem=gone, problems_dir=gone, environment=gone, snapshot=str(tmp_path)).keep(tmp_path)
    assert origin_in([tmp_path]) == Origin(snapshot=str(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"problem": 3}', '{"other": "x"}'])
def test_a_damaged_one_is_none(tmp_path, text):
    (tmp_path / ORIGIN_FILE).parent.mkdir()
    (tmp_path / ORIGIN_FILE).write_text(text)
    assert origin_in([tmp_path, tmp_path / "nowhere"]) == Origin()


def test_where_it_cannot_be_kept_nothing_breaks(tmp_path):
    (tmp_path / "file").write_text("")
    Origin().keep(tmp_path / "file")
    Origin().keep(tmp_path / "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_nothing_is_written_through_a_link(tmp_path):
    victim, run = tmp_path / "victim", tmp_path / "run"
    victim.mkdir()
    run.mkdir()
    (victim / "origin.json").write_text("precious")
    (run / ".slop-code").symlink_to(victim)
    Origin(problem=str(run)).keep(run)
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"origin.json": "precious"}


def test_an_environment_is_found_from_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "local").write_text("")
    (tmp_path / "mine.yaml").write_text("")
    assert environment_reference("local") == "local"
    assert environment_reference("mine.yaml") == str(tmp_path / "mine.yaml")
    assert environment_reference(None) is None


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_of_another_user_is_refused_before_anything_is_evaluated(tmp_path):
    code = """
import os, sys
from pathlib import Path
from slop_code.evaluation.result_files.origin import make_result_folder
os.chdir(sys.argv[1])
os.setuid(65534)
make_result_folder(Path("."))
"""
    tmp_path.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert "UsageError: .: results cannot be written there: Permission denied; give another folder" in done.stderr
