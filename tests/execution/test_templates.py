"""The pool of judge templates, with real processes that answer as a template does."""

import json
import os
import shutil
import sys
import threading

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.sandbox import TemplateSpec
from slop_code.execution.templates import MAX_STARTS, JudgeTemplate, TemplatePool
from tests.process_checks import ends

pytestmark = pytest.mark.e2e
END_S = 60
TEMPLATE = """
import os, socket, sys
server = socket.socket(fileno=int(sys.argv[1]))
if sys.argv[2] != "null":
    server.send(sys.argv[2].encode())
    server.recv(1)
"""
READY = {"ready": "imported"}


@pytest.fixture
def own_cache(tmp_path):
    cache = Cache.at(tmp_path / "cache")
    cache.sessions.mkdir(parents=True, exist_ok=True)
    return cache


@pytest.fixture
def pool():
    with TemplatePool() as pool:
        yield pool


def spec(key="a"):
    return TemplateSpec(kind="imported", key=key, argv=(), environment={}, settings="{}", timeout=END_S)


def use(pool, cache, key="a", answer=READY, check=lambda: None):
    def argv(folder, descriptor):
        return [sys.executable, "-I", "-S", "-c", TEMPLATE, str(descriptor), json.dumps(answer)]

    return pool.use(spec(key), cache, argv, check)


def used(pool, cache, **options):
    """The process of the template, or what there is instead."""
    with use(pool, cache, **options) as template:
        return template._process.pid if isinstance(template, JudgeTemplate) else template


def test_a_template_serves_from_the_second_use_on_and_ends_with_the_pool(own_cache):
    with TemplatePool() as pool:
        first, second, third = (used(pool, own_cache) for _ in range(3))
    assert first is None
    assert second == third
    assert ends(second, END_S)
    assert os.listdir(own_cache.sessions) == []


def test_a_pool_that_was_closed_meanwhile_starts_no_template(own_cache):
    pool, started = TemplatePool(), threading.Event()
    used(pool, own_cache)
    slot = pool._take(spec())  # as a thread that goes on when the pool is closed
    pool.close()
    pool._take = lambda _: started.set() or slot
    assert used(pool, own_cache) is None
    assert started.is_set()
    assert os.listdir(own_cache.sessions) == []


def test_a_template_that_has_read_damaged_files_is_not_kept(pool, own_cache):
    def damaged():
        raise InfrastructureError("damaged")

    used(pool, own_cache)
    with pytest.raises(InfrastructureError, match="damaged"):
        used(pool, own_cache, check=damaged)
    assert os.listdir(own_cache.sessions) == []
    assert isinstance(used(pool, own_cache), int)


def test_a_template_of_a_cache_that_was_removed_is_replaced(pool, own_cache):
    used(pool, own_cache)
    before = used(pool, own_cache)
    own_cache.root.rename(own_cache.root.with_name("kept"))  # so that no inode number is used again
    shutil.copytree(own_cache.root.with_name("kept"), own_cache.root)
    after = used(pool, own_cache)
    assert isinstance(after, int)
    assert before != after
    assert ends(before, END_S)


def test_a_template_that_was_killed_is_replaced(pool, own_cache):
    used(pool, own_cache)
    before = used(pool, own_cache)
    os.kill(before, 9)
    assert ends(before, END_S)
    assert used(pool, own_cache) not in (before, None)


def test_a_refusal_is_kept(pool, own_cache):
    used(pool, own_cache)
    assert used(pool, own_cache, answer={"refused": "no"}) == "no"
    assert used(pool, own_cache) == "no"
    assert os.listdir(own_cache.sessions) == []


def test_a_template_that_ends_without_an_answer_is_tried_again_a_few_times(pool, own_cache):
    used(pool, own_cache)
    assert used(pool, own_cache, answer=None).startswith("it is not ready")
    assert isinstance(used(pool, own_cache), int)
    used(pool, own_cache, key="b")
    for _ in range(MAX_STARTS):
        used(pool, own_cache, key="b", answer=None)
    assert used(pool, own_cache, key="b").startswith("it is not ready")


def test_a_pool_keeps_the_templates_that_were_used_last(own_cache):
    with TemplatePool(max_templates=2) as pool:
        pids = {}
        for key in ("a", "b", "c"):
            used(pool, own_cache, key=key)
            pids[key] = used(pool, own_cache, key=key)
        assert ends(pids["a"], END_S)
        assert used(pool, own_cache, key="b") == pids["b"]
        assert len(os.listdir(own_cache.sessions)) == 2
