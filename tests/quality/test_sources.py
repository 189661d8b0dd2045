"""Copies of source files: the split of tests, neutral names, and what is left out."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import pytest

from slop_code.quality import sources
from slop_code.quality.quality_record import CodePart
from slop_code.quality.sources import IN_TOOL_FOLDER, code_part_of, copy_sources, incomplete_parts


@pytest.fixture
def snapshot(tmp_path):
    folder = tmp_path / "snapshot"
    folder.mkdir()
    return folder


@pytest.fixture
def copy(snapshot, tmp_path):
    return lambda: copy_sources(snapshot, tmp_path / "copy")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("main.py", "implementation"),
        ("latest.py", "implementation"),
        ("contest/attest.py", "implementation"),
        ("src/testing_tools.py", "implementation"),
        ("test_main.py", "tests"),
        ("pkg/main_test.py", "tests"),
        ("conftest.py", "tests"),
        ("tests.py", "tests"),
        ("tests/data/make.py", "tests"),
        ("Tests/helper.py", "tests"),
        ("src/test/main.cpp", "tests"),
        ("src/__tests__/a.js", "tests"),
        ("src/a.test.ts", "tests"),
        ("src/a.spec.js", "tests"),
        ("src/parser_test.rs", "tests"),
    ],
)
def test_the_submissions_own_tests_are_told_by_their_names(path, part):
    assert code_part_of(PurePosixPath(path)) == part


def test_two_files_never_share_a_copy(snapshot, copy):
    for name in ("a.py", "a.PY", "a_pyw.py", "a.pyw", "a.pYw"):
        (snapshot / name).write_text(name)

    assert sorted(copy().copies[CodePart.IMPLEMENTATION].values()) == ["a.PY", "a.pYw", "a.py", "a.pyw", "a_pyw.py"]
    assert len(copy().copies[CodePart.IMPLEMENTATION]) == 5


def test_only_regular_source_files_are_copied(snapshot, copy, tmp_path):
    (tmp_path / "secret.py").write_text("secret")
    for name in ("main.py", "pyproject.toml", "scb-check.toml", "sgconfig.yml", ".gitignore", "sg", "notes.md"):
        (snapshot / name).write_text("x")
    (snapshot / "link.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(snapshot / "pipe.py")
    (snapshot / "folder.py").mkdir()
    (snapshot / "linked").symlink_to(tmp_path)

    copied = copy()

    assert [path.name for path in (tmp_path / "copy").rglob("*") if path.is_file()] == ["main.py"]
    assert copied.left_out == {"a link": ["link.py"], "not a regular file": ["pipe.py"]}


def test_limits_and_unread_languages_leave_files_out_with_a_reason(snapshot, copy, monkeypatch):
    monkeypatch.setattr(sources, "MAX_FILES", 2)
    monkeypatch.setattr(sources, "MAX_FILE_SIZE", 2048)
    monkeypatch.setattr(sources, "MAX_TOTAL_SIZE", 1 << 20)
    for name in ("a.py", "b.py", "c.py", "main.go", "app.tsx"):
        (snapshot / name).write_text("x")
    (snapshot / "a_large.py").write_text("x" * 2049)
    (snapshot / "node_modules").mkdir()
    (snapshot / "node_modules" / "index.js").write_text("x")

    copied = copy()

    assert list(copied.copies[CodePart.IMPLEMENTATION]) == ["a.py", "b.py"]
    assert copied.left_out == {
        "larger than 2 KiB": ["a_large.py"],
        "more than 2 source files": ["c.py"],
        "scb-check reads no Go": ["main.go"],
        "scb-check reads no TSX": ["app.tsx"],
        "in a folder of installed packages or of tools": ["node_modules/index.js"],
    }


def test_the_total_size_is_bounded(snapshot, copy, monkeypatch):
    monkeypatch.setattr(sources, "MAX_TOTAL_SIZE", 1 << 20)
    for name in "abcde":
        (snapshot / f"{name}.py").write_bytes(bytes(256 << 10))

    assert copy().left_out == {"more than 1 MiB of source files": ["e.py"]}


def test_a_script_of_python_needs_no_suffix(snapshot, copy):
    (snapshot / "main").write_text("#!/usr/bin/env python3\nprint()\n")
    (snapshot / "run").write_text("#!/bin/sh\n")
    (snapshot / "notes").write_text("python\n")
    (snapshot / "link").symlink_to("main")

    assert list(copy().copies[CodePart.IMPLEMENTATION].values()) == ["main"]


def test_a_language_whose_parser_is_not_safe_is_left_out(snapshot, copy):
    (snapshot / "Main.hs").write_text("f x = x\n")

    assert copy().left_out == {"scb-check's parser of Haskell is not safe": ["Main.hs"]}


def test_an_encoding_that_hides_code_leaves_a_file_out(snapshot, copy):
    (snapshot / "main.py").write_text("# coding: utf-7\n#+AAo-x = 1\n")

    assert copy().left_out == {"an encoding in which ASCII characters have other meanings": ["main.py"]}


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        ({}, {}),
        ({"scb-check reads no Go": ["main.go"], "scb-check's parser of Haskell is not safe": ["Main.hs"]}, {}),
        ({"larger than 256 KiB": ["main.py", "a.py"], "a link": ["b.py"]}, {"implementation": 3}),
        ({IN_TOOL_FOLDER: ["node_modules/main.py"], "it has syntax errors": ["tests/a.py"]},
         {"implementation": 1, "tests": 1}),
    ],
)  # fmt: skip
def test_files_that_should_be_measured_make_a_part_incomplete(left_out, expected):
    assert incomplete_parts(left_out) == expected
