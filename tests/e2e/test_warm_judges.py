"""Judges that are forked from a template: their process is the same as that of a judge that is started anew."""

from __future__ import annotations

import json
import os

import pytest

from slop_code.evaluation import PytestRunner
from slop_code.execution.templates import TemplatePool
from tests.e2e.test_hangs import left_alive
from tests.factories import statuses_by_id

pytestmark = pytest.mark.e2e

STATE = """
    import fcntl
    import gc
    import hashlib
    import json
    import locale
    import os
    import random
    import re
    import resource
    import signal
    import stat
    import sys
    import tempfile
    import threading
    import warnings

    import pytest


    def status():
        fields = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Sig", "Shd", "Threads", "Cpus", "Mems")
        with open("/proc/self/status") as file:
            return {line.split(":")[0]: line.split()[1:] for line in file if line.startswith(fields)}


    def mounts():
        with open("/proc/self/mountinfo") as file:
            lines = [" ".join(line.split()[3:]) for line in file]
        return [re.sub(r"/s\\w{8}\\b", "/SESSION", re.sub(r"\\b0:\\d+", "0", line)) for line in lines]


    def descriptors():
        known = {}
        for number in sorted(map(int, os.listdir("/proc/self/fd"))):
            try:
                info, target = os.fstat(number), os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue
            flags = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
            target = re.sub(r"\\d+", "N", re.sub(r"/s\\w{8}/", "/SESSION/", target))
            known[number] = [stat.S_IFMT(info.st_mode), target, flags, os.get_inheritable(number)]
        return known


    def namespaces():
        return {
            name: os.stat(f"/proc/self/ns/{name}").st_ino == os.stat(f"/proc/1/ns/{name}").st_ino
            for name in os.listdir("/proc/self/ns")
        }


    def first_line(path):
        with open(path) as file:
            return file.readline().strip()


    def plugins(config):
        named = config.pluginmanager.list_name_plugin()
        return sorted(name for name, plugin in named if plugin and not name.isdigit())


    STATES = {
        "user": lambda config: [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()],
        "umask": lambda config: os.umask(0o22),
        "cwd": lambda config: os.getcwd(),
        "argv": lambda config: sys.argv,
        "orig_argv": lambda config: sys.orig_argv,
        "main": lambda config: [repr(getattr(sys.modules["__main__"], name)) for name in ("__file__", "__name__")],
        "environ": lambda config: dict(os.environ),
        "status": lambda config: status(),
        "limits": lambda config: [resource.getrlimit(number) for number in range(16)],
        "descriptors": lambda config: descriptors(),
        "mounts": lambda config: mounts(),
        "namespaces": lambda config: namespaces(),
        "leads its session": lambda config: [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
        "path": lambda config: sys.path,
        "flags": lambda config: repr(sys.flags),
        "executable": lambda config: [sys.executable, sys.prefix, sys.base_prefix],
        "modules": lambda config: sorted({name.partition(".")[0] for name in sys.modules}),
        "inner modules": lambda config: hashlib.sha256(repr(sorted(sys.modules)).encode()).hexdigest(),
        "warnings": lambda config: list(map(repr, warnings.filters)),
        "signals": lambda config: [repr(signal.getsignal(number)).split(" at ")[0] for number in range(1, 65)],
        "streams": lambda config: [repr(sys.__stdin__), repr(sys.__stdout__), repr(sys.__stderr__)],
        "locale": lambda config: [locale.getlocale(), locale.getpreferredencoding(False)],
        "tempdir": lambda config: [tempfile.gettempdir(), os.listdir("/tmp")],
        "garbage": lambda config: [gc.isenabled(), gc.get_threshold()],
        "recursion": lambda config: sys.getrecursionlimit(),
        "threads": lambda config: [thread.name for thread in threading.enumerate()],
        "hash": lambda config: hash("the same in every judge"),
        "options": lambda config: {name: repr(value) for name, value in sorted(vars(config.option).items())},
        "arguments": lambda config: list(config.invocation_params.args),
        "plugins": lambda config: plugins(config),
        "scheduling": lambda config: [os.nice(0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
        "memory killer": lambda config: first_line("/proc/self/oom_score_adj"),
    }


    @pytest.mark.parametrize("name", STATES)
    def test_state(request, name):
        pytest.fail("STATE" + json.dumps(STATES[name](request.config)) + "END", pytrace=False)


    def test_random():
        pytest.fail(f"STATE{json.dumps(random.random())}END", pytrace=False)
"""


CALLS = """
    def test_upper(run):
        assert run("abc").stdout == "ABC\\n"

    def test_wrong(run):
        assert run("abc").stdout == "abc\\n"

    def test_daemon(run):
        assert run("daemon").returncode == 0
"""
CALLED = {"test_upper": "passed", "test_wrong": "failed", "test_daemon": "passed"}
UPPER = """
    import subprocess
    import sys

    if sys.argv[1:] == ["daemon"]:
        nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        subprocess.Popen(["sleep", "{seconds}"], start_new_session=True, **nowhere)
    print(*(word.upper() for word in sys.argv[1:]))
"""
SECONDS = f"{86400 + os.getpid()}"


@pytest.fixture(scope="module")
def pool():
    with TemplatePool() as pool:
        yield pool


@pytest.fixture(scope="module")
def judged(cache, need_bubblewrap, environment_spec, make_problem, make_submission, pool):
    """`judged["collected"]`: a result, and states of the judge's process, by test."""
    need_bubblewrap()
    problem, other = (make_problem({"test_checkpoint_1.py": STATE + CALLS}) for _ in range(2))
    submission = make_submission({"main.py": UPPER.replace("{seconds}", SECONDS)})

    def evaluate(problem, templates=pool):
        spec = environment_spec(sandbox="bubblewrap")
        runner = PytestRunner(problem, problem.checkpoint(1), spec, submission, cache=cache, templates=templates)
        results = runner.run()
        assert results.infrastructure_failure_reason is None
        states = {}
        for test in [test for test in results.tests if test.id not in CALLED]:
            assert "STATE" in test.failure_message, test.failure_message
            states[test.id] = json.loads(test.failure_message.split("STATE", 1)[1].rsplit("END", 1)[0])
        return results, states

    cold = evaluate(problem, None)
    first, imported = evaluate(other), evaluate(problem)
    assert first[0].isolation["judge"] == "cold", "a single evaluation needs no template"
    return {"cold": cold, "imported": imported, "collected": evaluate(problem), "again": evaluate(problem)}


@pytest.mark.parametrize("kind", ["imported", "collected"])
def test_a_forked_judge_has_the_state_of_a_new_one(judged, kind):
    results, states = judged[kind]
    assert results.isolation["judge"] == kind, results.isolation
    cold = judged["cold"][1]
    different = {name: (cold[name], value) for name, value in states.items() if value != cold[name]}
    assert list(different) == ["test_random"], different


def test_each_judge_has_a_random_state_of_its_own(judged):
    assert len({states["test_random"] for _, states in judged.values()}) == len(judged)


def test_judges_of_every_kind_give_the_same_results(judged):
    for results, _ in judged.values():
        found = statuses_by_id(results)
        assert {name: found[name] for name in CALLED} == CALLED
    assert left_alive(SECONDS) == []


@pytest.mark.long
def test_judges_without_a_sandbox_give_the_same_results(cache, environment_spec, make_problem, make_submission):
    problem, other = make_problem({"test_checkpoint_1.py": CALLS}), make_problem({"test_checkpoint_1.py": CALLS})
    seconds = f"{SECONDS}.5"
    submission = make_submission({"main.py": UPPER.replace("{seconds}", seconds)})
    environment = environment_spec(sandbox="none")
    with TemplatePool() as pool:
        judged = []
        for chosen, templates in ((problem, None), (other, pool), (problem, pool), (problem, pool)):
            options = {"cache": cache, "templates": templates}
            judged.append(PytestRunner(chosen, chosen.checkpoint(1), environment, submission, **options).run())
    assert [result.isolation["judge"] for result in judged] == ["cold", "cold", "cold", "imported"]
    assert [statuses_by_id(result) for result in judged] == [CALLED] * 4
    assert left_alive(seconds) == []
