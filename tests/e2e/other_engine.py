"""Evaluations with the engine of `tests/with_engine.py`, in whose namespaces this module runs; it prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from slop_code.evaluation import CorrectnessResults, ProblemConfig, PytestRunner
from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine import Engine
from slop_code.execution.environment import EnvironmentSpec

REPOSITORY = Path(__file__).parents[2]
HITCOUNT = REPOSITORY / "examples" / "problems" / "hitcount"
REFERENCE = HITCOUNT / "solutions" / "checkpoint_1"
CHECKPOINTS = (1, 2)
"""The reference of the first one passes its tests and fails those of the second."""

SHELL = {
    "setup": {"commands": ["sh -n main.sh"]},
    "commands": {"entry_file": "{entry_file}.sh", "command": "sh"},
}
CONTRACT = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "other_engine", "tests/execution/test_sandbox.py")
MAX_SHOWN = 8000


def run(*words: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, *words], cwd=REPOSITORY, capture_output=True, text=True)
    return {"status": done.returncode, "output": (done.stdout + done.stderr)[-MAX_SHOWN:]}


def statuses(results: CorrectnessResults) -> dict[str, str]:
    return {test.nodeid: test.status for test in results.tests}


def main(binary: str) -> dict[str, object]:
    docker = {"image": "slop-code-test:latest", "binary": binary, "network": "host"}
    settings = {"type": "docker", "name": "other", "docker": docker}
    environment = Path(tempfile.mkdtemp(), "other.yaml")
    environment.write_text(json.dumps(settings))
    answer: dict[str, object] = {
        "contract": run(*CONTRACT),
        "attacks": run("-m", "slop_code", "doctor", "--attacks", "-e", str(environment)),
        "doctor": run("-m", "slop_code", "doctor", "--docker", binary),
    }
    problem, spec = ProblemConfig.from_yaml(HITCOUNT), EnvironmentSpec.model_validate({**settings, **SHELL})
    runners = [
        PytestRunner(problem, problem.checkpoint(n), spec, REFERENCE, cache=Cache.default()) for n in CHECKPOINTS
    ]
    results = [runner.run() for runner in runners]
    answer |= {"statuses": [statuses(each) for each in results], "isolation": results[0].isolation}
    engine = Engine(binary)
    engine.check_output("create", "--name", "there", docker["image"], "true")
    engine.remove(["missing", "there"])
    listed = [engine.check_output(*words, "--quiet").split() for words in (("ps", "--all"), ("volume", "ls"))]
    return answer | {"containers": listed[0], "volumes": listed[1], "folder": str(Path(binary).parent)}


if __name__ == "__main__":
    print(json.dumps(main(os.environ["SLOP_CODE_TEST_ENGINE"])))
