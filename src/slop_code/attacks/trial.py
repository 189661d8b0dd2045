"""One attack on one evaluator: lay it out, evaluate, look."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Attack, Effect, Kind
from slop_code.attacks.seen import Sight, Verdict, effects
from slop_code.attacks.world import World, opened
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.environment import EnvironmentSpec

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback

Evaluator = Callable[[World, Attack], Verdict]
HONEST = Attack(name="honest", kind=Kind.CONFIGURATION, goal="none", does=Effect.LOSS)
"""The poor program by itself."""


def ours(environment: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> Evaluator:
    def evaluate(world: World, attack: Attack) -> Verdict:
        spec = EnvironmentSpec.model_validate({**environment.model_dump(), **attack.environment})
        runner = PytestRunner(
            world.problem,
            next(iter(world.problem.checkpoints.values())),
            spec,
            world.submission,
            output_dir=world.out,
            cache=cache,
            progress=progress,
        )
        results = runner.run()
        results.save(world.out / "evaluation.json")
        passed = frozenset(test.id for test in results.tests if test.status == "passed")
        return Verdict(passed, len(results.tests), results.infrastructure_failure_reason)

    return evaluate


def try_attack(attack: Attack, evaluator: Evaluator, problem: ProblemConfig, folder: Path) -> tuple[Sight, ...]:
    """What it did; nothing: it was held. Afterwards an honest submission is judged as ever, where that is in doubt."""
    with opened(folder / attack.name, problem, attack) as world:
        found = effects(world, evaluator(world, attack))
    if attack.does is not Effect.POISONED:
        return found
    with opened(folder / f"{attack.name}-next", problem, HONEST) as world:
        after = effects(world, evaluator(world, HONEST))
    return (*found, *(Sight(Effect.POISONED, f"the next evaluation: {sight.what}") for sight in after))
