"""Templates, supervisors, judges and boxes that are killed or stopped: no verdict, a reason, and the next one works."""

import os
import signal
import threading
import time
import uuid
from pathlib import Path

import pytest

from slop_code.errors import SlopCodeError
from slop_code.evaluation import PytestRunner
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from slop_code.execution.templates import TemplatePool
from tests.marks import in_long
from tests.process_checks import ends, groups_of, sessions_held

pytestmark = pytest.mark.e2e

END_S = 60
SESSION_S = 45
MARK = f"a-submission-that-waits-{uuid.uuid4().hex}"
"""No other run of these tests on this machine has it."""

TESTS = {
    "test_checkpoint_1.py": """
    import os
    def test_first(): pass
    def test_call(run):
        assert run(timeout=300).stdout == "done\\n"
    """
}
GOOD = {"main.py": "print('done')"}
SLEEP = f"[sys.executable, '-c', 'import time; time.sleep(999)', '{MARK}']"
WAITING = {"main.py": f"import os, sys\nos.execv(sys.executable, {SLEEP})"}


@pytest.fixture(scope="module")
def make_world(cache, need_bubblewrap, environment_spec, make_problem, make_submission):
    need_bubblewrap()
    problem = make_problem(TESTS, config={"session_timeout": SESSION_S})
    return lambda pool: World(cache, pool, environment_spec(), problem, make_submission)


@pytest.fixture(scope="module")
def world(make_world):
    """Each test leaves it with a template that serves."""
    with TemplatePool() as pool:
        yield make_world(pool)


class World:
    """Evaluations of one problem, whose judges are forked from the collected template of a pool."""

    def __init__(self, cache, pool, spec, problem, make_submission):
        self.cache, self.pool, self.spec, self.problem = cache, pool, spec, problem
        self.good, self.waiting = make_submission(GOOD), make_submission(WAITING)
        self.others = sessions_held(self.cache)
        """Those of other tests of this process, such as a template that they share."""
        for kind in ("cold", "collected"):
            self.check_good(kind)

    def evaluate(self, submission):
        checkpoint = self.problem.checkpoint(1)
        runner = PytestRunner(
            self.problem, checkpoint, self.spec, submission, cache=self.cache, templates=self.pool, repeat_starved=False
        )
        return runner.run()

    def check_good(self, kind="collected"):
        results = self.evaluate(self.good)
        assert results.infrastructure_failure_reason is None
        assert results.isolation["judge"] == kind, results.isolation
        assert [test.status for test in results.tests] == ["passed", "passed"]

    def start_waiting(self):
        """An evaluation in a thread, whose submission runs and does not end by itself."""
        evaluation = Started(self)
        deadline = time.monotonic() + END_S
        while not (running := processes_with(MARK)):
            assert time.monotonic() < deadline, "the submission does not start"
            time.sleep(0.05)
        evaluation.submission = running
        return evaluation

    @property
    def template(self):
        (template,) = [slot.template for slot in self.pool._slots.values() if slot.template is not None]
        return template

    def left(self):
        """What evaluations have left, but for the template."""
        kept = {slot.template.folder.name for slot in self.pool._slots.values() if slot.template is not None}
        return [sessions_held(self.cache) - self.others - kept, processes_with(MARK), groups_of(os.getpid())]


class Started:
    def __init__(self, world):
        self.world, self.results, self.error, self.token = world, None, None, CancelToken()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            with cancel_scope(self.token):
                self.results = self.world.evaluate(self.world.waiting)
        except SlopCodeError as error:
            self.error = error

    def reason(self):
        self.thread.join(END_S)
        assert not self.thread.is_alive()
        assert self.error is None
        return self.results.infrastructure_failure_reason


def processes_with(word):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if word in (entry / "cmdline").read_text().split("\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def children(pid):
    try:
        return [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def command(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def template_process(template):
    """Below bwrap, the init of the box and uvx."""
    process = template._process.pid
    while not command(process).startswith(("python", "pytest")):
        (process,) = children(process)[:1]
    return process


def family(template):
    """Processes of an evaluation that runs, by their part in it."""
    process = template_process(template)
    # That of an earlier evaluation may still be there as a zombie.
    (supervisor,) = [child for child in children(process) if children(child)]
    by_command = {command(child).startswith("slopbox"): child for child in children(supervisor)}
    return {"template": process, "supervisor": supervisor, "boxes": by_command[True], "judge": by_command[False]}


REASONS = {
    "template": "the judge was lost",
    "supervisor": "the judge was lost",
    "judge": "pytest was killed by signal 9 (SIGKILL)",
    "boxes": "pytest was killed by signal 9 (SIGKILL)",
}


@pytest.mark.parametrize("victim", ["template", *in_long("supervisor", "judge", "boxes")])
def test_a_killed_process_is_a_reason_and_the_next_evaluation_works(world, victim):
    evaluation = world.start_waiting()
    os.kill(family(world.template)[victim], signal.SIGKILL)
    assert REASONS[victim] in evaluation.reason()
    assert all(ends(pid, END_S) for pid in evaluation.submission)
    world.check_good()
    assert world.left() == [set(), [], []]


@pytest.mark.long
def test_a_template_that_is_killed_while_nobody_uses_it_is_replaced(world):
    process = world.template._process.pid
    os.kill(process, signal.SIGKILL)
    assert ends(process, END_S)
    world.check_good()
    assert world.left() == [set(), [], []]


def test_a_cancelled_evaluation_leaves_nothing_and_its_template_serves_on(world):
    evaluation, template = world.start_waiting(), world.template
    evaluation.token.cancel()
    evaluation.thread.join(END_S)
    assert isinstance(evaluation.error, EvaluationCancelledError)
    assert all(ends(pid, END_S) for pid in evaluation.submission)
    world.check_good()
    assert world.template is template
    assert world.left() == [set(), [], []]


@pytest.mark.long
def test_a_pool_that_is_closed_ends_its_evaluations_with_a_reason(make_world):
    world = make_world(TemplatePool())
    evaluation = world.start_waiting()
    world.pool.close()
    assert "the judge was lost" in evaluation.reason()
    world.check_good("cold")
    assert all(ends(pid, END_S) for pid in evaluation.submission)
    assert world.left() == [set(), [], []]


@pytest.mark.long
def test_a_template_that_is_stopped_is_ended_and_replaced(world):
    process = template_process(world.template)
    os.kill(process, signal.SIGSTOP)
    reason = world.evaluate(world.good).infrastructure_failure_reason
    assert reason == f"the judge template did not answer within {SESSION_S} s, so it was ended; evaluate it again"
    assert ends(process, END_S)
    world.check_good()
    assert world.left() == [set(), [], []]
