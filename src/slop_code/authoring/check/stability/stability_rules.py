"""Rules of the step `stability`, and their findings with commands that reproduce them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import first_line, first_lines, last_lines, shown_test
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.python_sources import location_of_checkpoint, location_of_test
from slop_code.authoring.check.stability.conditions import AS_IS, ConditionKind, reproduce_command
from slop_code.authoring.check.stability.flips import Cause, cause_of, flipping_tests, full_runs, is_steady, odd_runs
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.problem.quarantine import QUARANTINE_FILE, line_in_quarantine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.authoring.check.stability.conditions import Condition, ReferenceRun
    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.problem.quarantine import Quarantine
    from slop_code.evaluation.report import CorrectnessResults

FLAKY = Rule.error(
    "flaky-test",
    "A test gives different results under the same conditions",
    "Remove randomness from the test and the reference: fix seeds, sort output, use no dates, avoid races. "
    "Until then `problems check --quarantine` keeps the test from deciding verdicts.",
)
ORDER = Rule.warning(
    "order-dependent-test",
    "A test gives another result in another order of the tests",
    "Let the test create everything it needs, in `tmp_path` or in a fixture, and leave nothing behind. "
    "Put steps that build on each other into one class.",
)
LOAD = Rule.error(
    "load-dependent-test",
    "A test gives another result on a busy machine",
    "Wait for an event instead of a fixed time, use generous timeouts, never assert how long something took.",
)
PARALLEL = Rule.warning(
    "parallel-dependent-test",
    "A test gives another result when tests run in parallel; an error if `parallel` is a number above 1",
    "Let the test depend on no other test, no fixture that other tests fill, and no fixed path or port.",
)
LOST = Rule.error(
    "unstable-verdict",
    "The reference gets a verdict in a plain run, and none under other conditions",
    "Fix what the reason names: a test must not end pytest, and the session timeout has to suffice on a busy machine.",
)
NOTHING_DECIDES = Rule.warning(
    "group-in-quarantine",
    "All tests of a group are in quarantine, so that the group decides nothing",
    "Fix one of them and remove it from tests/flaky.json, or write a test for that group that does not flip.",
    in_code=False,
)
NEEDLESS = Rule.note(
    "needless-quarantine",
    "A test is in the quarantine and does not flip",
    "Remove it from tests/flaky.json if it is fixed; raise --repeat if it flips rarely.",
    in_code=False,
)
RULES = (FLAKY, ORDER, LOAD, PARALLEL, LOST, NOTHING_DECIDES, NEEDLESS)

RULE_OF = {Cause.CHANCE: FLAKY, Cause.SEED: FLAKY, Cause.ORDER: ORDER, Cause.LOAD: LOAD, Cause.PARALLEL: PARALLEL}
MAX_SEEDS = 5


@dataclass(frozen=True, slots=True)
class ObservedRuns:
    """All runs of a checkpoint's reference; the first is a plain run."""

    checkpoint: CheckpointConfig
    runs: tuple[ReferenceRun, ...]


def flip_findings(bench: Workbench, observed: ObservedRuns, quarantine: Quarantine) -> Iterator[Finding]:
    """Findings about tests that flip, except those in the quarantine."""
    name, runs = observed.checkpoint.name, observed.runs
    for test in flipping_tests(runs):
        cause = cause_of(runs, test)
        if cause is None or quarantine.covers(test):
            continue
        rule = RULE_OF[cause]
        declared = rule is PARALLEL and bench.problem.fixed_pairs > 1
        counts = pass_counts_text(runs, test)
        yield Finding(
            rule,
            location_of_test(bench.problem.path, test),
            f"{shown_test(test)} flips with the reference of {name}: {counts}",
            own_severity=Severity.ERROR if declared else None,
            checkpoint=name,
            test=test,
            detail=_detail(bench, observed, test, cause),
            measured=counts,
        )


def pass_counts_text(runs: Sequence[ReferenceRun], test: str) -> str:
    """`passed in 4 of 4 runs as it is, 1 of 3 in another order (not with seeds 2, 3)`."""
    parts: list[str] = []
    odd = odd_runs(runs, test)
    for kind in ConditionKind:
        matching = full_runs(runs, test, kind)
        if matching and (kind is ConditionKind.AS_IS or any(run in odd for run in matching)):
            passed = sum(run.passed[test] for run in matching)
            runs_word = "" if parts else " runs"
            parts.append(f"{passed} of {len(matching)}{runs_word} {kind}{_seeds(matching, test)}")
    return f"passed in {', '.join(parts)}"


def _seeds(runs: Sequence[ReferenceRun], test: str) -> str:
    seeds = dict.fromkeys(run.condition.seed for run in runs if run.condition.seed is not None and not run.passed[test])
    if not seeds:
        return ""
    some = ", ".join(map(str, list(seeds)[:MAX_SEEDS])) + (", …" if len(seeds) > MAX_SEEDS else "")
    return f" (not with seed{'s' if len(seeds) > 1 else ''} {some})"


def _detail(bench: Workbench, observed: ObservedRuns, test: str, cause: Cause) -> str:
    by_itself = test if cause in (Cause.CHANCE, Cause.SEED) else None
    failed = next((run.messages[test] for run in observed.runs if test in run.messages), "")
    lines = [
        f"decided by: {cause}",
        *_alone_lines(observed.runs, test),
        f"reproduce: {reproduce_command(bench, observed.checkpoint, _odd_condition(observed.runs, test), by_itself)}",
        *([last_lines(failed)] if failed else []),
    ]
    return "\n".join(lines)


def _odd_condition(runs: Sequence[ReferenceRun], test: str) -> Condition:
    """The plain condition where the test flips under it, otherwise the first that makes it flip."""
    return AS_IS if not is_steady(runs, test) else odd_runs(runs, test)[0].condition


def _alone_lines(runs: Sequence[ReferenceRun], test: str) -> Iterator[str]:
    for run in runs:
        if run.alone == test and test in run.passed:
            seed = "without a seed" if run.condition.seed is None else f"with seed {run.condition.seed}"
            yield f"alone {seed}: {'passed' if run.passed[test] else 'not passed'}"


def lost_verdict_findings(bench: Workbench, observed: ObservedRuns) -> Iterator[Finding]:
    """At most one finding for each kind of condition."""
    name = observed.checkpoint.name
    for kind in ConditionKind:
        matching = [run for run in observed.runs if run.alone is None and run.condition.kind is kind]
        lost = [run for run in matching if run.lost is not None]
        if not lost:
            continue
        reason, test = lost[0].lost or "", lost[0].running
        again = reproduce_command(bench, observed.checkpoint, lost[0].condition)
        yield Finding(
            LOST,
            location_of_test(bench.problem.path, test) if test else location_of_checkpoint(bench.problem, name),
            f"no verdict on the reference of {name} in {len(lost)} of {len(matching)} runs {kind}: "
            f"{first_line(reason)}",
            checkpoint=name,
            test=test,
            detail=f"reproduce: {again}\n{first_lines(reason)}",
        )


def needless_quarantine_findings(
    bench: Workbench, observed: Sequence[ObservedRuns], quarantine: Quarantine
) -> Iterator[Finding]:
    """Findings about quarantine entries of tests that ran and did not flip; unknown tests belong to the step layout."""
    known = {test for item in observed for run in item.runs for test in run.passed}
    odd = {test for item in observed for test in flipping_tests(item.runs)}
    for entry in quarantine.tests:
        covered = {test for test in known if entry.covers(test)}
        if not covered or covered & odd:
            continue
        location = Location(f"tests/{QUARANTINE_FILE}", line_in_quarantine(bench.problem, entry.test))
        yield Finding(NEEDLESS, location, f"{shown_test(entry.test)} did not flip in any run", test=entry.test)


def undecided_group_findings(results: CorrectnessResults) -> Iterator[Finding]:
    """Findings about groups of the checkpoint whose tests are all in quarantine."""
    name = results.checkpoint_name
    for group in GroupType:
        tests = [test for test in results.tests if test.group_type is group]
        if tests and all(test.quarantined for test in tests):
            message = f"{name}: all tests of {group} are in quarantine ({len(tests)})"
            yield Finding(NOTHING_DECIDES, Location(f"tests/{QUARANTINE_FILE}"), message, checkpoint=name)
