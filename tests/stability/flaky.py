"""Repeated runs of the test suite on a busy machine: `python -m tests.stability.flaky --times 5 [PYTEST ARGUMENT…]`.

Every test that failed in any run is listed with how often; the exit status is 1 where there is one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tests.stability.pressure import pressure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def failed_tests(report: Path) -> set[str]:
    """Names in a JUnit report of tests with a failure or an error, in set-up and tear-down too."""
    cases = ElementTree.parse(report).iter("testcase")
    return {
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }


def failures(times: int, arguments: Sequence[str]) -> Iterator[set[str]]:
    """Those of each run; a run that pytest did not finish counts as one."""
    with tempfile.TemporaryDirectory(prefix="slop-code-flaky-") as folder:
        for number in range(times):
            report = Path(folder, f"{number}.xml")
            status = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments], check=False
            ).returncode
            yield failed_tests(report) if status in (0, 1) else {f"pytest: exit status {status}"}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="runs of the suite (default: 5)")
    options, arguments = parser.parse_known_args(argv)
    counts: Counter[str] = Counter()
    with pressure():
        for names in failures(options.times, arguments):
            counts.update(names)
    for name, count in counts.most_common():
        print(f"failed in {count} of {options.times} runs: {name}")
    print(f"{len(counts)} tests failed in {options.times} runs under load")
    return int(bool(counts))


if __name__ == "__main__":
    sys.exit(main())
