"""Where an attack is tried: a problem with a fresh secret, the submission, and a host to be hurt."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.leftovers import TAG, segment
from slop_code.errors import InfrastructureError
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution import process
from slop_code.execution.cache import Cache
from slop_code.execution.submission import read_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.attacks.attack import Attack

HERE = Path(__file__).parent
KEY = "SLOP_CODE_ATTACKED_KEY"
"""A variable of the evaluator's that no submission may see."""

EARNED = frozenset({"test_upper", "test_given", "test_last"})
TESTS = 8
BUILD_S = 60.0
LATER = """\
def test_later(run):
    assert run("later").stdout == "{}\\n"
"""


def new_secret() -> str:
    return f"SECRET-{secrets.token_hex(16)}"


def lay_problem(folder: Path) -> ProblemConfig:
    """Once for many attacks: its tests are then staged once. Nothing in it may change."""
    _lay(HERE / "problem", folder)
    (folder / "tests/expected").mkdir()
    (folder / "tests/expected/out.txt").write_text(f"{new_secret()}\n")
    later = new_secret()
    (folder / "checkpoint_2.md").write_text(f"`later` prints {later}.\n")
    (folder / "tests/test_checkpoint_2.py").write_text(LATER.format(later))
    with (folder / "config.yaml").open("a") as config:
        config.write(f"env: {{{TAG}: {secrets.token_hex(8)}}}\n")
    return ProblemConfig.from_yaml(folder)


def _lay(source: Path, folder: Path) -> None:
    """Programs of others are kept under another name, so that nobody takes them for ours."""
    for path in source.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(source).with_name(path.name.removesuffix(".tmpl"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


class Service(contextlib.AbstractContextManager["Service"]):
    """Listens on loopback, on a socket in a folder and on one without a file, and knows whether anybody came."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "service.sock"
        self.abstract = f"slop-code-{secrets.token_hex(8)}"
        self.reached = threading.Event()
        self._sockets = [socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
        within = os.open(folder, os.O_PATH)  # a socket's path has few characters, a folder's many
        short = f"/proc/self/fd/{within}/{self.path.name}"
        addresses: tuple[tuple[str, int] | str, ...] = (("127.0.0.1", 0), short, f"\0{self.abstract}")
        for one, address in zip(self._sockets, addresses, strict=True):
            one.bind(address)
            one.listen()
            threading.Thread(target=self._listen, args=(one,), daemon=True).start()
        os.close(within)
        self.port = int(self._sockets[0].getsockname()[1])

    def _listen(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                one.accept()[0].close()
                self.reached.set()

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@dataclass(frozen=True, slots=True)
class World:
    folder: Path
    problem: ProblemConfig
    service: Service
    key: str
    """The host's secret: in a file outside, and in the evaluator's variables."""

    before: str
    """What is not the submission's own, as it was."""

    far: Path
    """A file with the host's secret that is neither below `folder` nor, as a rule, in `/tmp`."""

    @property
    def submission(self) -> Path:
        return self.folder / "submission"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def tag(self) -> str:
        return self.problem.env[TAG]

    def state(self) -> str:
        trees = (self.folder / "outside", self.problem.path, self.submission)
        far = self.far.read_text() if self.far.is_file() else "gone"
        return " ".join([*(read_tree(tree).digest for tree in trees), far])


@contextlib.contextmanager
def opened(folder: Path, problem: ProblemConfig, attack: Attack) -> Iterator[World]:
    """`folder` is empty, and the caller's to remove."""
    key = new_secret()
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "secret.txt").write_text(f"{key}\n")
    (outside / "keep.txt").write_text("as it was\n")
    before = os.environ.get(KEY)
    os.environ[KEY] = key
    far = Cache.default().root / f"host-{secrets.token_hex(8)}.txt"
    with Service(folder) as service:
        try:
            far.write_text(f"{key}\n")
            world = World(folder, problem, service, key, "", far)
            _lay_submission(world, attack)
            yield replace(world, before=world.state())
        finally:
            far.unlink(missing_ok=True)
            os.environ.pop(KEY) if before is None else os.environ.update({KEY: before})


def _lay_submission(world: World, attack: Attack) -> None:
    _lay(HERE / "program", world.submission)
    told = {
        "folder": str(world.folder),
        "outside": str(world.folder / "outside"),
        "far": str(world.far),
        "problem": str(world.problem.path),
        "out": str(world.out),
        "port": world.service.port,
        "socket": str(world.service.path),
        "abstract": world.service.abstract,
        "key": KEY,
        "tag": world.tag,
        "evaluator": os.getpid(),
        "pid_namespace": os.stat("/proc/self/ns/pid").st_ino,
        "home": str(Path.home()),
        "home_inode": Path.home().stat().st_ino,
        "cache": str(Cache.default().root),
        "segment": segment(world.tag),
    }
    (world.submission / "world.json").write_text(json.dumps(told))
    for name, text in attack.files.items():
        path = world.submission / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if attack.build:
        log = world.folder / "build.log"
        argv = [sys.executable, "-I", "-c", attack.build]
        done = process.run(argv, env=os.environ, log=log, timeout=BUILD_S, cwd=world.submission)
        if done.exit_code != 0:
            raise InfrastructureError(f"{attack.name}: the submission cannot be built here: {done.output.strip()}")
