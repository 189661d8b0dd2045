"""Reward service under load, with kills of its processes and of itself."""

import pytest

from tests.stability.service_load import campaign


@pytest.mark.long
@pytest.mark.e2e
def test_every_answer_is_right_or_none_and_every_durable_job_ends(need_bubblewrap, cache, monkeypatch):
    need_bubblewrap()
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
    load = campaign(30, 1, lambda _: None)
    assert load.faults == []
    assert load.answers["verdict"]
    assert load.killed["server"]
