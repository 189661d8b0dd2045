"""The container daemon, taken away and brought back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.baseline import PATIENCE_S, Baseline
from tests.faults.ending import NO_VERDICT, ending, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.campaign_folder import CampaignFolder
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault

SCHEME = "unix://"
LOOK_S = 0.1


def address() -> Path | None:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return Path(host.removeprefix(SCHEME)) if host.startswith(SCHEME) else None


def private_folder() -> Path | None:
    """The folder of a daemon that was started for this command alone; no other daemon may be killed."""
    found = address()
    return found.parent if found and found.parent.name.startswith("slop-code-docker-") else None


def connect(baseline: Baseline) -> None:
    """The evaluators reach the daemon through a link that can be taken away."""
    link, real = baseline.folder / "sock", address()
    assert real is not None
    if not link.is_symlink():
        link.symlink_to(real)
    baseline.further["DOCKER_HOST"] = f"{SCHEME}{link}"


def hide_daemon(campaign: CampaignFolder, fault: Fault) -> Ending:
    link = campaign.baseline.folder / "sock"
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    link.unlink()
    try:
        return ending(campaign, fault, evaluator, NO_VERDICT)
    finally:
        connect(campaign.baseline)


def kill_daemon(campaign: CampaignFolder, fault: Fault) -> Ending:
    folder = private_folder()
    assert folder is not None
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    try:
        return ending(campaign, fault, evaluator, NO_VERDICT)
    finally:
        restart_daemon(folder)


def restart_daemon(folder: Path) -> None:
    """As an operator would: its leftovers are ended first, and it is started more than once if need be."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import private_daemon

    give_up = time.monotonic() + PATIENCE_S
    started: subprocess.Popen[bytes] | None = None
    while private_daemon.why_silent(dict(os.environ)):
        if time.monotonic() > give_up:
            raise TimeoutError((folder / "log").read_text()[-2000:])
        if started is None or started.poll() is not None:
            for pid, name in private_daemon.processes_of(folder):
                if name == "containerd":
                    os.kill(pid, signal.SIGKILL)
            (folder / "pid").unlink(missing_ok=True)
            with (folder / "log").open("a") as log:
                started = subprocess.Popen(
                    ["dockerd", f"--config-file={folder}/daemon.json"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(LOOK_S)


def left_in_daemon(campaign: CampaignFolder) -> Iterator[str]:
    form = '{{.Names}} {{.Label "slop-code.owner"}}'
    listed = subprocess.run(["docker", "ps", "--all", "--format", form], capture_output=True, text=True, check=True)
    yield from (f"a container: {line}" for line in listed.stdout.splitlines() if f":{campaign.cache.root}/" in line)
