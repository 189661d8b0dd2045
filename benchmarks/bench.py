"""What slop-code costs over bare pytest: `make bench`.

Every figure is a median over runs that take turns within one session on one machine; compare the ratios, not
the seconds of two sessions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.evaluation import ProblemConfig, PytestRunner
from slop_code.evaluation.command import LOCK
from slop_code.execution.interpreter import base_python
from slop_code.execution.spec import EnvironmentSpec, load_environment
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/problems/larder"
CALLS = Path(__file__).resolve().parent / "calls"


def docker_environment(**more: object) -> EnvironmentSpec | None:
    """The test image, where tests/with_docker.py has brought one."""
    image = os.environ.get("SLOP_CODE_TEST_IMAGE")
    if image is None:
        print(f"no Docker: {os.environ.get('SLOP_CODE_TEST_NO_DOCKER', 'run `make bench`')}\n")
        return None
    return EnvironmentSpec.model_validate({"type": "docker", "name": "bench", "docker": {"image": image}, **more})


def environment(**extra: str) -> dict[str, str]:
    """Bytecode is written and kept on both sides, whatever this shell says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **extra}


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def bare_venv(folder: Path) -> Path:
    """The locked test tools in a plain virtual environment of the same interpreter."""
    uv = str(uv_paths()[0])
    subprocess.run([uv, "venv", "--quiet", "--python", base_python(), str(folder)], check=True)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--require-hashes", "-r", str(LOCK)]
    subprocess.run([*install, "--python", str(folder / "bin/python")], check=True, env=environment())
    return folder / "bin"


def checkpoint_table(work: Path, rounds: int) -> dict[str, float]:
    problem = ProblemConfig.from_yaml(EXAMPLE)
    checkpoint = problem.checkpoint(3)
    solution = EXAMPLE / "solutions/checkpoint_3"
    binaries = bare_venv(work / "venv")
    shutil.copytree(solution, work / "bare")
    runner = PytestRunner(problem, checkpoint, load_environment("local"), solution)
    runner._copy_tests_from_problem(work / "bare")
    bare_env = environment(
        PATH=f"{binaries}:{os.environ['PATH']}",
        SCBENCH_ASSET_UNITS=str(work / "bare/.evaluation_tests/assets/units"),
        SCBENCH_CHECKPOINT=checkpoint.name,
    )
    bare = [
        str(binaries / "python"), "-m", "pytest", ".evaluation_tests", "-q", "-p", "no:cacheprovider",
        "--entrypoint=python main.py", f"--checkpoint={checkpoint.name}",
    ]  # fmt: skip
    command = [
        str(Path(sys.executable).with_name("slop-code")), "eval-snapshot", str(solution), "-p", str(EXAMPLE), "-c", "3",
        "-o", str(work / "out"),
    ]  # fmt: skip

    def run_bare() -> None:
        subprocess.run(bare, cwd=work / "bare", env=bare_env, check=True, stdout=subprocess.DEVNULL)

    def run_command() -> None:
        subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)

    def run_evaluation() -> None:
        assert runner.run().passed["all-cases"]

    actions: dict[str, Callable[[], None]] = {"bare": run_bare, "evaluation": run_evaluation, "command": run_command}
    if (spec := docker_environment()) is not None:
        boxed = PytestRunner(problem, checkpoint, spec, solution)

        def run_docker() -> None:
            assert boxed.run().passed["all-cases"]

        actions["docker"] = run_docker
    times: dict[str, list[float]] = {name: [] for name in actions}
    for round_number in range(rounds + 1):
        for name, action in actions.items():
            taken = seconds(action)
            if round_number:  # the first round warms every cache
                times[name].append(taken)
    return {name: statistics.median(values) for name, values in times.items()}


def call_table(work: Path, spec: EnvironmentSpec) -> dict[str, float]:
    """One call of the subject, measured by a test inside the judge's box, in milliseconds."""
    problem = ProblemConfig.from_yaml(CALLS)
    runner = PytestRunner(problem, problem.checkpoint(1), spec, CALLS / "submission", output_dir=work / "calls")
    results = runner.run(["-s"])
    if not results.passed["all-cases"]:
        raise SystemExit(results.infrastructure_failure_reason or results.tests[0].failure_message)
    log = (work / "calls/.scbench/pytest.log").read_text()
    found: dict[str, float] = json.loads(log.split("CALLS ")[1].splitlines()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds that count, at least 7 (default: 9)")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slop-code-bench-") as folder:
        checkpoint = checkpoint_table(Path(folder), max(7, arguments.rounds))
        local = load_environment(str(CALLS / "environment.yaml"))
        docker = docker_environment(commands=local.commands.model_dump())
        calls = {spec.type: call_table(Path(folder), spec) for spec in (local, docker) if spec}
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(f"machine: {machine}\n")
    print(f"one checkpoint of larder, warm, median of {max(7, arguments.rounds)}")
    print(f"{'':36}{'seconds':>9}{'ratio':>8}")
    for name, label in (
        ("bare", "bare pytest"),
        ("evaluation", "ours, in a running evaluator"),
        ("command", "ours, slop-code eval-snapshot"),
        ("docker", "ours, in Docker, running evaluator"),
    ):
        if name in checkpoint:
            print(f"{label:36}{checkpoint[name]:9.3f}{checkpoint[name] / checkpoint['bare']:8.3f}")
    if "docker" in checkpoint:
        over = checkpoint["docker"] - 1.15 * checkpoint["bare"]
        print(f"{'Docker over 1.15 times bare pytest':36}{over:9.3f}")
    print("\none call of the subject, milliseconds")
    print(f"{'':36}{'bare':>9}{'ours':>8}{'over':>8}")
    for name, value in calls.items():
        print(f"{name:36}{value['bare']:9.2f}{value['launcher']:8.2f}{value['launcher'] - value['bare']:8.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "checkpoint": checkpoint, "calls": calls}, indent=2))


if __name__ == "__main__":
    main()
