"""Run commands in a fresh Debian system with a clone of this repository: `python tests/pristine.py COMMAND…`, as root.

Each argument is a shell command; they run one after the other, in the clone. The system has the packages that README.md
names, an empty home, /tmp and /var/tmp, its own mounts and process ids, and the host's network, kernel and devices. The
host's settings for package indexes, names and certificates are carried in. Afterwards it lists what the commands left
behind; anything outside the documented caches is a failure.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from private_daemon import FOLDERS, UnavailableError, call, hold, install, is_left_over, note
from with_docker import cache_folder, debian_suite, digest, make_tar

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from private_daemon import Environment

REPOSITORY = Path(__file__).parents[1]
PREFIX = "slop-code-pristine-"
OPTIONS = ("--variant=minbase", "--include=python3,python3-venv,make,git")
CLONE = "srv/slop-code"
HOME = "root"
LISTED = ("tmp", "var/tmp", HOME)
PROCESSES = "srv/processes"
PICTURES = "out/screenshots"
CACHES = re.compile(
    rf"{HOME}/\.cache/(slop-code|slop-code-tests|slop-code-release|uv|pip|zig)/|{HOME}/\.local/share/uv/"
    rf"|{HOME}/\.ssh$|tmp/pytest-of-root(/pytest-(\d+|current))?$"
)
"""Those of CONTRIBUTING.md, and empty folders: Debian's systemd, which comes with Docker and Chromium, makes .ssh, and
pytest keeps those in which it made the folders of its tests, with a link."""

SETTINGS = re.compile(
    r"(PIP|UV)_(?!.*_DIR$)|SSL_CERT_(FILE|DIR)$|(REQUESTS|CURL)_CA_BUNDLE$|(https?|no|all)_proxy$", re.I
)
FILES = {
    "/etc/apt/sources.list": "etc/apt/sources.list",
    "/etc/apt/sources.list.d": "etc/apt/sources.list.d",
    "/etc/apt/keyrings": "etc/apt/keyrings",
    "/etc/apt/preferences.d": "etc/apt/preferences.d",
    "/etc/apt/trusted.gpg": "etc/apt/trusted.gpg",
    "/etc/apt/trusted.gpg.d": "etc/apt/trusted.gpg.d",
    "/etc/hosts": "etc/hosts",
    "/etc/pip.conf": "etc/pip.conf",
    "/etc/resolv.conf": "etc/resolv.conf",
    "/etc/ssl/certs": "etc/ssl/certs",
    "/etc/uv": "etc/uv",
    "/usr/local/share/ca-certificates": "usr/local/share/ca-certificates",
    "/usr/share/ca-certificates": "usr/share/ca-certificates",
    "~/.config/pip/pip.conf": "etc/xdg/pip/pip.conf",
    "~/.config/uv/uv.toml": "etc/uv/uv.toml",
}
"""Settings of package indexes, names and certificates, and where they are in the new system."""

# The new root takes the place of the old one: in a mere chroot the kernel refuses user namespaces.
ENTER = f"""
set -e
root=$1
shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs tmpfs run
while [ "$1" != -- ]; do
  mkdir -p ".$1"
  mount --bind "$1" ".$1"
  mount -o remount,bind,ro ".$1"
  shift
done
shift
pivot_root . mnt
cd /{CLONE}
umount -l /mnt
status=0
for command in "$@"; do
  echo "· $command"
  sh -c "$command" || {{ status=$?; echo "· $command: exit status $status"; break; }}
done
for process in /proc/[0-9]*; do
  [ "$process" = /proc/1 ] || {{ tr '\\0' ' ' < "$process/cmdline"; echo; }}
done 2> /dev/null > /{PROCESSES} || true
exit $status
"""


def main(commands: Sequence[str]) -> int:
    if not commands:
        print("usage: pristine.py COMMAND...", file=sys.stderr)
        return 2
    try:
        if os.geteuid():
            raise UnavailableError("only root can set up a fresh system")
        with fresh_folder() as root:
            environment = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"}
            unpack(root, {**environment, "DEBIAN_FRONTEND": "noninteractive"})
            before = sizes_in(root)
            status = run_inside(root, commands)
            keep_pictures(root)
            left = unexpected(root, before)
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return status or int(left)


@contextlib.contextmanager
def fresh_folder() -> Iterator[Path]:
    """Gone afterwards, or at the next start if this process was killed: its mounts end with the processes in it."""
    for folder in FOLDERS.glob(f"{PREFIX}*"):
        if is_left_over(folder):
            shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=FOLDERS))
    with hold(folder):
        try:
            (folder / "system").mkdir()
            yield folder / "system"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def unpack(root: Path, environment: Environment) -> None:
    suite = debian_suite()
    tar = cache_folder(environment) / f"pristine-{suite}-{platform.machine()}-{digest(OPTIONS)}.tar"
    if not tar.exists():
        install("mmdebstrap", "mmdebstrap", environment)
        note("making a Debian system")
        make_tar(tar, [*OPTIONS, suite], environment)
    call(["tar", "--extract", f"--file={tar}", f"--directory={root}", "--numeric-owner", "--xattrs"], environment)
    for source, target in FILES.items():
        if (path := Path(source).expanduser()).exists():
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            call(["cp", "-aHT", "--remove-destination", str(path), str(root / target)], environment)
    acquire = call(["apt-config", "dump", "Acquire"], environment)
    (root / "etc/apt/apt.conf.d/99host").write_text(acquire + "\n")
    call(["git", "clone", "--quiet", "--no-hardlinks", str(REPOSITORY), str(root / CLONE)], environment)
    if call(["git", "-C", str(REPOSITORY), "status", "--porcelain"], environment):
        note("the clone has what is committed; this folder has more")


def index_folders(root: Path, settings: Iterable[str]) -> set[str]:
    """Folders of the host that the settings name as indexes, such as file:///srv/wheels."""
    files = (root / name for name in ("etc/pip.conf", "etc/xdg/pip/pip.conf", "etc/uv/uv.toml"))
    texts = [*settings, *(file.read_text() for file in files if file.exists())]
    paths = {Path(path) for text in texts for path in re.findall(r"(?<![:/\w])(?:file://)?(/[^\s\"',]+)", text)}
    folders = {path for path in paths if path.is_dir() and not path.is_relative_to("/etc")}
    # The pages of a simple index link to files beside it.
    return {str(path.parent if path.name == "simple" else path) for path in folders}


def run_inside(root: Path, commands: Sequence[str]) -> int:
    settings = {name: value for name, value in os.environ.items() if SETTINGS.match(name)}
    folders = sorted(index_folders(root, settings.values()))
    environment = {
        **settings,
        "CI": "true", "HOME": f"/{HOME}", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }  # fmt: skip
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "--"]
    return subprocess.run(
        [*unshare, "sh", "-c", ENTER, "sh", str(root), *folders, "--", *commands], env=environment, check=False
    ).returncode


def keep_pictures(root: Path) -> None:
    """Pictures of pages that browser tests made in the clone are put where a run in this folder would put them."""
    if (pictures := root / CLONE / PICTURES).is_dir():
        shutil.copytree(pictures, REPOSITORY / PICTURES, dirs_exist_ok=True)


def sizes_in(root: Path) -> dict[str, int]:
    """Bytes by path, of files and links and of folders with nothing in them."""
    sizes = {}
    for listed in LISTED:
        for folder, names, files in os.walk(root / listed):
            entries = [Path(folder, name) for name in files] or ([] if names else [Path(folder)])
            sizes |= {
                str(entry.relative_to(root)): entry.lstat().st_size for entry in entries if entry != root / listed
            }
    return sizes


def unexpected(root: Path, before: Container[str]) -> bool:
    """Whether something was left outside the caches; all that was left is listed."""
    left = {path: size for path, size in sizes_in(root).items() if path not in before}
    caches: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for path, size in left.items():
        if cache := CACHES.match(path):
            caches[cache[0]] += size
        else:
            others["/".join(path.split("/")[:4])] += size
    for path, size in caches.items():
        print(f"· in a cache: /{path} {size >> 20} MiB")
    for path, size in others.items():
        print(f"· LEFT BEHIND: /{path} {size} bytes")
    processes = (root / PROCESSES).read_text().split("\n") if (root / PROCESSES).exists() else []
    for process in filter(None, processes):
        print(f"· LEFT RUNNING: {process}")
    return bool(others) or any(processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
