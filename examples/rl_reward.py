"""Rewards of submissions, in a program with an event loop and in one without."""

import asyncio

from slop_code import CorrectnessResults, Evaluator, EvaluatorRequest

PROBLEM, CHECKPOINT = "examples/problems/larder", 2
FOLDERS = [f"examples/runs/{run}/larder/checkpoint_2/snapshot" for run in ("steady", "drifting")]


def reward(results: CorrectnessResults | None) -> float | None:
    """The share of tests that passed. None, which is not 0, if nothing can be said about the submission."""
    if results is None or results.infrastructure_failure:
        return None
    return sum(results.pass_counts.values()) / sum(results.total_counts.values())


def rewards(folders: list[str]) -> list[float | None]:
    with Evaluator() as evaluator:
        outcomes = evaluator.map(EvaluatorRequest(folder, PROBLEM, CHECKPOINT) for folder in folders)
        return [reward(outcome.results) for outcome in sorted(outcomes, key=lambda outcome: outcome.index)]


async def rewards_async(folders: list[str]) -> list[float | None]:
    async with Evaluator() as evaluator:
        tasks = [evaluator.evaluate_async(folder, PROBLEM, CHECKPOINT) for folder in folders]
        return [reward(results) for results in await asyncio.gather(*tasks)]


if __name__ == "__main__":
    print(rewards(FOLDERS))
    print(asyncio.run(rewards_async(FOLDERS)))
