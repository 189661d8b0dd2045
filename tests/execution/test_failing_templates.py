"""Templates that cannot serve, or are lost: real processes that speak the first packet of the protocol."""

from __future__ import annotations

import json
import sys

import pytest

from slop_code.execution.cache import Cache
from slop_code.execution.sandbox import TemplateSpec
from slop_code.execution.templates import MAX_MEMORY, JudgeTemplate, TemplateLostError, TemplatePool

pytestmark = pytest.mark.e2e

ANSWER = """
import json, socket, sys
server = socket.socket(fileno=int(sys.argv[1]))
server.send(sys.argv[2].encode())
while True:
    data, descriptors, *_ = socket.recv_fds(server, 4096, 4)
    if not data or {lost}:
        break
"""


def spec(key="a", kind="imported", timeout=60.0):
    return TemplateSpec(kind=kind, key=key, argv=[], environment={}, settings="{}", timeout=timeout)


def answering(packet, *, lost=True):
    """argv of a process that sends this packet, and ends with its first request."""
    program = ANSWER.replace("{lost}", str(lost))
    return lambda _folder, descriptor: [sys.executable, "-c", program, str(descriptor), json.dumps(packet)]


@pytest.fixture
def own_cache(tmp_path):
    return Cache.at(tmp_path / "cache")


@pytest.fixture
def pool():
    with TemplatePool(max_templates=2) as pool:
        yield pool


@pytest.fixture
def used(pool, own_cache):
    """`used("a")`: the template of this key, at its second use, or why there is none."""

    def use(key="a", packet=None, timeout=60.0):
        argv = answering({"ready": "imported"} if packet is None else packet)
        with pool.use(spec(key, timeout=timeout), own_cache, argv, lambda: None) as first:
            assert first is None or isinstance(first, JudgeTemplate | str)
        with pool.use(spec(key, timeout=timeout), own_cache, argv, lambda: None) as template:
            return template

    return use


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ({"refused": "test_a.py read a clock"}, "test_a.py read a clock"),
        ({"ready": "imported", "memory": MAX_MEMORY + (1 << 20)}, f"it takes {(MAX_MEMORY >> 20) + 1} MiB of memory"),
    ],
)
def test_a_template_that_cannot_serve_is_not_started_again(used, own_cache, packet, reason):
    assert used("a", packet) == reason
    assert used("a", {"ready": "imported"}) == reason
    assert list(own_cache.sessions.iterdir()) == []


def test_a_template_that_is_not_ready_in_time_is_refused(pool, own_cache):
    silent = lambda _folder, _descriptor: [sys.executable, "-c", "import time; time.sleep(600)"]  # noqa: E731
    for expected in (None, "it was not ready within 0.01 s"):
        with pool.use(spec(timeout=0.01), own_cache, silent, lambda: None) as template:
            assert template == expected


def test_a_lost_template_is_no_result_and_is_replaced(used, tmp_path):
    template = used("a")
    with pytest.raises(TemplateLostError, match="the judge was lost"):
        template.evaluate({}, tmp_path / "log", 60)
    template._process.wait(60)
    assert used("a") is not template
