"""Trials: attacks carried out against an evaluator, with the observed effects."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Attack, AttackKind, Effect
from slop_code.attacks.attack_host import AttackHost, open_host, write_problem
from slop_code.attacks.effects import Observation, ObservedVerdict, observe
from slop_code.errors import InfrastructureError, SlopCodeError
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.cache import remove_tree
from slop_code.execution.environment import EnvironmentSpec

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.templates import TemplatePool

EvaluateAttack = Callable[[AttackHost, Attack], ObservedVerdict]
HONEST = Attack(name="honest", kind=AttackKind.CONFIGURATION, goal="none", does=Effect.LOSS)
"""The base program without an attack."""

NEEDS_BOX = "it sends signals, and without a box they would reach other processes"


class AttackState(StrEnum):
    HELD = "held"
    BROKE_THROUGH = "got through"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    attack: Attack
    observations: tuple[Observation, ...] = ()
    not_tried: str = ""
    """The reason why nothing is known."""

    @property
    def state(self) -> AttackState:
        if self.not_tried:
            return AttackState.NOT_TRIED
        return AttackState.BROKE_THROUGH if self.observations else AttackState.HELD


def slop_code_evaluator(
    environment: EnvironmentSpec,
    cache: Cache,
    progress: ProgressCallback = lambda _: None,
    templates: TemplatePool | None = None,
) -> EvaluateAttack:
    def evaluate(host: AttackHost, attack: Attack) -> ObservedVerdict:
        spec = EnvironmentSpec.model_validate({**environment.model_dump(), **attack.environment})
        runner = PytestRunner(
            host.problem,
            next(iter(host.problem.checkpoints.values())),
            spec,
            host.submission,
            output_dir=host.output,
            cache=cache,
            progress=progress,
            templates=templates,
        )
        results = runner.run()
        results.write(host.output / "evaluation.json")
        passed = frozenset(test.id for test in results.tests if test.status == "passed")
        return ObservedVerdict(passed, len(results.tests), results.infrastructure_failure_reason)

    return evaluate


def try_attack(
    attack: Attack, evaluator: EvaluateAttack, problem: ProblemConfig, folder: Path
) -> tuple[Observation, ...]:
    """Observed effects; an attack without any was held.

    After an attack that tries to poison caches, an honest submission is evaluated too, and has to get its own result.
    """
    with open_host(folder / attack.name, problem, attack) as host:
        observations = observe(host, evaluator(host, attack))
    if attack.does is not Effect.POISONED:
        return observations
    with open_host(folder / f"{attack.name}-next", problem, HONEST) as host:
        after = observe(host, evaluator(host, HONEST))
    return (*observations, *(Observation(Effect.POISONED, f"the next evaluation: {seen.detail}") for seen in after))


def try_attacks(
    attacks: Iterable[Attack], evaluator: EvaluateAttack, cache: Cache, *, boxed: bool
) -> Generator[AttackOutcome, None, None]:
    """Outcomes as they come, on the user's own machine; everything is removed at the end.

    `boxed` says whether the evaluator confines signals. An evaluator that misjudges the honest base program would make
    every outcome meaningless, so that is an error before any attack is tried.
    """
    with _temporary_problem(cache) as (folder, problem):
        honest = _try_safely(HONEST, evaluator, problem, folder)
        if reason := honest.not_tried or "; ".join(observation.detail for observation in honest.observations):
            raise InfrastructureError(f"an honest submission cannot be judged here: {reason}")
        for attack in attacks:
            if attack.signals and not boxed:
                yield AttackOutcome(attack, not_tried=NEEDS_BOX)
            else:
                yield _try_safely(attack, evaluator, problem, folder)


def _try_safely(attack: Attack, evaluator: EvaluateAttack, problem: ProblemConfig, folder: Path) -> AttackOutcome:
    try:
        return AttackOutcome(attack, try_attack(attack, evaluator, problem, folder))
    except (SlopCodeError, OSError) as error:
        return AttackOutcome(attack, not_tried=str(error))


@contextlib.contextmanager
def _temporary_problem(cache: Cache) -> Iterator[tuple[Path, ProblemConfig]]:
    folder = Path(tempfile.mkdtemp(prefix="slop-code-attacks-"))
    try:
        problem = write_problem(folder / "lines")
        try:
            yield folder, problem
        finally:
            _remove_staged_tests(problem, cache)
    finally:
        remove_tree(folder)


def _remove_staged_tests(problem: ProblemConfig, cache: Cache) -> None:
    """Remove the problem's tests from the cache; its fresh secret tells them from those of other problems."""
    name = "tests/expected/out.txt"
    secret = (problem.path / name).read_bytes()
    for file in (cache.root / "tests").glob(f"*/{name}"):
        with contextlib.suppress(OSError):
            if file.read_bytes() == secret:
                entry = file.parents[2]
                remove_tree(entry)
                entry.with_name(f".{entry.name}.lock").unlink(missing_ok=True)
