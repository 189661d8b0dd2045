"""The virtual machines of `make vm`, without booting one."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def package(monkeypatch):
    """The scripts of `tests` import each other by their names."""
    monkeypatch.syspath_prepend(HERE)


@pytest.mark.parametrize(
    ("distribution", "used", "mirror"),
    [
        ("debian", ["http://mirror.test/debian/"], "http://mirror.test/debian"),
        ("ubuntu", ["http://mirror.test/debian-security", "http://mirror.test/debian"], "http://mirror.test/ubuntu"),
        ("debian", ["https://mirror.test/pub/ubuntu"], "https://mirror.test/pub/debian"),
    ],
)
def test_the_mirror_is_the_hosts_or_the_folder_beside_it(distribution, used, mirror):
    from machines.mirrors import choose_mirror

    assert choose_mirror(distribution, used) == mirror


def test_without_a_mirror_the_error_names_the_variable_that_sets_one():
    from machines.mirrors import MIRROR_VARIABLE, choose_mirror
    from private_daemon import UnavailableError

    with pytest.raises(UnavailableError, match=MIRROR_VARIABLE):
        choose_mirror("ubuntu", ["http://mirror.test/other"])


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["boot", "VM| ok doctor (1 s)", "VM| end 0"], 0),
        (["VM| FAILED doctor (1 s)", "VM| end 1"], 1),
        (["boot", "VM| ok doctor (1 s)"], 3),
        (["boot", "kernel panic"], 3),
        ([], 3),
    ],
)
def test_only_a_machine_that_says_that_nothing_failed_passes(lines, status, capsys):
    from machines.__main__ import follow

    log = io.StringIO()
    log.name = "log"
    assert follow(lines, log, 0.0) == status
    assert len(log.getvalue().splitlines()) == len(lines)


@pytest.mark.parametrize("statuses", [[], ["passed", "failed"], ["skipped"]])
def test_a_right_solution_has_to_pass_every_test(statuses):
    from machines.guest_accounts import CheckError
    from machines.guest_checks import all_passed

    tests = [{"id": "test_it", "status": status, "failure_message": "the reason"} for status in statuses]
    with pytest.raises(CheckError, match="the reason" if tests else "0 of 0"):
        all_passed({"tests": tests})
    assert all_passed({"tests": [{"status": "passed"}] * 2}) == "2 of 2 tests passed"


def test_paths_of_the_host_mean_nothing_in_the_guest():
    from machines.product_disk import guest_variables

    given = {"PIP_INDEX_URL": "https://index.test/simple", "PIP_CERT": "/etc/cert", "UV_INDEX": "file:///srv/index"}
    assert guest_variables(given).keys() == {"PIP_INDEX_URL", "SSL_CERT_FILE"}


def test_every_target_of_the_documentation_can_be_chosen():
    from machines.targets import TARGETS

    text = (HERE.parent / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"`((?:debian|ubuntu)[\d.]+-\w+)`", text)) == set(TARGETS)


@pytest.mark.parametrize(
    ("name", "has_systemd", "root"),
    [("debian13-x86_64", True, "/dev/nvme0n1"), ("ubuntu24.04-x86_64", False, "/dev/vda")],
)
def test_a_machine_without_systemd_starts_the_checks_as_process_1(name, has_systemd, root):
    from machines.guest_files import FILES, INIT
    from machines.system_disk import SystemDisk
    from machines.targets import TARGETS
    from machines.virtual_machine import Machine, arguments

    disk = SystemDisk(Path("system.img"), Path("kernel"))
    words = arguments(Machine(TARGETS[name], disk, Path("product.img"), has_systemd=has_systemd))
    parameters = words[words.index("-append") + 1].split()
    assert f"root={root}" in parameters
    assert (f"init=/{INIT}" in parameters) is not has_systemd
    assert INIT in FILES


@pytest.mark.e2e
def test_the_checks_need_no_package_in_the_guest():
    variables = {"PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import machines.guest"], env=variables, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unpacked_system_has_the_files_of_maintainer_scripts(tmp_path):
    from machines.unpacked_system import ADDED, COPIES, configure

    for source in COPIES:
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).write_text("packaged\n")
    (tmp_path / "etc/pam.d").mkdir(parents=True)
    (tmp_path / "usr/lib/modules").mkdir(parents=True)
    (tmp_path / "depmod").touch(mode=0o755)
    configure(tmp_path, {"PATH": str(tmp_path)})
    assert (tmp_path / "etc/passwd").read_text() == "packaged\n" + ADDED["etc/passwd"]
    assert (tmp_path / "etc/pam.d/common-auth").read_text() == "auth required pam_permit.so\n"
    assert not (tmp_path / "etc/sudoers.d/tester").stat().st_mode & 0o022
