"""Results of the audit for pip-audit's reports; `unreachable` is one of a machine without a connection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPORTS = Path(__file__).parents[1] / "data/audit"
WANTED = [("attrs", "26.1.0"), ("pluggy", "1.7.0"), ("attrs", "26.1.0")]
KNOWN = "KNOWN VULNERABILITIES in 1 packages:\nattrs 26.1.0: PYSEC-2026-7, fixed in 26.1.1"
UNREACHED = "NOT AUDITED: the advisories could not be reached"
REASON = "Dependency not found on PyPI and could not be audited"


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("clean", 0, "nothing known against 2 packages"),
        ("vulnerable", 1, f"{KNOWN}, 27.0.0; GHSA-aaaa-bbbb-cccc, fixed in no version"),
        ("unreachable", 3, f"{UNREACHED}: 2 of 2 packages. attrs: {REASON}: attrs (26.1.0)"),
        ("partly", 1, f"{KNOWN}\nNOT AUDITED: 1 of 2 packages. pluggy: {REASON}: pluggy (1.7.0)"),
    ],
)
def test_reports_of_pip_audit_have_a_status_and_a_text(script, name, status, text):
    result = script("audit").audit_result((REPORTS / f"{name}.json").read_text(), WANTED)
    assert (result.status, result.text) == (status, text)


VULNERABLE = {"name": "attrs", "version": "26.1.0", "vulns": [{"id": "PYSEC-2026-7", "fix_versions": ["26.1.1"]}]}
FINE = {"name": "attrs", "version": "26.1.0", "vulns": []}


@pytest.mark.parametrize(
    ("entries", "status", "text"),
    [
        ([FINE], 0, "nothing known against 1 packages"),
        ([VULNERABLE, FINE], 1, KNOWN),
        ([FINE, VULNERABLE], 1, KNOWN),
        ([{**FINE, "vulns": None}], 3, f"{UNREACHED}: 1 of 1 packages. attrs: there is no answer"),
        ([{**FINE, "vulns": "none"}], 3, f"{UNREACHED}: 1 of 1 packages. attrs: there is no answer"),
    ],
)
def test_an_answer_about_a_package(script, entries, status, text):
    result = script("audit").audit_result(json.dumps({"dependencies": entries}), [("attrs", "26.1.0")])
    assert (result.status, result.text) == (status, text)


def test_a_package_that_is_not_in_the_report_was_not_audited(script):
    report = (REPORTS / "clean.json").read_text()
    result = script("audit").audit_result(report, [*WANTED, ("rich", "15.0.0")])
    assert (result.status, result.text) == (3, "NOT AUDITED: 1 of 3 packages. rich: it is not in the report")
    assert script("audit").audit_result(report, [("attrs", "26.0.0")]).status == 3, "another version"


@pytest.mark.parametrize("report", ["", "no JSON", "[]", "{}", "null", '{"dependencies": 3}', '{"dependencies": [{}]}'])
def test_without_a_report_nothing_was_audited(script, report):
    result = script("audit").audit_result(report, WANTED, "Traceback\n  ConnectionError: no way out\n\n")
    assert (result.status, result.text) == (
        3,
        "NOT AUDITED: pip-audit gave no report. ConnectionError: no way out",
    )


def test_locks_without_packages_are_not_audited(script):
    assert script("audit").audit_result('{"dependencies": []}', []).status == 3


LOCK = """\
annotated-types==0.8.0 \\
    --hash=sha256:00 \\
    --hash=sha256:01
    # via pydantic
Colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:02
    # via
    #   -c requirements-dev.lock
    #   pytest
pydantic==2.14.3 \\
    --hash=sha256:03
    # via
    #   slop-code (pyproject.toml)
    #   slop-code (pyproject.toml:dev)
pytest==9.2.0
    # via slop-code (pyproject.toml:dev)
"""


def test_a_lock_is_read(script):
    locks = script("locks")
    read = locks.read(LOCK)
    assert [(one.name, one.version, one.marker) for one in read] == [
        ("annotated-types", "0.8.0", ""),
        ("colorama", "0.4.6", "sys_platform == 'win32'"),
        ("pydantic", "2.14.3", ""),
        ("pytest", "9.2.0", ""),
    ]
    assert [one.hashed for one in read] == [True, True, True, False]
    assert [one.name for one in locks.at_run_time(read)] == ["annotated-types", "pydantic"]


def test_everything_is_pinned_with_hashes(script):
    locks = script("locks")
    for lock in locks.LOCKS:
        text = lock.read_text()
        pinned = locks.read(text)
        entries = [line for line in text.splitlines() if line[:1] not in ("", " ", "#")]
        assert len(pinned) == len(entries) > 0, lock.name
        assert [one.name for one in pinned if not one.hashed] == []
