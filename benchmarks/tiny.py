"""Generated problems and runs, with a submission that prints its arguments."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import yaml

from benchmarks.setting import EXAMPLES, ROOT, SALTS
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.parallel.parallel_proof import ParallelProofs, proof_digest, proofs_path
from slop_code.evaluation.problem.problem_contents import inputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.setting import Bench

CONFTEST = ROOT / "tests/problems/sums/tests/conftest.py"
MAIN = "import sys\nprint(*sys.argv[1:])\n"
TINY = "def test_says_it(run):\n    assert run('word').stdout == 'word\\n'\n"
PEAK = '''

def pytest_unconfigure():
    """Peak memory of this process in kilobytes, printed after all reports."""
    with open("/proc/self/status") as status:
        print("\\nPEAK " + status.read().split("VmHWM:")[1].split()[0], file=sys.__stdout__, flush=True)
'''


def write_problem(folder: Path, tests: Mapping[str, str], *, conftest: str = "", **keys: object) -> ProblemConfig:
    """A checkpoint for each file of tests; `conftest` is appended to the usual one."""
    names = [name.removeprefix("test_").removesuffix(".py") for name in tests]
    settings = {
        "name": folder.name, "version": 1, "description": "Says what it is given.", "tags": [], "entry_file": "main.py",
        "checkpoints": {
            name: {"order": order, "include_prior_tests": False} for order, name in enumerate(names, start=1)
        },
        **keys,
    }  # fmt: skip
    (folder / "tests").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    (folder / "tests/conftest.py").write_text(f"import sys\n{CONFTEST.read_text()}{conftest}")
    for name, text in tests.items():
        (folder / "tests" / name).write_text(text)
    return ProblemConfig.from_yaml(folder)


def write_submission(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(f"{MAIN}# {next(SALTS)}\n")
    return folder


def tiny_run(folder: Path, problem: ProblemConfig) -> Path:
    for name in problem.checkpoints:
        write_submission(folder / problem.name / name / "snapshot")
    return folder


def example(bench: Bench) -> ProblemConfig:
    """An example problem with references, or a tiny one at the smallest scale."""
    if bench.scale != "least":
        return ProblemConfig.from_yaml(EXAMPLES / "larder")
    problem = write_problem(bench.folder("example") / "tiny", {"test_checkpoint_1.py": TINY})
    write_submission(problem.path / "solutions/checkpoint_1")
    return problem


def proven(problem: ProblemConfig) -> ProblemConfig:
    """With the proof that `problems check` writes for tests that may run in parallel."""
    digests = {}
    for name, checkpoint in problem.checkpoints.items():
        inputs = inputs_of(problem, checkpoint)
        digests[name] = proof_digest(inputs.tests_digest, inputs.config_digest, problem.unit)
    ParallelProofs(checkpoints=digests).save(proofs_path(problem))
    return problem


def parallel_copy(bench: Bench, problem: ProblemConfig) -> ProblemConfig:
    """The problem with `parallel: auto` and its proof."""
    folder = bench.folder("parallel") / problem.name
    shutil.copytree(problem.path, folder)
    with (folder / "config.yaml").open("a") as config:
        config.write("parallel: auto\n")
    return proven(ProblemConfig.from_yaml(folder))


def solved_run(folder: Path, problem: ProblemConfig) -> Path:
    """A run with the reference of every checkpoint, unlike any other run."""
    for name in problem.checkpoints:
        snapshot = folder / problem.name / name / "snapshot"
        shutil.copytree(problem.path / "solutions" / name, snapshot)
        (snapshot / "notes.txt").write_text(f"{next(SALTS)}\n")
    return folder
