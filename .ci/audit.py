"""Ask whether anything is known against what the locks pin: `python .ci/audit.py`, with pip-audit.

Exit status: 0 nothing known, 1 something known, 3 not audited. pip-audit itself ends with 0 where it could ask about
nothing, and says "No known vulnerabilities found"; here only a package that was really looked up counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from locks import LOCKS, canonical, read
from packaging.markers import Marker

if TYPE_CHECKING:
    from collections.abc import Iterable

CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 3
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str


def answer(report: str, wanted: Iterable[tuple[str, str]], trouble: str = "") -> Answer:
    """`report`: pip-audit's JSON, or anything else; `wanted`: name and version of all there is."""
    try:
        entries: list[dict[str, Any]] = json.loads(report)["dependencies"]
        looked_up: dict[tuple[str, str], list[dict[str, Any]]] = {}
        skipped: dict[str, str] = {}
        for one in entries:
            if isinstance(one.get("vulns"), list):
                looked_up.setdefault((canonical(one["name"]), one["version"]), []).extend(one["vulns"])
            else:
                skipped[canonical(one["name"])] = one.get("skip_reason", "there is no answer")
        known = [f"{name} {version}: {told(vulns)}" for (name, version), vulns in looked_up.items() if vulns]
    except (ValueError, KeyError, TypeError, AttributeError):
        return Answer(NOT_AUDITED, f"NOT AUDITED: pip-audit gave no report. {last_line(trouble)}".rstrip())
    every = sorted(set(wanted))
    missing = [(name, version) for name, version in every if (name, version) not in looked_up]
    lines = [f"KNOWN VULNERABILITIES in {len(known)} packages:", *known] if known else []
    if missing or not every:
        name = missing[0][0] if missing else "the locks"
        reason = skipped.get(name, "it is not in the report" if missing else "they name no package")
        unreached = "the advisories could not be reached: " if skipped and not looked_up else ""
        lines += [f"NOT AUDITED: {unreached}{len(missing)} of {len(every)} packages. {name}: {reason}"]
    if known:
        return Answer(VULNERABLE, "\n".join(lines))
    return Answer(NOT_AUDITED, lines[0]) if lines else Answer(CLEAN, f"nothing known against {len(every)} packages")


def told(vulns: Iterable[dict[str, Any]]) -> str:
    return "; ".join(f"{one['id']}, fixed in {', '.join(one['fix_versions']) or 'no version'}" for one in vulns)


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:500]


def main() -> int:
    pinned = [one for lock in LOCKS for one in read(lock.read_text(encoding="utf-8"))]
    here = [one for one in pinned if not one.marker or Marker(one.marker).evaluate()]
    options = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--desc=off"]
    files = [word for lock in LOCKS for word in ("--requirement", str(lock))]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", *options, *files],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
        found = answer(done.stdout, ((one.name, one.version) for one in here), done.stderr)
    except subprocess.TimeoutExpired:
        found = Answer(NOT_AUDITED, f"NOT AUDITED: pip-audit did not end within {TIMEOUT_S} s")
    print(found.text)
    return found.status


if __name__ == "__main__":
    sys.exit(main())
