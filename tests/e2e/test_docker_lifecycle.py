"""Images, volumes and containers on a daemon: reused, rebuilt when they are gone, removed after a kill."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
import yaml

from slop_code.execution.docker.owners import OBJECTS_FILE
from tests.command import SLOP_CODE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.e2e

IMAGE = os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")
PATIENCE_S = 600
KILLS = 5
COLD_KILLS = 1
MAIN = "import sys\nprint(*sys.argv[1:])\n"
SPARED_STEPS = ("pulling ", "fetching ", "warming ", "set-up: ", "collecting ")
SLOW_SET_UP = ["sleep 0.4", "echo made > made; sleep 0.4"]


def docker(*words):
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout


def running(root):
    return of_owner(root, docker("ps", "--format", '{{.Names}} {{.Label "slop-code.owner"}}'))


def owned(root):
    """Names of containers and volumes whose owner has its lock below this folder."""
    containers = docker("ps", "--all", "--format", '{{.Names}} {{.Label "slop-code.owner"}}')
    volumes = docker("volume", "ls", "--format", '{{.Name}} {{.Label "slop-code.owner"}}')
    return of_owner(root, containers) | of_owner(root, volumes)


def owned_images(root):
    listed = docker("images", "--quiet", "--no-trunc", "--filter", "label=slop-code.owner").split()
    form = '{{.Id}} {{index .Config.Labels "slop-code.owner"}}'
    inspected = subprocess.run(
        ["docker", "image", "inspect", "--format", form, *listed], capture_output=True, text=True
    )
    gone = "No such image" in inspected.stderr  # somebody else's, since they were listed
    assert inspected.returncode == 0 or gone or not listed, inspected.stderr
    return of_owner(root, inspected.stdout)


def of_owner(root, listed):
    return {line.split()[0].removeprefix("sha256:") for line in listed.splitlines() if f":{root}/" in line}


def kept(root):
    return {name for path in root.glob(f"*/[!.]*/{OBJECTS_FILE}") for name in json.loads(path.read_text()).values()}


def places(names):
    """Where these containers and volumes are mounted, as far as the daemon has them."""
    found = []
    for name in names:
        with contextlib.suppress(subprocess.CalledProcessError):
            (inspected,) = json.loads(docker("inspect", name))
            found += [inspected.get("Mountpoint"), inspected.get("GraphDriver", {}).get("Data", {}).get("MergedDir")]
    return {path for path in found if path}


def mounted():
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def processes(token):
    """All with this word in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if token.encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
    return found


def wait_for_the_end(ground, token):
    """Containers and the engine's commands end by themselves when their evaluator is gone."""
    left = [*processes(token), *running(ground.cache)]
    until = time.monotonic() + PATIENCE_S
    while left and time.monotonic() < until:
        select.select([], [], [], 0.05)
        left = [*processes(token), *running(ground.cache)]
    assert left == []


@dataclass
class Ground:
    """A cache of its own, a problem, and evaluators as processes that can be told from all others."""

    folder: Path
    problem: Path
    make_submission: Callable[[Mapping[str, str]], Path]

    def __post_init__(self):
        self.cache = self.folder / "cache"
        self.cache.mkdir()
        self.images = []

    def submission(self, **files):
        return self.make_submission({"main.py": MAIN, **files})

    def environment(self, **keys):
        settings = {"type": "docker", "name": "test", **keys, "docker": {"image": IMAGE, **keys.get("docker", {})}}
        path = self.folder / f"{uuid.uuid4().hex}.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    def start(self, submission, environment, *, cache=None, problem=None):
        """The process, and a word in its environment and that of the commands it starts."""
        token = f"token-{uuid.uuid4().hex}"
        given = ["-p", problem or self.problem, "-c", "1", "-e", environment, "-v"]
        variables = {**os.environ, "SCBENCH_CACHE_DIR": str(cache or self.cache), "SLOP_CODE_TEST_TOKEN": token}
        process = subprocess.Popen(
            [str(word) for word in [SLOP_CODE, "eval-snapshot", submission, *given]],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return process, token

    def evaluate(self, submission, environment):
        """To its end; lines about steps that a cache spares."""
        process, _ = self.start(submission, environment)
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0, printed
        lines = [line.removeprefix("· ") for line in printed.splitlines() if line.startswith("· ")]
        return [line for line in lines if line.startswith(SPARED_STEPS)]

    def prune(self, *words):
        variables = {**os.environ, "SCBENCH_CACHE_DIR": str(self.cache)}
        return subprocess.run(
            [SLOP_CODE, "cache", "prune", *words], env=variables, capture_output=True, text=True, check=True
        ).stdout


@pytest.fixture(scope="module")
def ground(tmp_path_factory, make_problem, make_submission, need_docker):
    need_docker()
    tests = "def test_it(run):\n    for _ in range(10):\n        assert run('hello').stdout == 'hello\\n'\n"
    problem = make_problem({"test_checkpoint_1.py": tests})
    found = Ground(tmp_path_factory.mktemp("ground"), problem.path, make_submission)
    yield found
    found.prune("--all")
    for image in found.images:
        docker("rmi", image)


@pytest.fixture
def neighbour(ground, cache, make_problem, tmp_path):
    """An evaluator with another cache that lives until it is told to end, and then has to have passed."""
    tests = """
        import time

        def test_it(run):
            while not run("/given/end").stdout == "ended\\n":
                time.sleep(0.1)
    """
    problem = make_problem({"test_checkpoint_1.py": dedent(tests)}, config={"timeout": 550})
    submission = ground.make_submission({"main.py": "import os, sys\nif os.path.exists(sys.argv[1]): print('ended')\n"})
    given = tmp_path / "given"
    given.mkdir()
    given.chmod(0o755)
    environment = ground.environment(docker={"extra_mounts": [f"{given}:/given"]})
    process, _ = ground.start(submission, environment, cache=cache.root, problem=problem.path)
    try:
        while "running" not in (line := process.stdout.readline()):
            assert line, "it ended too soon"
        yield process
        (given / "end").touch()
        printed, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, printed
        assert "1 of 1 tests passed" in printed
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_evaluators_leave_nothing_and_disturb_nobody(ground, neighbour, cache):
    """Some at their first steps in an empty cache, the others anywhere between their start and their end."""
    seed = int(os.environ.get("SLOP_CODE_TEST_SEED") or random.randrange(1 << 32))
    print(f"seed {seed}")
    chance = random.Random(seed)
    plain, slow = ground.environment(), ground.environment(setup={"commands": SLOW_SET_UP})
    lengths, left_overs, where = {plain: 9.0, slow: 9.0}, [], set()
    for number in range(KILLS):
        if number == COLD_KILLS:
            ground.evaluate(ground.submission(), plain)
            for environment in lengths:
                began = time.monotonic()
                ground.evaluate(ground.submission(number=uuid.uuid4().hex), environment)
                lengths[environment] = time.monotonic() - began
        environment = slow if number % 2 else plain
        rank, of_all = (number, COLD_KILLS) if number < COLD_KILLS else (number - COLD_KILLS, KILLS - COLD_KILLS)
        moment = (rank + chance.random()) / of_all * lengths[environment]
        print(f"kill {number} after {moment:.2f} of {lengths[environment]:.2f} s")
        left = kill_one(ground, environment, moment)
        left_overs += left
        where |= places(left)
        if number and number % 2 == 0:  # one takes away what both before it left
            ground.evaluate(ground.submission(), slow)
            assert owned(ground.cache) - kept(ground.cache) == set()
            assert where & mounted() == set()
        assert neighbour.poll() is None
    assert left_overs, "no kill found anything that could be left"


def kill_one(ground, environment, moment):
    """What it left on the daemon, once nothing of it runs any more."""
    process, token = ground.start(ground.submission(number=uuid.uuid4().hex), environment)
    descriptor = os.pidfd_open(process.pid)
    select.select([descriptor], [], [], moment)
    os.close(descriptor)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    names = owned(ground.cache)
    wait_for_the_end(ground, token)
    return (names | owned(ground.cache)) - kept(ground.cache)


@pytest.mark.long
def test_a_second_evaluation_uses_the_cache(ground):
    environment = ground.environment(setup={"commands": ["echo made > made"]})
    submission = ground.submission(what="the same")
    assert any(step.startswith("set-up: echo made") for step in ground.evaluate(submission, environment))
    before = owned(ground.cache) | owned_images(ground.cache)
    assert ground.evaluate(submission, environment) == []
    assert owned(ground.cache) | owned_images(ground.cache) == before


@pytest.mark.long
def test_the_same_dependencies_are_set_up_once(ground):
    environment = ground.environment()
    ground.evaluate(ground.submission(**{"requirements.txt": "# none\n"}), environment)
    steps = ground.evaluate(ground.submission(**{"requirements.txt": "# none\n", "other.py": "1\n"}), environment)
    assert steps == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "what", "step"),
    [
        ("support", "support", None),
        ("tools", "tools", "warming"),
        ("layers", "layer", "set-up"),
        ("layers", "image", "set-up"),
    ],
)
def test_removed_volumes_and_images_are_made_again(ground, kind, what, step):
    environment = ground.environment(setup={"commands": [f"echo {uuid.uuid4().hex} > made"]})
    submission = ground.submission()
    ground.evaluate(submission, environment)
    notes = sorted(ground.cache.glob(f"{kind}/[!.]*/names.json"), key=lambda path: path.stat().st_mtime)
    (name,) = {json.loads(path.read_text())[what] for path in notes[-1:]}
    docker(*(("rmi", name) if what == "image" else ("volume", "rm", name)))
    steps = ground.evaluate(submission, environment)
    assert step is None or [line for line in steps if line.startswith(step)]
    assert name not in kept(ground.cache)
    ground.prune()  # of a pair, one was there still
    assert owned(ground.cache) | owned_images(ground.cache) == kept(ground.cache)


@pytest.mark.long
def test_the_image_s_variables_path_and_user_are_used_and_its_entrypoint_is_not(ground, make_problem):
    """The entrypoint is not ours to run; all else is what a submission of that image expects."""
    tests = """
        def test_it(run):
            assert run().stdout.split() == ["hello", "of-the-image", "33", "33"]
    """
    code = """
        import os, subprocess
        tool = subprocess.run(["tool"], capture_output=True, text=True).stdout
        print(os.environ["GREETING"], tool, os.getuid(), os.getgid())
    """
    name = f"slop-code-{uuid.uuid4().hex}"
    changes = ["ENV GREETING=hello", "ENV PATH=/opt/our:/usr/bin:/bin", "USER www-data", 'ENTRYPOINT ["/bin/false"]']
    script = "mkdir /opt/our; printf '#!/bin/sh\\necho of-the-image\\n' > /opt/our/tool; chmod 755 /opt/our/tool"
    docker("run", "--name", name, IMAGE, "sh", "-c", script)
    docker("commit", *[word for change in changes for word in ("--change", change)], name, name)
    ground.images.append(name)
    docker("rm", name)
    problem = make_problem({"test_checkpoint_1.py": tests})
    environment = ground.environment(docker={"image": name})
    process, _ = ground.start(ground.make_submission({"main.py": code}), environment, problem=problem.path)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed


@pytest.fixture
def foreign():
    """A container and two volumes of somebody else's, one of them with our name and without our label."""
    name = f"foreign-{uuid.uuid4().hex}"
    volumes = [name, f"slop-code-{uuid.uuid4().hex[:12]}-support"]
    for volume in volumes:
        docker("volume", "create", volume)
    docker("create", "--name", name, "--label", "slop-code=no", IMAGE, "true")
    yield {name, *volumes}
    docker("rm", name)
    docker("volume", "rm", *volumes)


def everything():
    names = docker("ps", "--all", "--format", "{{.Names}}").split()
    images = docker("images", "--quiet", "--no-trunc").replace("sha256:", "").split()
    return {*names, *docker("volume", "ls", "--quiet").split(), *images}


@pytest.mark.long
def test_prune_removes_unowned_objects(ground, foreign, cache, evaluate, make_problem):
    """First what a killed one left, then all of this cache, and nothing of anybody else's."""
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): pass\n"})
    evaluate(problem, ground.submission(), sandbox="docker")
    of_others = (foreign | kept(cache.root)) & everything()
    assert len(of_others) > len(foreign)
    environment = ground.environment(setup={"commands": ["echo kept > kept"]})
    ground.evaluate(ground.submission(), environment)
    left = killed_during_set_up(ground)
    before = kept(ground.cache)
    assert before <= everything()

    ground.prune()
    assert left & everything() == set()
    assert owned(ground.cache) | owned_images(ground.cache) == before == kept(ground.cache)

    ground.prune("--all")
    assert owned(ground.cache) | owned_images(ground.cache) == set()
    assert kept(ground.cache) == set()
    assert of_others <= everything()
    assert docker("image", "inspect", IMAGE)


def killed_during_set_up(ground):
    """What it had on the daemon while it lived, and nobody keeps."""
    process, token = ground.start(ground.submission(), ground.environment(setup={"commands": ["sleep 60"]}))
    while "set-up: sleep 60" not in (line := process.stdout.readline()):
        assert line, "it ended too soon"
    left = owned(ground.cache) - kept(ground.cache)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for_the_end(ground, token)
    assert {name.rpartition("-")[2] for name in left} == {"commands", "layer"}
    return left
