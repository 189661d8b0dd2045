"""Host on which an attack is tried: a problem with fresh secrets, the submission, and files and services to protect."""

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

from slop_code.attacks.leftovers import TAG, ipc_key
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
"""Variable in the evaluator's environment that no submission may see."""

EARNED = frozenset({"test_upper", "test_given", "test_last"})
TEST_COUNT = 9
BUILD_TIMEOUT_S = 60.0
LATER_TESTS = """\
def test_later(run):
    assert run("later").stdout == "{}\\n"
"""


def new_secret() -> str:
    return f"SECRET-{secrets.token_hex(16)}"


def write_problem(folder: Path) -> ProblemConfig:
    """Written once for many attacks, so that its tests are staged once. Nothing in it may change."""
    _copy_templates(HERE / "problem", folder)
    (folder / "tests/expected").mkdir()
    (folder / "tests/expected/out.txt").write_text(f"{new_secret()}\n")
    later = new_secret()
    (folder / "checkpoint_2.md").write_text(f"`later` prints {later}.\n")
    (folder / "tests/test_checkpoint_2.py").write_text(LATER_TESTS.format(later))
    with (folder / "config.yaml").open("a") as config:
        config.write(f"env: {{{TAG}: {secrets.token_hex(8)}}}\n")
    return ProblemConfig.from_yaml(folder)


def _copy_templates(source: Path, folder: Path) -> None:
    """Hostile programs have the suffix `.tmpl`, so that no tool takes them for our own code."""
    for path in source.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(source).with_name(path.name.removesuffix(".tmpl"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


class Service(contextlib.AbstractContextManager["Service"]):
    """Listens on a loopback port, a unix socket in a folder and an abstract socket, and records any connection."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "service.sock"
        self.abstract = f"slop-code-{secrets.token_hex(8)}"
        self.reached = threading.Event()
        self._sockets = [socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
        directory = os.open(folder, os.O_PATH)  # the path of a unix socket has at most 108 bytes
        short = f"/proc/self/fd/{directory}/{self.path.name}"
        addresses: tuple[tuple[str, int] | str, ...] = (("127.0.0.1", 0), short, f"\0{self.abstract}")
        for listener, address in zip(self._sockets, addresses, strict=True):
            listener.bind(address)
            listener.listen()
            threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
        os.close(directory)
        self.port = int(self._sockets[0].getsockname()[1])

    def _listen(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()
                self.reached.set()

    def __exit__(self, *_: object) -> None:
        for listener in self._sockets:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@dataclass(frozen=True, slots=True)
class AttackHost:
    folder: Path
    problem: ProblemConfig
    service: Service
    key: str
    """Secret of the host: in a file outside the boxes, and in the evaluator's environment."""

    state_before: str
    """Digest of what does not belong to the submission, before the attack."""

    distant_file: Path
    """File with the host's secret that is not below `folder` and usually not in `/tmp`."""

    @property
    def submission(self) -> Path:
        return self.folder / "submission"

    @property
    def output(self) -> Path:
        return self.folder / "out"

    @property
    def tag(self) -> str:
        return self.problem.env[TAG]

    def state(self) -> str:
        trees = (self.folder / "outside", self.problem.path, self.submission)
        distant = self.distant_file.read_text() if self.distant_file.is_file() else "gone"
        return " ".join([*(read_tree(tree).digest for tree in trees), distant])


@contextlib.contextmanager
def open_host(folder: Path, problem: ProblemConfig, attack: Attack) -> Iterator[AttackHost]:
    """The caller gives an empty `folder` and removes it."""
    key = new_secret()
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "secret.txt").write_text(f"{key}\n")
    (outside / "keep.txt").write_text("as it was\n")
    previous = os.environ.get(KEY)
    os.environ[KEY] = key
    distant_file = Cache.default().root / f"host-{secrets.token_hex(8)}.txt"
    with Service(folder) as service:
        try:
            distant_file.write_text(f"{key}\n")
            host = AttackHost(folder, problem, service, key, "", distant_file)
            _write_submission(host, attack)
            yield replace(host, state_before=host.state())
        finally:
            distant_file.unlink(missing_ok=True)
            os.environ.pop(KEY) if previous is None else os.environ.update({KEY: previous})


def _write_submission(host: AttackHost, attack: Attack) -> None:
    _copy_templates(HERE / "program", host.submission)
    facts = {
        "folder": str(host.folder),
        "outside": str(host.folder / "outside"),
        "far": str(host.distant_file),
        "problem": str(host.problem.path),
        "out": str(host.output),
        "port": host.service.port,
        "socket": str(host.service.path),
        "abstract": host.service.abstract,
        "key": KEY,
        "tag": host.tag,
        "evaluator": os.getpid(),
        "pid_namespace": os.stat("/proc/self/ns/pid").st_ino,
        "home": str(Path.home()),
        "home_inode": Path.home().stat().st_ino,
        "cache": str(Cache.default().root),
        "segment": ipc_key(host.tag),
    }
    (host.submission / "host.json").write_text(json.dumps(facts))
    for name, text in attack.files.items():
        path = host.submission / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if attack.build:
        log = host.folder / "build.log"
        argv = [sys.executable, "-I", "-c", attack.build]
        done = process.run(argv, env=os.environ, log=log, timeout=BUILD_TIMEOUT_S, cwd=host.submission)
        if done.exit_code != 0:
            raise InfrastructureError(f"{attack.name}: the submission cannot be built here: {done.output.strip()}")
