"""What the repeated runs of a reference come to: findings, each with the command that shows it again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import first_lines, in_line, named
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.reference_verdict import location_of_checkpoint
from slop_code.authoring.check.stability.conditions import AS_IS, ConditionKind, command
from slop_code.authoring.check.stability.flips import Cause, cause_of, flipping, flips, steady, whole
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.quarantine import LEDGER, line_in_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.check.stability.conditions import Condition, ReferenceRun
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.quarantine import Ledger
    from slop_code.evaluation.report import CorrectnessResults

FLAKY = Rule(
    "flaky-test",
    Severity.ERROR,
    "A test gives one result and then another, though nothing differs",
    "Take chance out of the test and the reference: fixed seeds, sorted output, no dates, no races. "
    "Until then `problems check --quarantine` keeps it from deciding verdicts.",
)
ORDER = Rule(
    "order-dependent-test",
    Severity.WARNING,
    "A test gives another result when other tests run before it",
    "Let it make all that it needs, in `tmp_path` or in a fixture, and leave nothing behind. "
    "Steps that build on each other belong into one class.",
)
LOAD = Rule(
    "load-dependent-test",
    Severity.ERROR,
    "A test gives another result on a busy machine",
    "Wait for what has to happen instead of a fixed time, give timeouts room, never assert how long something took.",
)
PARALLEL = Rule(
    "parallel-dependent-test",
    Severity.WARNING,
    "A test gives another result when the tests are split into pairs that run at the same time",
    "Let it need no other test, no fixture that other tests have filled, and no fixed place on the machine.",
)
LOST = Rule(
    "unstable-verdict",
    Severity.ERROR,
    "The reference has a verdict as it is, and none under other conditions",
    "Mend what the reason names: a test must not end pytest, and the whole session needs time on a busy machine.",
)
NOTHING_DECIDES = Rule(
    "group-in-quarantine",
    Severity.WARNING,
    "All tests of a group are in quarantine, so nothing decides there",
    "Mend one of them and take it out of tests/flaky.json, or write a test for that group that does not flip.",
    in_code=False,
)
NEEDLESS = Rule(
    "needless-quarantine",
    Severity.NOTE,
    "A test stands in the ledger of flaky tests and does not flip",
    "Take it out of tests/flaky.json if it is mended; raise --repeat if it is seldom seen to flip.",
    in_code=False,
)
RULES = (FLAKY, ORDER, LOAD, PARALLEL, LOST, NOTHING_DECIDES, NEEDLESS)

RULE_OF = {
    Cause.CHANCE: FLAKY,
    Cause.SEED: FLAKY,
    Cause.ORDER: ORDER,
    Cause.LOAD: LOAD,
    Cause.PARALLEL: PARALLEL,
}
MOST_SEEDS = 5
RUNNING = re.compile(r"while running (.+)$")


@dataclass(frozen=True, slots=True)
class ObservedRuns:
    """One checkpoint's reference, as often as it was run; first as it is."""

    checkpoint: CheckpointConfig
    runs: tuple[ReferenceRun, ...]


def unstable(bench: Workbench, observed: ObservedRuns, ledger: Ledger) -> Iterator[Finding]:
    """Tests that flip; those of the ledger are known to."""
    name, runs = observed.checkpoint.name, observed.runs
    for test in flipping(runs):
        cause = cause_of(runs, test)
        if cause is None or ledger.covers(test):
            continue
        rule = RULE_OF[cause]
        declared = rule is PARALLEL and bench.problem.parallel > 1
        yield Finding(
            rule,
            location_of_test(bench.problem.path, test),
            f"{named(test)} flips with the reference of {name}: {counted(runs, test)}",
            own_severity=Severity.ERROR if declared else None,
            checkpoint=name,
            test=test,
            detail=_detail(bench, observed, test, cause),
        )


def counted(runs: Sequence[ReferenceRun], test: str) -> str:
    """`passed in 4 of 4 runs as it is, 1 of 3 in another order (not with seeds 2, 3)`."""
    parts: list[str] = []
    odd = flips(runs, test)
    for kind in ConditionKind:
        told = whole(runs, test, kind)
        if told and (kind is ConditionKind.AS_IS or any(run in odd for run in told)):
            passed = sum(run.passed[test] for run in told)
            runs_word = "" if parts else " runs"
            parts.append(f"{passed} of {len(told)}{runs_word} {kind}{_seeds(told, test)}")
    return f"passed in {', '.join(parts)}"


def _seeds(runs: Sequence[ReferenceRun], test: str) -> str:
    seeds = dict.fromkeys(run.condition.seed for run in runs if run.condition.seed is not None and not run.passed[test])
    if not seeds:
        return ""
    some = ", ".join(map(str, list(seeds)[:MOST_SEEDS])) + (", …" if len(seeds) > MOST_SEEDS else "")
    return f" (not with seed{'s' if len(seeds) > 1 else ''} {some})"


def _detail(bench: Workbench, observed: ObservedRuns, test: str, cause: Cause) -> str:
    by_itself = test if cause in (Cause.CHANCE, Cause.SEED) else None
    failed = next((run.messages[test] for run in observed.runs if test in run.messages), "")
    lines = [
        f"decided by: {cause}",
        *_alone(observed.runs, test),
        f"again: {command(bench, observed.checkpoint, _shown(observed.runs, test), by_itself)}",
        *([first_lines(failed)] if failed else []),
    ]
    return "\n".join(lines)


def _shown(runs: Sequence[ReferenceRun], test: str) -> Condition:
    """As it is, where it flips so; else the first condition that makes it."""
    return AS_IS if not steady(runs, test) else flips(runs, test)[0].condition


def _alone(runs: Sequence[ReferenceRun], test: str) -> Iterator[str]:
    for run in runs:
        if run.alone == test and test in run.passed:
            seed = "without a seed" if run.condition.seed is None else f"with seed {run.condition.seed}"
            yield f"alone {seed}: {'passed' if run.passed[test] else 'not passed'}"


def lost_verdicts(bench: Workbench, observed: ObservedRuns) -> Iterator[Finding]:
    """One for each kind of condition."""
    name = observed.checkpoint.name
    for kind in ConditionKind:
        told = [run for run in observed.runs if run.alone is None and run.condition.kind is kind]
        lost = [run for run in told if run.lost is not None]
        if not lost:
            continue
        reason = lost[0].lost or ""
        test = _running(reason, observed.runs)
        yield Finding(
            LOST,
            location_of_test(bench.problem.path, test) if test else location_of_checkpoint(bench.problem, name),
            f"no verdict on the reference of {name} in {len(lost)} of {len(told)} runs {kind}: "
            f"{in_line(reason.partition(chr(10))[0])}",
            checkpoint=name,
            test=test,
            detail=f"again: {command(bench, observed.checkpoint, lost[0].condition)}\n{first_lines(reason)}",
        )


def _running(reason: str, runs: Sequence[ReferenceRun]) -> str | None:
    found = RUNNING.search(reason.partition("\n")[0])
    known = {test for run in runs for test in run.passed}
    return found.group(1) if found and found.group(1) in known else None


def needless(bench: Workbench, seen: Sequence[ObservedRuns], ledger: Ledger) -> Iterator[Finding]:
    """Entries of the ledger for tests that were seen and did not flip; those for no test are for the step layout."""
    known = {test for observed in seen for run in observed.runs for test in run.passed}
    odd = {test for observed in seen for test in flipping(observed.runs)}
    for entry in ledger.tests:
        covered = {test for test in known if entry.covers(test)}
        if not covered or covered & odd:
            continue
        place = Location(f"tests/{LEDGER}", line_in_ledger(bench.problem, entry.test))
        yield Finding(NEEDLESS, place, f"{named(entry.test)} did not flip in any run", test=entry.test)


def undecided(results: CorrectnessResults) -> Iterator[Finding]:
    """One for each group of the checkpoint without a test that counts."""
    name = results.checkpoint_name
    for group in GroupType:
        tests = [test for test in results.tests if test.group_type is group]
        if tests and all(test.quarantined for test in tests):
            message = f"{name}: all tests of {group} are in quarantine ({len(tests)})"
            yield Finding(NOTHING_DECIDES, Location(f"tests/{LEDGER}"), message, checkpoint=name)
