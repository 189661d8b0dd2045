"""Starting point of every campaign: a warm cache, and the undisturbed verdict on each submission."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from slop_code.evaluation import CorrectnessResults
from slop_code.execution.cache import Cache
from slop_code.execution.submission import open_submission, tree_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROBLEMS = Path(__file__).parents[1] / "problems"
PROBLEM = "sums"
CHECKPOINTS = ("checkpoint_1", "checkpoint_2", "checkpoint_3")
PROGRAM = (sys.executable, "-P", str(Path(__file__).with_name("recording_executor.py")))
ONCE = ("uv", "tools", "subjects", "tests", "probes")
PATIENCE_S = 600
WORKERS = 2
RETRIES = 1
RESULT = "evaluation.json"
MAIN = """
import sys

a, operation, b = sys.argv[1:]
try:
    a, b = int(a), int(b)
except ValueError:
    sys.exit(2)
print({{"+": {plus}, "-": a - b, "x": a * b}}[operation])
# {name}
"""
KINDS = {"good": "a + b", "wrong": "a + b + 1", "crashes": "1 // 0"}
ENVIRONMENTS: Mapping[str, Mapping[str, Any]] = {
    "bubblewrap": {"type": "local", "name": "faults"},
    "none": {"type": "local", "name": "faults", "isolation": "none"},
    "docker": {
        "type": "docker",
        "name": "faults",
        "docker": {"image": os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")},
    },
}


@dataclass(frozen=True, slots=True)
class SubmissionKind:
    """Kind and checkpoint of a submission, which decide its verdict."""

    kind: str
    checkpoint: str


def write_snapshot(folder: Path, kind: str, name: str) -> str:
    """The digest of a submission that has its like nowhere else, as `name` is its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(MAIN.format(plus=KINDS[kind], name=name))
    return digest_of(folder)


def digest_of(snapshot: Path) -> str:
    return tree_digest(open_submission(snapshot))


def comparable(result: CorrectnessResults) -> dict[str, Any]:
    """All but measurements, which judge it was, digests that the expectation is found by, and addresses in messages."""
    document = result.model_dump(mode="json", exclude={"duration", "phases", "attempts"})
    for name in ("judge", "judge_reason"):
        document["isolation"].pop(name, None)
    for name in ("submission", "tests"):
        del document["provenance"]["digests"][name]
    for test in document["tests"]:
        for name in ("duration_ms", "usage", "attempts"):
            del test[name]
        test["failure_message"] = re.sub("0x[0-9a-f]+", "0x", test["failure_message"] or "")
    return document


@dataclass
class Baseline:
    folder: Path
    sandbox: str = "bubblewrap"
    program: Sequence[str] = PROGRAM
    expected: dict[SubmissionKind, dict[str, Any]] = field(default_factory=dict)
    tests: dict[str, str | None] = field(default_factory=dict)
    """The digest of each checkpoint's tests."""

    further: dict[str, str] = field(default_factory=dict)
    """Variables that every evaluator has."""

    run_s: float = 1.0
    """How long a run of three takes."""

    single_s: float = 1.0

    @property
    def environment(self) -> Path:
        return self.folder / "environment.yaml"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def variables(self, cache: Path, **further: str) -> dict[str, str]:
        given = {"SCBENCH_CACHE_DIR": str(cache), "COLUMNS": "200", "FAULTS_RECORD": str(cache.parent / "record")}
        return {**os.environ, **given, **self.further, **further}

    def eval_words(self, problems: Path, *runs: Path, more: Sequence[str] = ()) -> list[str]:
        words = ["eval", "--no-live-progress", "--problems-dir", problems, "-e", self.environment]
        return [*self.program, *map(str, [*words, "-j", WORKERS, "--retries", RETRIES, *more, *runs])]

    def single_words(self, problems: Path, snapshot: Path, checkpoint: str, output: Path) -> list[str]:
        words = ["eval-snapshot", snapshot, "-p", problems / PROBLEM, "-c", checkpoint, "-e", self.environment]
        return [*self.program, *map(str, [*words, "-o", output])]

    def prepare(self) -> None:
        """The calm run: a cache that has all that is made once, every verdict, and how long things take."""
        self.environment.write_text(yaml.safe_dump(dict(ENVIRONMENTS[self.sandbox])))
        shared = Cache.default().root
        for part in ("uv", "tools", "subjects", "probes"):
            if (shared / part).is_dir() and self.sandbox != "docker":
                link_tree(shared / part, self.cache / part)
        runs = [self.folder / "calm" / kind for kind in KINDS]
        for run, kind in zip(runs, KINDS, strict=True):
            for checkpoint in CHECKPOINTS:
                write_snapshot(run / PROBLEM / checkpoint / "snapshot", kind, f"calm {run} {checkpoint}")
        self._timed(self.eval_words(PROBLEMS, *runs), {1})
        self.run_s = self._timed(self.eval_words(PROBLEMS, runs[0], more=["--overwrite"]), {0})
        for run, kind in zip(runs, KINDS, strict=True):
            for checkpoint in CHECKPOINTS:
                result = CorrectnessResults.load(run / PROBLEM / checkpoint / RESULT)
                self.expected[SubmissionKind(kind, checkpoint)] = comparable(result)
                self.tests[checkpoint] = result.provenance.digests.tests
        single = self.single_words(PROBLEMS, runs[0] / PROBLEM / "checkpoint_1/snapshot", "1", self.folder / "out")
        self.single_s = self._timed(single, {0})
        shutil.rmtree(self.cache / "results")

    def _timed(self, words: Sequence[str], statuses: set[int]) -> float:
        began = time.monotonic()
        variables = self.variables(self.cache)
        done = subprocess.run(words, env=variables, capture_output=True, text=True, preexec_fn=interruptible)
        if done.returncode not in statuses:
            raise RuntimeError(f"the calm run ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return time.monotonic() - began


def interruptible() -> None:
    """Where this itself runs in the background, interrupts would be ignored from the start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def link_tree(source: Path, target: Path) -> None:
    """By hard links where that can be: whoever changes a file of it makes it a file of its own first."""

    def unfinished(_folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(".tmp")]

    shutil.copytree(source, target, symlinks=True, ignore=unfinished, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
