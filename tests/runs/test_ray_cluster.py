"""Executor on a Ray cluster: addresses without a cluster, and a machine without Ray."""

from __future__ import annotations

import sys

import pytest

from slop_code.errors import UsageError
from slop_code.execution.cache import Cache
from slop_code.runs.executors import executor_class

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, "give --ray-address HOST:PORT or set RAY_ADDRESS"),
        ("somewhere", "expected HOST:PORT"),
        ("local", "expected HOST:PORT"),
        ("127.0.0.1:1", "127.0.0.1:1: cannot be reached"),
        ("10..0.1:6379", "10..0.1:6379: cannot be reached"),
        ("127.0.0.1:70000", "expected HOST:PORT"),
        ("ray://127.0.0.1:10001", "on a machine of the cluster"),
    ],
)
def test_wrong_addresses_are_usage_errors(monkeypatch: pytest.MonkeyPatch, address: str | None, message: str) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UsageError, match=message) as error:
        executor_class("ray")(None, address, lambda _: None, Cache.default())
    assert len(str(error.value).splitlines()) == 1


def test_without_ray_its_installation_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'slop-code\[ray\]'"):
        executor_class("ray")(None, "127.0.0.1:6379", lambda _: None, Cache.default())
