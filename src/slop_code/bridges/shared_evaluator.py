"""Evaluations for other systems: one evaluator for all of them, and retries until there is a verdict."""

from __future__ import annotations

import asyncio
import atexit
import functools
from typing import TYPE_CHECKING, Any

from slop_code._arguments import same_parameters
from slop_code.errors import InfrastructureError
from slop_code.evaluation.evaluator.evaluator import Evaluator
from slop_code.evaluation.evaluator.evaluator_records import EvaluatorRequest
from slop_code.runs.jobs.run_control import Retries

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults


@functools.cache
def shared_evaluator() -> Evaluator:
    """The evaluator of all bridges in this process: it keeps warm judges, and bounds their evaluations together."""
    evaluator = Evaluator()
    atexit.register(evaluator.close, cancel=True)
    return evaluator


@same_parameters(EvaluatorRequest)
async def evaluate_with_retries(*arguments: Any, **options: Any) -> CorrectnessResults:
    """As `slop_code.evaluate_async`, but always a verdict: raises InfrastructureError where the retries end without."""
    retries = Retries()
    for attempt in range(retries.times + 1):
        results = await shared_evaluator().evaluate_async(*arguments, **options)
        if not results.infrastructure_failure:
            return results
        if results.permanent_failure or attempt == retries.times:
            break
        await asyncio.sleep(retries.delay(attempt))
    raise InfrastructureError(results.infrastructure_failure_reason or "no reason")
