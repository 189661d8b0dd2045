"""Problem that a stored result was made from."""

import json
import os
from pathlib import Path

import pytest

from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs
from slop_code.evaluation.result_files.origin import ORIGIN_FILE, Origin
from slop_code.reporting import evaluated_problem
from slop_code.reporting.evaluated_problem import EvaluatedProblems
from slop_code.runs.scb.scb_evaluation import EVIDENCE
from tests.factories import case, result

CONFIG = {
    "name": "words", "version": 7, "description": "", "tags": [], "entry_file": "main.py",
    "checkpoints": {"checkpoint_1": {}, "checkpoint_2": {}},
}  # fmt: skip
FAILED = case("test_b[x]", "failed")


@pytest.fixture
def world(tmp_path):
    """A problem, and the folder of a result in a run that remembers it."""
    problem, folder = tmp_path / "problems/words", tmp_path / "run/words/checkpoint_2"
    (problem / "tests").mkdir(parents=True)
    (problem / "config.yaml").write_text(json.dumps(CONFIG))
    for number, name in enumerate("ab", start=1):
        (problem / f"tests/test_checkpoint_{number}.py").write_text(f"def test_{name}(): pass\n")
    (problem / "tests/test_checkpoint_1.py").write_text("def test_b(): return 1\n")
    folder.mkdir(parents=True)
    Origin(problem=str(problem)).keep(folder.parent)
    return problem, folder


def made(problem, **fields):
    config = ProblemConfig.from_yaml(problem)
    checkpoint = config.checkpoints["checkpoint_2"]
    digests = {
        "tests": checkpoint_inputs(config, checkpoint, Contents.of(config)).tests_digest,
        "config": config.digest(checkpoint),
    }
    return result([FAILED], checkpoint_name="checkpoint_2", digests={**digests, **fields.pop("digests", {})}, **fields)


def of(results, folder):
    return EvaluatedProblems().of(results, folder, folder.parent.parent)


def test_the_tests_that_were_evaluated_are_shown(world):
    known = of(made(world[0]), world[1])
    assert (known.version, known.source(FAILED)) == ("7", "def test_b(): return 1")
    assert known.source(case("test_b", file_path="test_checkpoint_2.py")) == "def test_b(): pass"


def test_the_origin_of_the_result_itself_comes_first(world):
    Origin(problem=str(world[0]), snapshot="/nowhere").keep(world[1])
    (world[1].parent / ORIGIN_FILE).unlink()
    assert of(made(world[0]), world[1]).source(FAILED)


def changed_tests(problem):
    (problem / "tests/helper.py").write_text("")


def changed_config(problem):
    (problem / "config.yaml").write_text(json.dumps({**CONFIG, "version": 8, "timeout": 3}))


def link_out(problem):
    (problem / "tests/link").symlink_to("/etc")


def gone(problem):
    (problem / "config.yaml").unlink()


def no_config(problem):
    (problem / "config.yaml").write_text("\t{")


@pytest.mark.parametrize(
    ("change", "version", "has_source"),
    [(changed_tests, "7", False), (changed_config, None, True), (link_out, "7", False), (gone, None, False),
     (no_config, None, False)],
)  # fmt: skip
def test_nothing_unproven_is_shown(world, change, version, has_source):
    results = made(world[0])
    change(world[0])
    known = of(results, world[1])
    assert (known.version, known.source(FAILED) is not None) == (version, has_source)


@pytest.mark.parametrize("problem", [None, "words", "/a\0b", "/etc", "/nowhere"], ids=range(5))
def test_an_origin_that_leads_nowhere_gives_nothing(world, problem):
    (world[1].parent / ORIGIN_FILE).write_text(json.dumps({"problem": problem}))
    known = of(made(world[0]), world[1])
    assert (known.version, known.source(FAILED)) == (None, None)


@pytest.mark.parametrize(
    "fields",
    [{"evidence": EVIDENCE}, {"digests": {"tests": None}}, {"digests": {"tests": "x" * 64}}],
    ids=["scb", "none", "other"],
)
def test_a_result_without_the_digest_has_no_source(world, fields):
    assert of(made(world[0], **fields), world[1]).source(FAILED) is None


@pytest.mark.parametrize("limit", ["MAX_TEST_FILES", "MAX_TESTS_BYTES"])
def test_a_huge_problem_is_not_read(world, monkeypatch, limit):
    monkeypatch.setattr(evaluated_problem, limit, 1)
    with (world[0] / "tests/large").open("wb") as stream:
        os.truncate(stream.fileno(), 10)
    assert of(made(world[0]), world[1]).source(FAILED) is None


def test_a_problem_is_read_once(world, monkeypatch):
    read = []
    of_folder = Contents.of
    results = made(world[0])
    monkeypatch.setattr(Contents, "of", lambda problem: read.append(problem) or of_folder(problem))
    problems = EvaluatedProblems()
    for _ in range(3):
        assert problems.of(results, world[1], Path("/nowhere")).source(FAILED)
    assert len(read) == 1
