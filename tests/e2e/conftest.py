"""Whole runs of a problem that is judged in a moment, evaluated by `slop-code eval` in processes of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import subprocess
import termios
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
import yaml

from slop_code.evaluation import ProblemConfig, PytestRunner
from slop_code.execution.cache import Cache
from slop_code.execution.templates import TemplatePool
from tests.command import SLOP_CODE, slop_code
from tests.e2e.browser import browser, picture, shared_page, visit  # noqa: F401
from tests.e2e.test_hangs import left_alive, processes
from tests.process_checks import ends, groups_of, processes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from slop_code.execution import EnvironmentSpec

PROBLEMS = Path(__file__).parents[1] / "problems"
CHECKPOINTS = ("checkpoint_1", "checkpoint_2", "checkpoint_3")
PATIENCE_S = 600
GONE_S = 60
ONCE = ("uv", "tools", "subjects", "tests", "probes")

GOOD = """
import sys

{first}
a, operation, b = sys.argv[1:]
try:
    a, b = int(a), int(b)
except ValueError:
    sys.exit(2)
print({{"+": {plus}, "-": a - b, "x": a * b}}[operation])
# {name}
"""
KINDS = {"good": "a + b", "wrong": "a + b + 1", "crashes": "1 // 0"}
STAYS = """
import os, signal
if {word!r} not in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.execv(sys.executable, [sys.executable, *sys.argv, {word!r}])
sys.argv.remove({word!r})
signal.sigwait([signal.SIGUSR1])
"""


@dataclass(frozen=True)
class Sums:
    """Run folders of the problem sums."""

    folder: Path
    problems: Path = PROBLEMS
    problem: str = "sums"
    checkpoints: tuple[str, ...] = CHECKPOINTS

    def main(self, name: str, kind: str = "good", first: str = "") -> str:
        """main.py: `name` makes it another submission than all others, `first` is what it does before all else."""
        return GOOD.format(name=name, plus=KINDS[kind], first=dedent(first))

    def run(
        self,
        name: str,
        *,
        mains: Mapping[str, str] | None = None,
        environment: Mapping[str, object] | None = None,
        salt: str = "",
    ) -> Path:
        """`mains` has main.py by the checkpoint. Without it, three good submissions have their like in no other run.

        With the same `salt`, those of two runs are the same.
        """
        run = self.folder / name
        for checkpoint, main in (mains or {one: self.main(f"{salt or run} {one}") for one in CHECKPOINTS}).items():
            snapshot = run / self.problem / checkpoint / "snapshot"
            snapshot.mkdir(parents=True)
            (snapshot / "main.py").write_text(main)
        if environment is not None:
            own = {"type": "local", "name": "test", **environment}
            (run / "environment.yaml").write_text(yaml.safe_dump(own))
        return run


@pytest.fixture
def sums(tmp_path: Path) -> Sums:
    return Sums(tmp_path / "runs")


@dataclass(frozen=True)
class Staying:
    """Submissions that stay until they are let go, or the test's time is over.

    They need no network to be seen, so that several may run at once: a word among their arguments is theirs alone.
    """

    word: str

    @property
    def first(self) -> str:
        return STAYS.format(word=self.word)

    def arrived(self, count: int) -> list[int]:
        """Their processes, one for each, once that many run at the same time."""
        until = time.monotonic() + PATIENCE_S
        while len(found := processes(self.word)) != count:
            assert time.monotonic() < until, found
            time.sleep(0.02)
        return found

    def let_go(self, process: int) -> None:
        descriptor = os.pidfd_open(process)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGUSR1)
            assert select.select([descriptor], [], [], PATIENCE_S)[0]
        finally:
            os.close(descriptor)

    def alive(self) -> list[int]:
        return left_alive(self.word)


@pytest.fixture
def staying() -> Iterator[Staying]:
    """What is left of them does not outlive the test."""
    found = Staying(f"stays-{uuid.uuid4().hex}")
    yield found
    for process in processes(found.word):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="session")
def warmed(
    cache: Cache,
    need_bubblewrap: Callable[[], None],
    environment_spec: Callable[..., EnvironmentSpec],
    make_submission: Callable[..., Path],
) -> None:
    """What is done once for the problem is done."""
    need_bubblewrap()
    problem, submission = ProblemConfig.from_yaml(PROBLEMS / "sums"), make_submission({"main.py": ""})
    with TemplatePool() as pool:
        for checkpoint in map(problem.checkpoint, CHECKPOINTS):
            PytestRunner(problem, checkpoint, environment_spec(), submission, cache=cache, templates=pool).run()


@pytest.fixture
def fresh_cache(cache: Cache, warmed: None, tmp_path: Path) -> Callable[[str], Cache]:
    """One of its own, with all that is done once, and without results."""

    def unfinished(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(".") and Path(folder).parent == cache.root]

    def make(name: str) -> Cache:
        for part in ONCE:
            if (cache.root / part).is_dir():
                copy = tmp_path / name / part
                shutil.copytree(cache.root / part, copy, symlinks=True, ignore=unfinished, copy_function=link_or_copy)
        (tmp_path / name / "sessions").mkdir(parents=True)
        return Cache(tmp_path / name)

    return make


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


class Evaluator:
    """A `slop-code eval` that was started."""

    def __init__(self, process: subprocess.Popen[bytes], output: int, cache: Cache) -> None:
        self.process, self.cache, self._output = process, cache, output
        self.said = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, words: str, times: int = 1) -> None:
        """Wait until it has said so; it must not end before."""
        deadline = time.monotonic() + PATIENCE_S
        while self.said.count(words) < times:
            assert self._read(deadline), f"no {words!r} in:\n{self.said}"

    def end(self) -> int:
        """Its exit status, once all it has to say is read."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        if not select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError(self.said)
        try:
            block = os.read(self._output, 65536)
        except OSError:  # that is how the end of a terminal is told
            block = b""
        self.said += block.decode(errors="replace")
        return bool(block)

    def type(self, keys: bytes) -> None:
        os.write(self._output, keys)


@pytest.fixture
def start(sums: Sums) -> Iterator[Callable[..., Evaluator]]:
    """`start(cache, folder, "-j", 2)`; what still runs at the end of the test is killed."""
    started: list[Evaluator] = []
    with contextlib.ExitStack() as stack:

        def run(
            cache: Cache,
            *arguments: object,
            terminal: bool = False,
            before: tuple[str, ...] = (),
            program: tuple[str, ...] = (SLOP_CODE,),
        ) -> Evaluator:
            ours, theirs = os.openpty() if terminal else os.pipe()
            stack.callback(os.close, ours)
            words = [*before, *program, "eval", "--no-live-progress", "--problems-dir", str(sums.problems)]

            def prepare() -> None:
                # Where this suite itself runs in the background, interrupts would be ignored from the start.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                if terminal:
                    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

            process = subprocess.Popen(
                [*words, *map(str, arguments)],
                stdin=theirs if terminal else subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env={**os.environ, "SCBENCH_CACHE_DIR": str(cache.root), "COLUMNS": "200"},
                start_new_session=True,
                preexec_fn=prepare,
            )
            os.close(theirs)
            started.append(Evaluator(process, ours, cache))
            return started[-1]

        try:
            yield run
        finally:
            for evaluator in started:
                if evaluator.process.poll() is None:
                    evaluator.process.kill()
                    evaluator.process.wait()


@pytest.fixture
def evaluated(sums: Sums, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Run to its end in this process: the exit status, and what it said."""

    def call(cache: Cache, *arguments: object) -> tuple[int, str]:
        monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
        done = slop_code("eval", "--no-live-progress", "--problems-dir", sums.problems, *arguments)
        return done.returncode, done.stdout + done.stderr

    return call


@pytest.fixture
def left_over() -> Callable[..., list[str]]:
    """What evaluators with this cache left on the machine, those with these process ids."""

    def find(cache: Cache, *pids: int) -> list[str]:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return [
            *map(str, (cache.root / "sessions").iterdir()),
            *(line for line in mounts if str(cache.root) in line),
            *(group for pid in pids for group in groups_of(pid)),
            *(f"process {pid}" for pid in processes_in(cache.root) if not ends(pid, GONE_S)),
        ]

    return find
