"""Proofs for `parallel: auto`: they count for the tests, settings and units that they were made with."""

from __future__ import annotations

import pytest

from slop_code.evaluation.parallel.parallel_proof import (
    SIZE_LIMIT,
    ParallelProofs,
    is_proven,
    proof_digest,
    proofs_path,
    read_proofs,
)
from slop_code.evaluation.problem.problem_contents import inputs_of

TESTS = {"test_checkpoint_1.py": "def test_a(): pass\n", "test_checkpoint_2.py": "def test_b(): pass\n"}
AUTO = {"parallel": "auto"}


def proven(problem, checkpoint=1):
    inputs = inputs_of(problem, problem.checkpoint(checkpoint))
    return is_proven(problem, f"checkpoint_{checkpoint}", inputs.tests_digest, inputs.config_digest)


@pytest.fixture
def problem(make_problem):
    """With a proof for its first checkpoint."""
    made = make_problem(TESTS, config=AUTO)
    digest = proof_digest(inputs_of(made, made.checkpoint(1)).tests_digest, made.digest(made.checkpoint(1)), made.unit)
    ParallelProofs(checkpoints={"checkpoint_1": digest}).save(proofs_path(made))
    return made


def test_proofs_load_back_and_belong_to_a_checkpoint(problem):
    [(name, digest)] = read_proofs(problem).checkpoints.items()
    assert (name, len(digest)) == ("checkpoint_1", 64)
    assert proven(problem)
    assert not proven(problem, 2)


@pytest.mark.parametrize(
    ("file", "valid"),
    [
        ("tests/test_checkpoint_1.py", False),
        ("tests/conftest.py", False),
        ("tests/data/new.txt", False),
        ("tests/flaky.json", False),
        ("tests/test_checkpoint_2.py", True),
        ("checkpoint_1.md", True),
        ("solutions/checkpoint_1/main.py", True),
    ],
)
def test_a_changed_test_refuses_the_proof(problem, file, valid):
    """Files that do not take part in the tests of the checkpoint change nothing."""
    path = problem.path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# another\n")
    assert proven(problem) is valid


@pytest.mark.parametrize(
    ("update", "valid"),
    [
        ({"parallel_by": "file"}, False),
        ({"parallel_by": "test"}, True),
        ({"in_process": True}, False),
        ({"env": {"A": "b"}}, False),
        ({"entry_file": "other.py"}, False),
        ({"description": "other"}, True),
    ],
)
def test_changed_settings_refuse_the_proof_if_tests_may_run_differently(problem, update, valid):
    assert proven(problem.model_copy(update=update)) is valid


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"schema_version": 2}', b'{"checkpoints": {"checkpoint_1": 1}}', b'{"more": 1}', b"\xff",
     b" " * (SIZE_LIMIT + 1)],
)  # fmt: skip
def test_a_file_that_cannot_be_read_proves_nothing(problem, content):
    proofs_path(problem).write_bytes(content)
    assert read_proofs(problem) == ParallelProofs()
    assert not proven(problem)


def test_an_evaluation_without_known_digests_is_not_proven(problem):
    assert not is_proven(problem, "checkpoint_1", None, None)
