"""Cancelled evaluations: a quick end, and nothing left."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest

from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from slop_code.execution.docker.engine import Engine
from slop_code.execution.docker.owners import ENTRY, OWNER, owner_label
from tests.process_checks import groups_of

PATIENCE_S = 600
STAYS = """
import signal, socket
signal.signal(signal.SIGTERM, signal.SIG_IGN)
connection = socket.create_connection(("127.0.0.1", {port}), 50)
connection.settimeout(50)
connection.recv(1)
"""
TESTS = {"test_checkpoint_1.py": "def test_first(): pass\ndef test_second(run): run(timeout=50)\n"}


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem(TESTS)


@pytest.fixture
def server():
    """Where a submission says that it is there; when it is gone, so is its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_S)
        yield listening


def keys(environment_spec, sandbox, phase):
    network = {"network": "full"}
    if sandbox == "docker":
        network["docker"] = {"image": environment_spec(sandbox="docker").docker.image, "network": "host"}
    setup = {"setup": {"commands": ["python3 main.py"]}} if phase == "setup" else {}
    return {**network, **setup}


def left_in_folders(cache):
    """Sessions, and builds that came to no end."""
    return {*(cache.root / "sessions").iterdir(), *cache.root.glob("*/.*/")}


def left_in_groups():
    return groups_of(os.getpid())


def left_in_engine(cache):
    engine = Engine("docker")
    ours = [item for item in engine.containers() if item.labels.get(OWNER) == owner_label(cache)]
    for volume in engine.volumes():
        entry = unquote(volume.labels.get(ENTRY, "none"))
        if volume.labels.get(OWNER) == owner_label(cache) and not Path(entry).is_dir():
            ours.append(volume)
    return ours


@pytest.mark.parametrize("phase", ["setup", "tests"])
@pytest.mark.parametrize("sandbox", ["none", "bubblewrap", "docker"])
def test_a_cancelled_evaluation_leaves_nothing(
    evaluate, environment_spec, problem, make_submission, cache, server, tmp_path, need, sandbox, phase
):
    need(sandbox)
    submission = make_submission({"main.py": STAYS.format(port=server.getsockname()[1])})
    environment, token = keys(environment_spec, sandbox, phase), CancelToken()
    before = left_in_folders(cache)

    def work():
        with cancel_scope(token):
            return evaluate(problem, submission, sandbox=sandbox, environment=environment, output_dir=tmp_path)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        subject, _ = server.accept()
        token.cancel()
        with pytest.raises(EvaluationCancelledError):
            future.result(PATIENCE_S)
    with subject:
        subject.settimeout(PATIENCE_S)
        assert subject.recv(1) == b"", "its process is gone"
    token.close()
    assert left_in_folders(cache) <= before
    assert left_in_groups() == []
    assert sandbox != "docker" or left_in_engine(cache) == []
    assert not (tmp_path / "evaluation.json").exists()
