from __future__ import annotations

import os

import pytest

from slop_code.errors import ConfigError
from slop_code.execution.assets import asset_environment, asset_variable, copy_assets, regular_files


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("files", "SCBENCH_ASSET_FILES"),
        ("Files", "SCBENCH_ASSET_FILES"),
        ("test-data.json", "SCBENCH_ASSET_TEST_DATA_JSON"),
        ("stop-words.txt", "SCBENCH_ASSET_STOP_WORDS_TXT"),
        ("a_1", "SCBENCH_ASSET_A_1"),
        ("größe", "SCBENCH_ASSET_GR_SSE"),
        ("a b", "SCBENCH_ASSET_A_B"),
    ],
)
def test_the_variable_follows_the_name_of_the_asset(name, variable):
    assert asset_variable(name) == variable


@pytest.mark.parametrize(
    ("names", "folder", "expected"),
    [
        ([], "/w/assets", {"SCBENCH_ASSETS_DIR": "/w/assets"}),
        (
            ["files", "a-b"],
            "/w/assets",
            {
                "SCBENCH_ASSETS_DIR": "/w/assets",
                "SCBENCH_ASSET_FILES": "/w/assets/files",
                "SCBENCH_ASSET_A_B": "/w/assets/a-b",
            },
        ),
    ],
)
def test_each_asset_has_a_variable(names, folder, expected):
    assert asset_environment(names, folder) == expected


def test_files_of_an_asset_have_relative_and_resolved_paths(tmp_path):
    folder, link = tmp_path / "folder", tmp_path / "link"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/a.txt").write_text("a", encoding="utf-8")
    (folder / "b.txt").symlink_to("deep/a.txt")
    link.symlink_to("folder")
    file = folder / "deep/a.txt"
    assert [(str(relative), path) for relative, path in regular_files(link)] == [("b.txt", file), ("deep/a.txt", file)]
    assert [(relative.parts, path) for relative, path in regular_files(link / "b.txt")] == [((), file)]
    with pytest.raises(ConfigError, match="leads nowhere"):
        list(regular_files(tmp_path / "missing"))


def test_files_and_folders_are_copied(tmp_path):
    source = tmp_path / "source"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "a.txt").write_text("a", encoding="utf-8")
    (source / "link.txt").symlink_to("deep/a.txt")
    (source / "also").symlink_to("deep")
    tool = tmp_path / "tool.sh"
    tool.write_text("#!/bin/sh\n", encoding="utf-8")
    tool.chmod(0o755)
    copied = tmp_path / "copied"
    for _ in range(2):
        copy_assets({"folder": source, "tool": tool}, copied)
    assert (copied / "folder" / "deep" / "empty").is_dir()
    assert (copied / "folder" / "also" / "a.txt").read_text(encoding="utf-8") == "a"
    assert (copied / "folder" / "link.txt").read_text(encoding="utf-8") == "a"
    assert not [path for path in copied.rglob("*") if path.is_symlink()]
    assert os.access(copied / "tool", os.X_OK)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("../outside.txt", "a link that leaves"),
        ("/etc", "a link that leaves"),
        ("gone", "leads nowhere"),
        ("..", "a link that leaves"),
        (".", "a link to a folder that it lies in"),
    ],
)
def test_links_out_of_the_asset_are_refused(tmp_path, target, message):
    (tmp_path / "outside.txt").touch()
    source = tmp_path / "source"
    source.mkdir()
    (source / "link").symlink_to(target)
    with pytest.raises(ConfigError, match=message):
        copy_assets({"a": source}, tmp_path / "copied")


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        copy_assets({"a": tmp_path / "pipe"}, tmp_path / "copied")


def test_a_missing_asset_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="leads nowhere"):
        copy_assets({"a": tmp_path / "gone"}, tmp_path / "copied")
