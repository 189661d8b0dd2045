"""Check of pinned dependencies for known vulnerabilities, with pip-audit: `python .ci/audit.py`.

Exit status: 0 none known, 1 some known, 3 not audited. pip-audit exits with 0 and prints "No known vulnerabilities
found" even when it could look up no package at all; here only packages that were looked up count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from locks import LOCK_GROUPS, canonical, read
from packaging.markers import Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 3
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class AuditResult:
    status: int
    text: str


def audit_result(report: str, pinned: Iterable[tuple[str, str]], stderr: str = "") -> AuditResult:
    """`report` is the output of pip-audit, JSON if it worked. `pinned` has the name and version of every package."""
    try:
        entries: list[dict[str, Any]] = json.loads(report)["dependencies"]
        looked_up: dict[tuple[str, str], list[dict[str, Any]]] = {}
        skipped: dict[str, str] = {}
        for entry in entries:
            if isinstance(entry.get("vulns"), list):
                looked_up.setdefault((canonical(entry["name"]), entry["version"]), []).extend(entry["vulns"])
            else:
                skipped[canonical(entry["name"])] = entry.get("skip_reason", "there is no answer")
        known = [
            f"{name} {version}: {vulnerability_text(vulns)}" for (name, version), vulns in looked_up.items() if vulns
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return AuditResult(NOT_AUDITED, f"NOT AUDITED: pip-audit gave no report. {last_line(stderr)}".rstrip())
    packages = sorted(set(pinned))
    missing = [(name, version) for name, version in packages if (name, version) not in looked_up]
    lines = [f"KNOWN VULNERABILITIES in {len(known)} packages:", *known] if known else []
    if missing or not packages:
        name = missing[0][0] if missing else "the locks"
        reason = skipped.get(name, "it is not in the report" if missing else "they name no package")
        unreached = "the advisories could not be reached: " if skipped and not looked_up else ""
        lines += [f"NOT AUDITED: {unreached}{len(missing)} of {len(packages)} packages. {name}: {reason}"]
    if known:
        return AuditResult(VULNERABLE, "\n".join(lines))
    if lines:
        return AuditResult(NOT_AUDITED, lines[0])
    return AuditResult(CLEAN, f"nothing known against {len(packages)} packages")


def vulnerability_text(vulns: Iterable[dict[str, Any]]) -> str:
    return "; ".join(f"{vuln['id']}, fixed in {', '.join(vuln['fix_versions']) or 'no version'}" for vuln in vulns)


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:500]


def main() -> int:
    results = [audit(locks) for locks in LOCK_GROUPS]
    for result in results:
        print(result.text)
    statuses = {result.status for result in results}
    return next((status for status in (VULNERABLE, NOT_AUDITED) if status in statuses), CLEAN)


def audit(locks: Sequence[Path]) -> AuditResult:
    pinned = [package for lock in locks for package in read(lock.read_text(encoding="utf-8"))]
    for_this_machine = [package for package in pinned if not package.marker or Marker(package.marker).evaluate()]
    options = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--desc=off"]
    files = [word for lock in locks for word in ("--requirement", str(lock))]
    try:
        process = subprocess.run(
            [sys.executable, "-m", "pip_audit", *options, *files],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return AuditResult(NOT_AUDITED, f"NOT AUDITED: pip-audit did not end within {TIMEOUT_S} s")
    return audit_result(
        process.stdout, [(package.name, package.version) for package in for_this_machine], process.stderr
    )


if __name__ == "__main__":
    sys.exit(main())
