"""Run folders and results as an evaluation would leave them, made without any."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slop_code.evaluation.result_files.replace_result import NEW
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.execution.cache import Cache
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.discover import UNNAMED_RUN, discover
from slop_code.runs.jobs.plan import make_plan
from slop_code.runs.result_archive import pack_result
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.result_cache_key import ExpectedDigests
from slop_code.runs.result_index import ResultIndex
from slop_code.runs.run_layout import RESULT_FILE
from tests.factories import result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import Submission
    from slop_code.runs.jobs.plan import Plan


@dataclass(frozen=True)
class World:
    """A folder of problems, run folders beside it, and a result cache."""

    folder: Path

    @property
    def problems(self) -> Path:
        return self.folder / "problems"

    @property
    def result_cache(self) -> ResultCache:
        return ResultCache(Cache(self.folder / "cache"))

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def problem(self, name: str = "words", count: int = 3, **keys: Any) -> Path:
        config = {
            "name": name, "version": 1, "description": "", "tags": [], "entry_file": "main.py",
            "checkpoints": {f"checkpoint_{number}": {} for number in range(1, count + 1)}, **keys,
        }  # fmt: skip
        tests = {f"problems/{name}/tests/test_{one}.py": f"# {one}\n" for one in config["checkpoints"] if len(one) < 99}
        self.write({f"problems/{name}/config.yaml": json.dumps(config, ensure_ascii=False), **tests})
        return self.problems / name

    def run(self, name: str = "monday", snapshots: Mapping[str, Sequence[str]] | None = None) -> Path:
        """`{"words": ["a", "b"]}`: what main.py holds at each checkpoint."""
        snapshots = {"words": ["a", "b", "c"]} if snapshots is None else snapshots
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        for problem, contents in snapshots.items():
            for number, content in enumerate(contents, start=1):
                self.write({f"{name}/{problem}/checkpoint_{number}/snapshot/main.py": content})
        return self.folder / name

    def discover(self, *names: str, **options: Any) -> list[DiscoveredRun]:
        folders = [self.folder / name for name in names or ["monday"]]
        return discover(folders, problems_dir=self.problems, **options)

    def plan(self, runs: Sequence[DiscoveredRun], **options: Any) -> Plan:
        indexes = {run.name: ResultIndex.load(run.folder) for run in runs}
        return make_plan(runs, self.result_cache, {UNNAMED_RUN: ResultIndex.load(None), **indexes}, **options)

    def results(
        self,
        submission: Submission,
        tests: str | Mapping[str, str] = "+",
        *,
        args: Sequence[str] = (),
        version: str | None = None,
        python: str | None = None,
        expected: ExpectedDigests | None = None,
        **fields: Any,
    ) -> CorrectnessResults:
        """Those of an evaluation now. `tests`: a mark for each test, or its status by its id.

        `python`: the version of the submission's Python on another machine. `expected`: digests of inputs read before.
        """
        expected = expected or ExpectedDigests(remote=python is not None)
        digests = expected.digests(submission).model_dump()
        digests |= {"python": python} if python else {}
        made = {
            "evaluation_version": version or evaluation_version(),
            "pytest_args": list(args),
            "checkpoints": list(submission.problem.checkpoints),
        }
        names = {"problem_name": submission.problem.name, "checkpoint_name": submission.checkpoint.name}
        return result(tests, digests=digests, provenance=made, **{**names, **fields})

    def finish(self, submission: Submission, tests: str = "+", **keys: Any) -> Path:
        """As if it had been evaluated in its place."""
        assert submission.output is not None
        path = submission.output / RESULT_FILE
        self.results(submission, tests, **keys).save(path)
        return path

    def finish_all(self, submissions: Sequence[Submission], tests: str = "+", **keys: Any) -> None:
        """As `finish` for each; inputs that they share are read once."""
        expected = ExpectedDigests(remote=keys.get("python") is not None)
        for submission in submissions:
            self.finish(submission, tests, expected=expected, **keys)

    def archive(self, results: CorrectnessResults) -> bytes:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            results.save(Path(folder) / RESULT_FILE)
            return pack_result(Path(folder))


def interrupt_replacement(output: Path) -> None:
    """As if its result were a new one, and its writer had been killed after it had removed the old one."""
    (output / NEW).mkdir()
    for name in (RESULT_FILE, REPORTS_DIR):
        if (output / name).exists():
            (output / name).rename(output / NEW / name)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
