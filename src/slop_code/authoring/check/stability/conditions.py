"""Conditions under which a reference is repeated: plain, another order, a busy machine, parallel."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.authoring.check.workbench import EvaluationRequest
from slop_code.evaluation.evidence import running_test
from slop_code.evaluation.roster import shared_network_reason
from slop_code.execution.process import cpu_load
from slop_code.execution.processors import available_cpus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slop_code.authoring.check.workbench import Effort, Workbench
    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.environment import EnvironmentSpec

SPINNERS_PER_CPU = 3
"""With these, a test gets a quarter of a processor."""

REVERSE = 0
"""The seed of the reverse order, in which no test comes after a test that it needs."""

MAX_PAIRS = 4
MAX_COMMAND = 4000


class ConditionKind(StrEnum):
    """The values continue the phrase "3 of 3 runs"."""

    AS_IS = "as it is"
    ORDER = "in another order"
    BUSY = "on a busy machine"
    PARALLEL = "in parallel"


@dataclass(frozen=True, slots=True)
class Condition:
    kind: ConditionKind = ConditionKind.AS_IS
    seed: int | None = None
    pairs: int = 1

    def __str__(self) -> str:
        more = f", seed {self.seed}" if self.seed is not None else ""
        return f"{self.kind}{more}{f', {self.pairs} pairs' if self.pairs > 1 else ''}"

    @property
    def options(self) -> list[str]:
        """Options of `problems run` that create the condition."""
        seed = [] if self.seed is None else ["--seed", str(self.seed)]
        load = ["--busy"] if self.kind is ConditionKind.BUSY else []
        return [*seed, *load, *(["--parallel", str(self.pairs)] if self.pairs > 1 else [])]


AS_IS = Condition()


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """One evaluation of the reference, with the result of each test."""

    condition: Condition
    passed: Mapping[str, bool]
    """Results by node id; empty where there is no verdict."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    """Failure messages of tests that did not pass."""

    lost: str | None = None
    """The reason why there is no verdict."""

    running: str | None = None
    """The test that was running when the verdict was lost."""

    alone: str | None = None
    """The test that was run without the others."""

    inputs: tuple[str, str] | None = None
    """Digests of the tests and of the configuration."""


def conditions_for(environment: EnvironmentSpec, effort: Effort) -> list[Condition]:
    """In the order of execution, without the first run of the reference.

    The first parallel run divides the tests evenly; the others divide them at random, in random orders.
    """
    numbers = range(effort.repeat)
    max_pairs = 1 if why_not_parallel(environment) else min(available_cpus(), MAX_PAIRS)
    return [
        *[AS_IS for _ in numbers],
        *[Condition(ConditionKind.ORDER, seed=seed) for seed in seeds_from(effort)],
        *[Condition(ConditionKind.BUSY) for _ in numbers],
        *[
            Condition(ConditionKind.PARALLEL, seed=seed, pairs=2 + number % (max_pairs - 1))
            for number, seed in enumerate([None, *seeds_from(effort)[1:]][: effort.repeat])
            if max_pairs > 1
        ],
    ]


def seeds_from(effort: Effort) -> list[int]:
    """The reverse order comes first, whatever the seed."""
    drawn = [seed for seed in range(effort.seed, effort.seed + effort.repeat) if seed != REVERSE]
    return [REVERSE, *drawn][: effort.repeat]


def why_not_parallel(environment: EnvironmentSpec) -> str | None:
    """The reason why tests cannot run in parallel on this machine."""
    return shared_network_reason(environment) or ("there is only one processor" if available_cpus() == 1 else None)


def with_pairs(problem: ProblemConfig, pairs: int) -> ProblemConfig:
    """Split as config.yaml allows, and test by test where it has no `parallel`."""
    by = "test" if problem.parallel == 1 else problem.unit
    return problem.model_copy(update={"parallel": pairs, "parallel_by": by}) if pairs > 1 else problem


def run_under(bench: Workbench, checkpoint: CheckpointConfig, condition: Condition) -> ReferenceRun:
    trial = EvaluationRequest(
        checkpoint,
        bench.solution(checkpoint),
        problem=with_pairs(bench.problem, condition.pairs),
        seed=condition.seed,
        pairs=condition.pairs,
        repeat_starved=condition.kind is not ConditionKind.BUSY,  # the load is there to make tests late
    )
    spinners = SPINNERS_PER_CPU * available_cpus() if condition.kind is ConditionKind.BUSY else 0
    with tempfile.TemporaryDirectory(prefix="slop-code-stability-") as folder, cpu_load(spinners):
        results = bench.evaluate(replace(trial, output=Path(folder)))
        return run_from_results(condition, results, output=Path(folder))


def run_alone(
    bench: Workbench, checkpoint: CheckpointConfig, condition: Condition, test: str, mates: list[str]
) -> ReferenceRun:
    """`mates` are the tests of the same unit, including `test` itself."""
    trial = EvaluationRequest(checkpoint, bench.solution(checkpoint), seed=condition.seed, only=tuple(mates))
    return run_from_results(condition, bench.evaluate(trial), alone=test)


def run_from_results(
    condition: Condition, results: CorrectnessResults, *, alone: str | None = None, output: Path | None = None
) -> ReferenceRun:
    """`output` has the raw reports."""
    if results.infrastructure_failure_reason:
        running = running_test(output) if output else None
        return ReferenceRun(condition, {}, lost=results.infrastructure_failure_reason, running=running, alone=alone)
    digests = results.provenance.digests
    return ReferenceRun(
        condition,
        {test.nodeid: test.status == "passed" for test in results.tests},
        {test.nodeid: test.duration_ms / 1000 for test in results.tests},
        {test.nodeid: test.failure_message for test in results.tests if test.failure_message},
        alone=alone,
        inputs=(digests.tests, digests.config) if digests.tests and digests.config else None,
    )


def reproduce_command(
    bench: Workbench, checkpoint: CheckpointConfig, condition: Condition, test: str | None = None
) -> str:
    """The command that reproduces a run; `test` alone, if given."""
    name = (test or "").partition("[")[0].rpartition("::")[2]
    chosen = ["-k", name] if name.isidentifier() and condition.pairs == 1 else []
    path, here = bench.problem.path, Path.cwd()
    folder = path.relative_to(here) if path.is_relative_to(here) else path
    where = ["-e", bench.named_environment] if bench.named_environment else []
    argv = ["slop-code", "problems", "run", str(folder), "-c", checkpoint.name, *where, *condition.options, *chosen]
    return escape_control(shlex.join(argv), MAX_COMMAND)
