"""Connection to a Ray cluster, and the check of its nodes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import Any

from slop_code.errors import UsageError
from slop_code.runs.executors.ray.node import NodeVersions, local_versions

CONNECT_TIMEOUT_S = 10.0
PROBE_TIMEOUT_S = 60.0
"""Time for the first answer of a node, which starts a worker for it."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else Ray prints the errors of its nodes into our output
}


@dataclass(frozen=True, slots=True)
class ClusterNode:
    id: str
    name: str
    cpus: float


def connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected; and whether this call made the connection."""
    ray = _load()
    if ray.is_initialized():
        return ray, False
    if not address:
        raise UsageError("no Ray cluster is named: give --ray-address HOST:PORT or set RAY_ADDRESS")
    _check_reachable(address)
    sigterm_handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        raise UsageError(
            f"Ray at {address}: {short_message(error)}; is this machine a node of it, with the same Python and Ray?"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, sigterm_handler)  # Ray replaces the handler
    return ray, True


def _load() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"Ray is not installed ({error}): pip install 'slop-code[ray]'") from error
    return ray


def _check_reachable(address: str) -> None:
    """A quick check: Ray itself tries for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise UsageError(f"Ray at {address}: expected HOST:PORT; run slop-code on a machine of the cluster")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(f"Ray at {address}: expected HOST:PORT, such as 10.0.0.1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, UnicodeError) as error:  # a name with an empty or a long part cannot be encoded
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"Ray at {address}: cannot be reached: {reason}; check the address, or start Ray there: ray start --head"
        ) from error


def live_nodes(ray: Any) -> list[ClusterNode]:
    """The nodes with processors."""
    nodes = [
        ClusterNode(
            node["NodeID"], f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})", node["Resources"]["CPU"]
        )
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    ]
    return sorted(nodes, key=lambda node: node.name)


def check_nodes(ray: Any, expected: NodeVersions) -> None:
    """Raises where a node has another slop-code. A node that joins later is checked by each job on it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = live_nodes(ray)
    if not nodes:
        raise UsageError("the Ray cluster has no node with processors; start one with ray start")
    probe = ray.remote(local_versions)
    probes = {
        probe.options(
            num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)
        ).remote(): node
        for node in nodes
    }
    answered, _ = ray.wait(list(probes), num_returns=len(probes), timeout=PROBE_TIMEOUT_S)
    errors = [
        f"node {node.name}: {error}"
        for ref, node in probes.items()
        if (error := _node_error(ray, ref, answered, expected))
    ]
    if errors:
        raise UsageError("\n".join([*errors, "install the same slop-code on every node"]))


def _node_error(ray: Any, reference: Any, answered: list[Any], expected: NodeVersions) -> str | None:
    if reference not in answered:
        return f"gave no answer within {PROBE_TIMEOUT_S:g} s"
    try:
        versions: NodeVersions = ray.get(reference)
    except Exception as error:  # noqa: BLE001  (an import there can raise anything)
        return f"cannot load slop-code: {short_message(error)}"
    return versions.difference(expected)


def short_message(error: BaseException) -> str:
    """The message of an error without the traceback that Ray adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "Traceback" in str(error) or "ray::" in lines[0] else lines[0]
