"""Getting into touch with a Ray cluster, and finding its nodes fit."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import Any

from slop_code.errors import UsageError
from slop_code.runs.executors.ray.node import Versions, versions_here

REACH_S = 10.0
ANSWER_S = 60.0
"""For the first word of a node, which starts a worker for it."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else Ray prints its nodes' troubles among our output
}


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    name: str
    cpus: float


def connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected; and whether the connection is ours, not one that the program had before."""
    ray = _load()
    if ray.is_initialized():
        return ray, False
    if not address:
        raise UsageError("no Ray cluster is named: give --ray-address HOST:PORT or set RAY_ADDRESS")
    _reach(address)
    told_to_end = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        raise UsageError(
            f"Ray at {address}: {in_short(error)}; is this machine a node of it, with the same Python and Ray?"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, told_to_end)  # Ray puts its own there
    return ray, True


def _load() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"Ray is not installed ({error}): pip install 'slop-code[ray]'") from error
    return ray


def _reach(address: str) -> None:
    """Ray itself tries for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise UsageError(f"Ray at {address}: expected HOST:PORT; run slop-code on a machine of the cluster")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(f"Ray at {address}: expected HOST:PORT, such as 10.0.0.1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except OSError as error:
        raise UsageError(f"Ray at {address}: cannot be reached: {error.strerror or error}") from error


def alive(ray: Any) -> list[Node]:
    """Those that jobs can run on."""
    nodes = [
        Node(node["NodeID"], f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})", node["Resources"]["CPU"])
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    ]
    return sorted(nodes, key=lambda node: node.name)


def check_nodes(ray: Any, expected: Versions) -> None:
    """Before anything runs; one that joins later is looked at by each job on it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = alive(ray)
    if not nodes:
        raise UsageError("the Ray cluster has no node with processors; start one with ray start")
    probe = ray.remote(versions_here)
    asked = {
        probe.options(
            num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)
        ).remote(): node
        for node in nodes
    }
    answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_S)
    wrong = [
        f"node {node.name}: {said}" for ref, node in asked.items() if (said := _wrong(ray, ref, answered, expected))
    ]
    if wrong:
        raise UsageError("\n".join([*wrong, "install the same slop-code on every node"]))


def _wrong(ray: Any, reference: Any, answered: list[Any], expected: Versions) -> str | None:
    if reference not in answered:
        return f"gave no answer within {ANSWER_S:g} s"
    try:
        found: Versions = ray.get(reference)
    except Exception as error:  # noqa: BLE001  (whatever an import there can raise)
        return f"cannot load slop-code: {in_short(error)}"
    return found.difference(expected)


def in_short(error: BaseException) -> str:
    """Without the traceback that Ray puts into its messages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "Traceback" in str(error) or "ray::" in lines[0] else lines[0]
