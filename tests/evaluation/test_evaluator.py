"""Requests of an evaluator: taken as workers are free, failed one by one, refused after its end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from slop_code import (
    EvaluationCancelledError,
    Evaluator,
    EvaluatorRequest,
    InfrastructureError,
    SubmissionError,
    UsageError,
)

NOWHERE = {"../x": ""}
"""A submission that is refused before anything runs."""

TIMEOUT_S = 60


@pytest.fixture
def problem(make_problem):
    return make_problem({"test_checkpoint_1.py": ""})


@pytest.fixture
def request_for(problem):
    return lambda submission=NOWHERE, **options: EvaluatorRequest(submission, problem, 1, "local", **options)


@pytest.fixture
def make_evaluator(tmp_path):
    return lambda workers=2: Evaluator(workers, cache=tmp_path / "cache")


class Gate:
    """A file whose reading waits, and then raises."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def read(self, size: int, /) -> bytes:
        self.began.set()
        assert self.may_end.wait(TIMEOUT_S)
        raise ValueError("not today")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers: expected at least 1, found 0"),
        ({"workers": "2"}, "workers: expected a number, or None, found '2'"),
        ({"workers": True}, "workers: expected a number, or None, found True"),
        ({"environment": 5}, "environment: expected a name, a path or an EnvironmentSpec, found 5"),
        ({"problems_dir": 5}, "problems_dir: expected the path of a folder, or None, found 5"),
        ({"environment": "locall"}, "locall: no such environment; did you mean 'local'?"),
        ({"problems_dir": "nowhere"}, "problems_dir: nowhere: no such folder; give the folder of the problems"),
        ({"cache": b"x"}, "cache: expected the path of a folder, or None, found b'x'"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(UsageError) as refused:
        Evaluator(**options)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": [1]}, "checkpoint: expected the number or the name of a checkpoint, found [1] (list)"),
        ({"problem": 1}, "problem: expected a path, a name or a ProblemConfig, found 1 (int)"),
    ],
)
def test_a_request_refuses_wrong_types_when_it_is_made(options, message):
    with pytest.raises(UsageError) as refused:
        EvaluatorRequest(**{"submission": "a", "problem": "b", "checkpoint": 1, **options})
    assert str(refused.value) == message


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_requests_are_read_no_faster_than_workers_take_them(make_evaluator, request_for, workers):
    read = []

    def requests():
        for number in range(30):
            read.append(number)
            yield request_for()

    seen = []
    with make_evaluator(workers) as evaluator:
        outcomes = evaluator.map(requests())
        assert read == [], "nobody asked for an outcome yet"
        for outcome in outcomes:
            seen.append(outcome.index)
            assert len(read) <= len(seen) + workers
    assert sorted(seen) == read == list(range(30))


def test_outcomes_that_nobody_reads_hold_up_further_requests(make_evaluator, request_for):
    requests = iter([request_for() for _ in range(10)])
    with make_evaluator(2) as evaluator:
        outcomes = evaluator.map(requests)
        next(outcomes)
        assert len(list(requests)) == 10 - 3
        outcomes.close()


def test_the_first_to_finish_is_the_first_outcome(make_evaluator, request_for):
    gate = Gate()
    with make_evaluator(2) as evaluator:
        outcomes = evaluator.map([request_for(gate), request_for(), request_for()])
        assert [next(outcomes).index, next(outcomes).index] == [1, 2]
        gate.may_end.set()
        assert [outcome.index for outcome in outcomes] == [0]


def test_whatever_fails_is_an_outcome_and_ends_no_other(make_evaluator, request_for, problem, tmp_path):
    broken = Gate()
    broken.may_end.set()
    (tmp_path / "file").touch()
    requests = [
        request_for(),
        request_for(broken),
        EvaluatorRequest(tmp_path, "no-such-problem", 1),
        EvaluatorRequest(tmp_path, problem, 9),
        EvaluatorRequest(tmp_path, problem, 1, "no-such-environment"),
        request_for(tmp_path / "nothing"),
        request_for(tmp_path / "file"),
        request_for(problem.path),
    ]
    with make_evaluator() as evaluator:
        outcomes = sorted(evaluator.map(requests), key=lambda outcome: outcome.index)
    assert [outcome.request for outcome in outcomes] == requests
    assert [outcome.results for outcome in outcomes] == [None] * len(requests)
    assert [outcome.passes() for outcome in outcomes] == [False] * len(requests)
    assert [type(outcome.error) for outcome in outcomes] == [
        SubmissionError, InfrastructureError, UsageError, UsageError, UsageError, SubmissionError, SubmissionError,
        UsageError,
    ]  # fmt: skip
    assert "ValueError: not today" in str(outcomes[1].error)


def test_an_error_of_the_requests_comes_after_the_outcomes_of_those_before(make_evaluator, request_for):
    def requests():
        yield request_for()
        yield request_for()
        yield request_for()
        raise LookupError("no more")

    seen = []
    with make_evaluator() as evaluator, pytest.raises(LookupError, match="no more"):
        seen.extend(outcome.index for outcome in evaluator.map(requests()))
    assert sorted(seen) == [0, 1, 2]


@pytest.mark.parametrize("requests", [5, None, [5], ["submission"], [("a", "b", 1)]])
def test_anything_else_than_requests_is_refused(make_evaluator, requests):
    with make_evaluator() as evaluator, pytest.raises(UsageError, match="requests: expected an iterable of"):
        list(evaluator.map(requests))


def test_an_empty_map_ends_at_once(make_evaluator):
    with make_evaluator() as evaluator:
        assert list(evaluator.map([])) == []


def test_a_closed_evaluator_takes_nothing(make_evaluator, request_for, problem):
    evaluator = make_evaluator()
    evaluator.close()
    evaluator.close(cancel=True)
    with pytest.raises(UsageError, match="the evaluator is closed"):
        evaluator.evaluate(NOWHERE, problem, 1)
    with pytest.raises(UsageError, match="the evaluator is closed"):
        asyncio.run(evaluator.evaluate_async(NOWHERE, problem, 1))
    with pytest.raises(UsageError, match="the evaluator is closed"):
        list(evaluator.map([request_for()]))


def test_closing_waits_for_what_runs_and_what_waits(make_evaluator, request_for, problem):
    gate, ended = Gate(), []

    def read_outcomes():
        ended.extend(evaluator.map([request_for(gate)]))

    evaluator = make_evaluator(1)
    reader = threading.Thread(target=read_outcomes)
    reader.start()
    assert gate.began.wait(TIMEOUT_S)
    closer = threading.Thread(target=evaluator.close)
    closer.start()
    gate.may_end.set()
    closer.join(TIMEOUT_S)
    reader.join(TIMEOUT_S)
    assert [outcome.index for outcome in ended] == [0]


@pytest.mark.parametrize("waiting", ["evaluate", "map", "evaluate_async"])
def test_a_request_in_the_queue_is_cancelled_when_the_evaluator_is(make_evaluator, request_for, problem, waiting):
    gate, errors, queued = Gate(), [], threading.Event()
    evaluator = make_evaluator(1)
    busy = threading.Thread(target=lambda: list(evaluator.map([request_for(gate)])))
    busy.start()
    assert gate.began.wait(TIMEOUT_S)

    def wait():
        def requests():
            yield request_for()

        queued.set()
        try:
            if waiting == "evaluate":
                evaluator.evaluate(NOWHERE, problem, 1)
            elif waiting == "map":
                list(evaluator.map(requests()))
            else:
                asyncio.run(evaluator.evaluate_async(NOWHERE, problem, 1))
        except (EvaluationCancelledError, UsageError) as error:
            errors.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert queued.wait(TIMEOUT_S)
    closer = threading.Thread(target=lambda: evaluator.close(cancel=True))
    closer.start()
    waiter.join(TIMEOUT_S)
    assert not waiter.is_alive(), "it waits for the request before it"
    gate.may_end.set()
    closer.join(TIMEOUT_S)
    busy.join(TIMEOUT_S)
    assert len(errors) == 1
    assert isinstance(errors[0], EvaluationCancelledError) or "closed" in str(errors[0])


def test_wrong_arguments_make_no_cache(make_evaluator, problem, tmp_path):
    with make_evaluator() as evaluator:
        for arguments in ((NOWHERE, problem, 9), (NOWHERE, "nowhere", 1), (NOWHERE, problem, 1, "nowhere")):
            with pytest.raises(UsageError):
                evaluator.evaluate(*arguments)
    assert not (tmp_path / "cache").exists()


def test_a_request_shows_nothing_of_its_submission():
    """It may be large."""
    assert "secret" not in repr(EvaluatorRequest({"secret": "secret"}, "problem", 1))
