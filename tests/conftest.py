"""Miniature problems and submissions, evaluated for real."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import yaml
from xdist.scheduler import LoadScopeScheduling

from slop_code.errors import ConfigError
from slop_code.evaluation import CorrectnessResults, ProblemConfig, PytestRunner
from slop_code.evaluation.context import tools_for
from slop_code.execution import EnvironmentSpec
from slop_code.execution.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from slop_code.execution.cache import Cache
from slop_code.execution.docker.docker_sandbox import DockerSandbox
from slop_code.execution.python_version import host_python
from slop_code.execution.sandbox import sandbox_for, sandbox_name
from slop_code.execution.templates import TemplatePool

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from slop_code.execution.progress_events import ProgressCallback

HERE = Path(__file__).parent
UNIT = "not e2e"
E2E_FOLDERS = frozenset(HERE / name for name in ("attacks", "benchmarks", "e2e", "faults", "fuzz", "stability"))
"""Folders of which all is `e2e`: where that is not wanted, they are not even read."""
USUAL_SIGNALS = {
    signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL,
}  # fmt: skip
"""Ignored under nohup or in the background of a script; what tests start would inherit that."""
STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"}
started: list[str] = []
earlier_threads: set[threading.Thread] = set()
"""Those that were there before a test, such as of a test before it: what they do is not judged."""

IMAGE = os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")
SANDBOXES: dict[str, Mapping[str, Any]] = {
    "none": {"type": "local", "isolation": "none"},
    "bubblewrap": {"type": "local"},
    "docker": {"type": "docker", "docker": {"image": IMAGE}},
    "runsc": {"type": "docker", "docker": {"image": IMAGE, "runtime": "runsc"}},
}
OTHER_ENGINE = ["other_engine"] if "SLOP_CODE_TEST_ENGINE" in os.environ else []
"""A sandbox of commands that `tests/with_engine.py` runs."""

for sandbox in OTHER_ENGINE:
    settings = {"image": IMAGE, "binary": os.environ["SLOP_CODE_TEST_ENGINE"], "network": "host"}
    SANDBOXES[sandbox] = {"type": "docker", "docker": settings}

IN_SANDBOX = re.compile(rf"[\[-]({'|'.join(SANDBOXES)})[]-]")

DEFAULT_SECONDS = 2
SECONDS_PER_TEST = {
    "test_checked_examples.py": 60, "test_docker_lifecycle.py": 60, "test_faults.py": 60, "test_harbor.py": 30,
    "test_harbor_forgeries.py": 40, "test_odd_trees.py": 30, "test_other_engines.py": 60,
    "test_snippets.py": 25, "test_examples.py": 20, "test_ray.py": 20, "test_docker_hostile.py": 18, "test_runs.py": 15,
    "test_parallel.py": 14, "test_soak.py": 14, "test_docker.py": 10, "test_wheel.py": 10, "test_hangs.py": 8,
    "test_evaluator_runs.py": 4, "test_inspect.py": 15, "test_verifiers.py": 12,
}  # fmt: skip
"""Seconds of a test that evaluates, roughly, in files where it is not the usual. Only the order follows from them."""

PROBLEM_CONFTEST = '''
import shlex
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture(scope="session")
def entrypoint(request):
    """The submission's command, as a list of words."""
    return shlex.split(request.config.getoption("--entrypoint"))


@pytest.fixture(scope="session")
def checkpoint(request):
    return request.config.getoption("--checkpoint")


@pytest.fixture(scope="session")
def run(entrypoint):
    """Run the submission to its end and return what it printed, as text."""

    def call(*arguments, **options):
        options = {"capture_output": True, "text": True, "timeout": 25, **options}
        return subprocess.run([*entrypoint, *map(str, arguments)], **options)

    return call
'''


def pytest_configure(config: pytest.Config) -> None:
    """Side by side, each has a cache of its own, so that a test may count what is left in it."""
    for number, usual in USUAL_SIGNALS.items():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)
    if config.option.markexpr == UNIT:
        # No power cut is tried here. On a busy disk 1,292 calls took 19 of the 113 s of tests/runs.
        os.fsync = lambda _: None
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        shared = os.environ.get("SCBENCH_CACHE_DIR") or caches / "slop-code-tests" / "cache"
        os.environ["SCBENCH_CACHE_DIR"] = f"{shared}-{worker}"


def scope_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return " ".join([file, *IN_SANDBOX.findall(nodeid)[:1]])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.option.markexpr == UNIT and collection_path in E2E_FOLDERS else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that evaluate ask for `cache` and are marked by it; no other fixture may have this name."""
    for item in items:
        large = not E2E_FOLDERS.isdisjoint(item.path.parents) or item.get_closest_marker("long")
        if large or "cache" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.e2e)
        if {"need_python", "other_python"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.other_python)
    if hasattr(config, "workerinput"):  # side by side, what takes long comes first, and the quick files fill up
        seconds: Counter[str] = Counter()
        for item in items:
            if item.get_closest_marker("e2e"):
                seconds[scope_of(item.nodeid)] += SECONDS_PER_TEST.get(item.path.name, DEFAULT_SECONDS)
        items.sort(key=lambda item: -seconds[scope_of(item.nodeid)])


def _note(event: str, _arguments: object) -> None:
    if event in STARTS and threading.current_thread() not in earlier_threads:
        started.append(event)


sys.addaudithook(_note)


def _unit_tests_start_nothing(item: pytest.Item) -> Generator[None, object, object]:
    earlier_threads.clear()
    earlier_threads.update(set(threading.enumerate()) - {threading.current_thread()})
    started.clear()
    result = yield
    if started and not item.get_closest_marker("e2e"):
        pytest.fail(f"a unit test must not do this: {', '.join(started)}; mark it @pytest.mark.e2e", pytrace=False)
    return result


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_unit_tests_start_nothing)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_unit_tests_start_nothing)


class BySandbox(LoadScopeScheduling):
    """The tests of a file share its fixtures and run one after the other; those in different sandboxes share none."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    config.option.loadscopereorder = False
    return BySandbox(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half of the time is waiting, so one more than there are processors; too many make one Docker daemon slow."""
    return min(8, len(os.sched_getaffinity(0)) + (config.option.markexpr != UNIT))


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, numbers: Iterator[int]) -> Path:
    """As pytest's own, with a short name: sockets lie below it, whose paths have at most 107 bytes."""
    folder = tmp_path_factory.getbasetemp() / f"test-{next(numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@contextlib.contextmanager
def restored_signal_handlers() -> Iterator[None]:
    """The command sets handlers of its own, also where it is called in this process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def own_signal_handlers() -> Iterator[None]:
    with restored_signal_handlers():
        yield


@pytest.fixture(scope="session")
def cache() -> Cache:
    """One for all tests of a process, with the test tools in it; cold only the first time on a machine."""
    shared = Cache.default()
    spec = EnvironmentSpec.model_validate({"type": "local", "name": "test", "isolation": "none"})
    tools_for(sandbox_for(spec, shared))
    return shared


@pytest.fixture(scope="session")
def environment_spec() -> Callable[..., EnvironmentSpec]:
    """`environment_spec({"limits": {...}}, sandbox="none")`: keys over those of a plain environment."""

    def make(keys: Mapping[str, Any] | None = None, *, sandbox: str = "bubblewrap") -> EnvironmentSpec:
        return EnvironmentSpec.model_validate({"name": "test", **SANDBOXES[sandbox], **(keys or {})})

    return make


@pytest.fixture(scope="session")
def need_bubblewrap(environment_spec: Callable[..., EnvironmentSpec]) -> Callable[[], None]:
    """Skips where a machine cannot do it; where every check counts that is a failure."""

    def check() -> None:
        if missing := BubblewrapSandbox(environment_spec(), Cache.default()).unavailable_reason():
            without(missing)

    return check


@pytest.fixture(scope="session")
def need_unshare() -> Callable[..., list[str]]:
    """`need_unshare("--mount")`: words before a command that is to run so. Skips by the rule of `need_bubblewrap`."""

    def check(*options: str) -> list[str]:
        words = ["unshare", *options]
        if shutil.which(words[0]) is None:
            without("no program unshare here")
        tried = subprocess.run([*words, "true"], stderr=subprocess.PIPE, text=True)
        if tried.returncode:
            without(f"{' '.join(words)}: {tried.stderr.strip()}")
        return words

    return check


@pytest.fixture(scope="session")
def unshared(need_unshare: Callable[..., list[str]]) -> list[str]:
    """Words before a command that may mount things: nobody else sees them, and they end with it."""
    return need_unshare("--mount", *(["--map-root-user"] if os.geteuid() else []))


@pytest.fixture(scope="session")
def need_docker() -> Callable[[], None]:
    """Skips with the reason where there is no Docker; where every check counts that is a failure."""

    def check() -> None:
        missing = os.environ.get("SLOP_CODE_TEST_NO_DOCKER")
        if missing is None and "SLOP_CODE_TEST_IMAGE" not in os.environ:
            missing = "no Docker: run pytest through tests/with_docker.py, as `make test` does"
        if missing:
            without(missing)

    return check


@pytest.fixture(scope="session")
def need_runsc(need_docker: Callable[[], None], environment_spec: Callable[..., EnvironmentSpec]) -> Callable[[], None]:
    """The same for gVisor as a runtime of Docker."""

    def check() -> None:
        need_docker()
        if missing := DockerSandbox(environment_spec(sandbox="runsc"), Cache.default()).unavailable_reason():
            without(missing)

    return check


@pytest.fixture(scope="session")
def need(
    need_bubblewrap: Callable[[], None], need_docker: Callable[[], None], need_runsc: Callable[[], None]
) -> Callable[[str], None]:
    """`need("docker")` skips where there is no such sandbox, by the rules above. Others are never missing."""
    checks = {"bubblewrap": need_bubblewrap, "docker": need_docker, "runsc": need_runsc}
    return lambda sandbox: checks.get(sandbox, lambda: None)()


@pytest.fixture(scope="session")
def need_python() -> Callable[[str], None]:
    """`need_python(">=3.12")`: skips where no Python of this machine fits, with the list of those that it has.

    That is no failure even where every check counts, since a system has few versions, and uv must be allowed to
    download others (`UV_PYTHON_DOWNLOADS=automatic`). It is one where CI says that there are others.
    """

    def check(request: str) -> None:
        try:
            host_python(request)
        except ConfigError as missing:
            without(str(missing), "CI_OTHER_PYTHONS")

    return check


def without(reason: str, variable: str = "CI") -> NoReturn:
    """Fails where the variable says that this machine has everything, else skips."""
    (pytest.fail if os.environ.get(variable) == "true" else pytest.skip)(reason)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else dedent(content).lstrip("\n").encode())
    return folder


@pytest.fixture(scope="session")
def make_problem(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ProblemConfig]:
    """`make_problem({"test_checkpoint_1.py": "..."}, config={...}, files={"tests/data/a.txt": "..."})`.

    A checkpoint for each test file, in their order, and a conftest with `entrypoint`, `checkpoint` and `run`,
    unless `config` or `tests` bring their own. `files` are paths in the problem's folder.
    """
    numbers = itertools.count(1)

    def make(
        tests: Mapping[str, str],
        *,
        config: Mapping[str, Any] | None = None,
        files: Mapping[str, str | bytes] | None = None,
    ) -> ProblemConfig:
        folder = tmp_path_factory.mktemp("problem")
        names = [Path(name).stem.removeprefix("test_") for name in tests if Path(name).name.startswith("test_")]
        settings = {
            "name": f"miniature_{next(numbers)}",
            "version": 1,
            "description": "A miniature.",
            "tags": [],
            "entry_file": "main.py",
            "checkpoints": {name: {"order": order} for order, name in enumerate(names, start=1)},
            **(config or {}),
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        write_files(folder / "tests", {"conftest.py": PROBLEM_CONFTEST, **tests})
        write_files(folder, files or {})
        return ProblemConfig.from_yaml(folder)

    return make


@pytest.fixture(scope="session")
def make_submission(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mapping[str, str | bytes]], Path]:
    return lambda files: write_files(tmp_path_factory.mktemp("submission"), files)


@pytest.fixture(scope="module")
def templates() -> Iterator[TemplatePool]:
    """Judge templates for the evaluations of a module, as an evaluator has them; others look for what is left over."""
    with TemplatePool() as pool:
        yield pool


@pytest.fixture(scope="module")
def evaluate(
    cache: Cache,
    templates: TemplatePool,
    environment_spec: Callable[..., EnvironmentSpec],
    need: Callable[[str], None],
) -> Callable[..., CorrectnessResults]:
    """`evaluate(problem, submission, 1)`: a real evaluation. Skips where it cannot have its sandbox."""

    def run(
        problem: ProblemConfig,
        submission: Path,
        checkpoint: int | str = 1,
        *,
        sandbox: str = "bubblewrap",
        environment: Mapping[str, Any] | None = None,
        pytest_args: Sequence[str] = (),
        output_dir: Path | None = None,
        progress: ProgressCallback = lambda _: None,
    ) -> CorrectnessResults:
        spec = environment_spec(environment, sandbox=sandbox)
        need(sandbox if sandbox in ("runsc", *OTHER_ENGINE) else sandbox_name(spec))
        runner = PytestRunner(
            problem,
            problem.checkpoint(checkpoint),
            spec,
            submission,
            output_dir=output_dir,
            cache=cache,
            progress=progress,
            templates=templates,
            repeat_starved=False,  # on a machine that is busy with these tests, short time limits would give no verdict
        )
        return runner.run(list(pytest_args))

    return run
