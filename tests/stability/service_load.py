"""Clients of a reward service at full load, first undisturbed, then while it and its processes are killed at random.

`make service SECONDS=600` does it. Every answer is the verdict that the submission earned, an infrastructure failure
with a reason, or a request to come back later; every durable job ends. Undisturbed, there is no infrastructure failure,
neither of a request nor of a durable job. The exit status is 1 where that does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from benchmarks.throughput.growth import leftovers
from slop_code import Evaluator, EvaluatorRequest
from slop_code.execution.cache import Cache
from slop_code.execution.processors import available_cpus
from tests.bridges.service_process import ServiceProcess
from tests.e2e.conftest import GOOD, KINDS
from tests.stability.kills import EXPECTED, PROBLEM, victims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENTS = 64
REPEATED = 0.1
"""Share of requests for a submission that was asked for before."""

DURABLE = 0.05
OPEN = ("queued", "running")
"""States of durable jobs without a result."""

SERVER_KILLS = 5
"""Kills of the server itself, in the second half."""

MEAN_PAUSE_S = 5.0


@dataclass(slots=True)
class Load:
    process: ServiceProcess
    start: Callable[[], ServiceProcess]
    draw: random.Random
    answers: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    """MiB of the server, while it was not killed."""

    durable: dict[str, str] = field(default_factory=dict)
    """Kind of submission by id of the job, of jobs whose results were not fetched yet."""

    faults: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def note_failure(self, reason: object) -> None:
        """An infrastructure failure, of a request or of a durable job."""
        self.answers["infrastructure failure"] += 1
        self.reasons[str(reason).split("\n")[0][:100]] += 1
        if not reason:
            self.faults.append("an infrastructure failure without a reason")

    def check(self, kind: str, answer: dict[str, object]) -> None:
        failed = {test["id"] for test in answer["failures"]}  # type: ignore[attr-defined]
        if answer["state"] != "evaluated" or failed != EXPECTED[kind] or answer["reward"] != float(not failed):
            self.faults.append(f"{kind}: {answer}")


def files_of(kind: str, number: int) -> dict[str, str]:
    return {"main.py": GOOD.format(name=f"{os.getpid()} {number}", plus=KINDS[kind], first="")}


async def client_loop(load: Load, end: float) -> None:
    async with httpx.AsyncClient(timeout=300, trust_env=False, headers=load.process.headers) as client:
        while time.monotonic() < end:
            kind = load.draw.choice(list(EXPECTED))
            number = 0 if load.draw.random() < REPEATED else next(load.numbers)
            request = {"problem": PROBLEM.name, "checkpoint": 1, "submission": {"files": files_of(kind, number)}}
            if load.draw.random() < DURABLE:
                request["durable"] = True
            with contextlib.suppress(httpx.TransportError):
                answer = await client.post(f"{load.process.url}/evaluate", json=request)
                await handle(load, kind, answer)
                continue
            load.answers["connection lost"] += 1
            await asyncio.sleep(0.2)


async def handle(load: Load, kind: str, answer: httpx.Response) -> None:
    if answer.status_code == 200:
        load.answers["verdict"] += 1
        load.check(kind, answer.json())
    elif answer.status_code == 202:
        load.answers["durable"] += 1
        load.durable[answer.json()["id"]] = kind
    elif answer.status_code == 429:
        load.answers["queue full"] += 1
        await asyncio.sleep(float(answer.headers["retry-after"]))
    elif answer.status_code == 503:
        load.note_failure(answer.json().get("reason") or answer.json().get("error"))
    else:
        load.faults.append(f"{answer.status_code}: {answer.text[:500]}")


async def watch_memory(load: Load) -> None:
    while True:
        await asyncio.sleep(5)
        with contextlib.suppress(OSError):
            load.memory.append(rss_mib(load.process.process.pid))


def rss_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


async def kill_at_random(load: Load, end: float) -> None:
    """Processes below the server, and the server itself at even intervals."""
    interval = (end - time.monotonic()) / (SERVER_KILLS + 1)
    next_server = time.monotonic() + interval
    while time.monotonic() < end - interval / 2:
        await asyncio.sleep(load.draw.expovariate(1 / MEAN_PAUSE_S))
        if time.monotonic() >= next_server:
            next_server += interval
            load.process.end(signal.SIGKILL)
            load.killed["server"] += 1
            load.process = await asyncio.to_thread(load.start)
        elif targets := [each for each in victims() if each[0] != load.process.process.pid]:
            pid, name = load.draw.choice(targets)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                load.killed[name] += 1


async def finish_durable(load: Load) -> None:
    """Waits for the durable jobs, and checks their results."""
    async with httpx.AsyncClient(timeout=300, trust_env=False, headers=load.process.headers) as client:
        while load.durable:
            job, kind = load.durable.popitem()
            while (state := (await client.get(f"{load.process.url}/jobs/{job}")).json()).get("state") in OPEN:
                await asyncio.sleep(0.05)
            result = state.get("result", {})
            if result.get("state") == "infrastructure_failure":
                load.note_failure(result.get("reason"))
            elif result:
                load.check(kind, result)
            else:
                load.faults.append(f"durable job {job}: {state}")


async def under_load(load: Load, seconds: float, *, kills: bool) -> float:
    """Answers with a verdict per second."""
    before, began = load.answers["verdict"] + load.answers["durable"], time.monotonic()
    end = began + seconds
    others = [asyncio.create_task(kill_at_random(load, end) if kills else watch_memory(load))]
    await asyncio.gather(*(client_loop(load, end) for _ in range(CLIENTS)))
    for task in others:
        task.cancel() if not kills else await task
    return (load.answers["verdict"] + load.answers["durable"] - before) / (time.monotonic() - began)


def library_rate(seconds: float) -> float:
    end, numbers = time.monotonic() + seconds, itertools.count(1_000_000_000)
    kinds = itertools.cycle(EXPECTED)
    with Evaluator(available_cpus(), "local") as evaluator:

        def requests() -> Iterator[EvaluatorRequest]:
            while time.monotonic() < end:
                yield EvaluatorRequest(files_of(next(kinds), next(numbers)), PROBLEM, 1)

        began = time.monotonic()
        return sum(1 for _ in evaluator.map(requests())) / (time.monotonic() - began)


def campaign(seconds: float, seed: int, say: Callable[[str], None]) -> Load:
    before = leftovers()
    library = library_rate(min(60.0, seconds / 6))
    say(f"library: {library:.1f} per second with {available_cpus()} workers")
    with tempfile.TemporaryDirectory() as state:

        def start() -> ServiceProcess:
            return ServiceProcess(PROBLEM.parent, Path(state), "-e", "local")

        load = Load(start(), start, random.Random(seed))
        rate = asyncio.run(under_load(load, seconds / 2, kills=False))
        say(
            f"service, {CLIENTS} clients: {rate:.1f} per second, {rate / library:.2f} of the library; "
            f"{dict(load.answers)}"
        )
        say(f"memory of the server: {load.memory[:: max(1, len(load.memory) // 10)]} MiB")
        asyncio.run(finish_durable(load))
        if load.answers["infrastructure failure"] or load.answers["connection lost"]:
            load.faults.append(f"failures although nothing was killed: {dict(load.answers)} {dict(load.reasons)}")
        rate = asyncio.run(under_load(load, seconds / 2, kills=True))
        lost, explained = load.answers["infrastructure failure"], load.killed.total() * available_cpus()
        if lost > explained:
            load.faults.append(f"{lost} infrastructure failures, at most {explained} of them after a kill")
        say(f"with kills: {rate:.1f} per second; {dict(load.answers)}; killed {dict(load.killed)}")
        asyncio.run(finish_durable(load))
        if (status := load.process.end()) != 0:
            load.faults.append(f"the server ended with {status}: {load.process.lines[-20:]}")
    Cache.default().remove_abandoned_sessions()  # as the next evaluation does, after a kill
    load.faults += [f"left over: {name}" for name in sorted(leftovers() - before)]
    return load


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    load = campaign(arguments.seconds, arguments.seed, lambda line: print(line, flush=True))
    for reason, count in load.reasons.most_common():
        print(f"  {count} times: {reason}")
    for fault in load.faults[:20]:
        print(f"WRONG: {fault}")
    print(f"{load.answers['durable']} durable jobs, {len(load.faults)} faults")
    return 1 if load.faults else 0


if __name__ == "__main__":
    sys.exit(main())
