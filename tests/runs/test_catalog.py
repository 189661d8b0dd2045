"""The release of the problems, from manifest.json or from the files of a git repository."""

from __future__ import annotations

import json

import pytest

from slop_code.runs.scb.catalog import CATALOG_FILE, Release, catalog_warnings, release_of

A, B = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("named", "found", "differs"),
    [
        (Release("v1.0", A), Release("v1.0", A), False),
        (Release("v1.0", A), Release("v1.1", A), False),
        (Release("v1.0", A), Release("v1.0", B), True),
        (Release("v1.0", A), Release(None, B), True),
        (Release("v1.0", A), Release("v1.1"), True),
        (Release("v1.0", A), Release("v1.0"), False),
        (Release("v1.0"), Release("v1.1", B), True),
        (Release("v1.0", A), Release(), False),
        (Release(), Release("v1.0", A), False),
        (Release(commit=A), Release("v1.0"), False),
    ],
)
def test_releases_differ_by_commit_else_by_version_and_never_by_what_is_unknown(named, found, differs):
    assert named.differs(found) is differs


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, Release()),
        ({"manifest.json": json.dumps({"version": "v1.0", "commit": A})}, Release("v1.0", A)),
        ({"manifest.json": json.dumps({"version": "v1.0"}), ".git/HEAD": f"{B}\n"}, Release("v1.0", B)),
        ({"manifest.json": "{"}, Release()),
        ({"manifest.json": json.dumps({"version": [], "commit": "short"})}, Release()),
        ({".git/HEAD": f"{A}\n"}, Release(commit=A)),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{A}\n"}, Release(commit=A)),
        (
            {".git/HEAD": "ref: refs/heads/main", ".git/packed-refs": f"{B} refs/heads/a\n{A} refs/heads/main\n"},
            Release(commit=A),
        ),
        (
            {
                ".git": "gitdir: ../repository/worktrees/here\n",
                "../repository/worktrees/here/HEAD": "ref: refs/heads/side\n",
                "../repository/worktrees/here/commondir": "../..\n",
                "../repository/refs/heads/side": f"{A}\n",
            },
            Release(commit=A),
        ),
        ({".git/HEAD": "ref: refs/heads/gone\n"}, Release()),
        ({".git/HEAD": "ref: refs/../../secret\n", "secret": f"{A}\n"}, Release()),
        ({".git/HEAD": "ref: /etc/passwd\n"}, Release()),
    ],
)  # fmt: skip
def test_the_release_of_a_folder_of_problems(tmp_path, files, expected):
    (tmp_path / "problems").mkdir()
    for name, text in files.items():
        path = tmp_path / "problems" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert release_of(tmp_path / "problems") == expected


def test_the_warning_names_both_releases_and_the_folder(tmp_path):
    (tmp_path / CATALOG_FILE).write_text(json.dumps({"version": "v1.0", "commit": A}))
    (tmp_path / "problems").mkdir()
    assert catalog_warnings(tmp_path, [tmp_path / "problems"]) == []
    (tmp_path / "problems/manifest.json").write_text(json.dumps({"version": "v1.1"}))
    assert catalog_warnings(tmp_path, [tmp_path / "problems"] * 2) == [
        f"{tmp_path / CATALOG_FILE}: the run used the problems v1.0 at {A[:12]}, and {tmp_path / 'problems'} has v1.1"
    ]
