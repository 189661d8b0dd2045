"""One advice for each known cause."""

from __future__ import annotations

import pytest

from slop_code.execution.bubblewrap.namespace_causes import MachineFacts, apparmor_profile, cause_of, known_cause


@pytest.mark.parametrize(
    ("facts", "fact", "advice"),
    [
        ({"release": "4.4.0-19041-Microsoft"}, "WSL 1", "wsl --set-version"),
        ({"release": "5.10.0-30-amd64"}, "Linux 5.10.0-30-amd64 is older than 5.11", "type docker"),
        ({"max_namespaces": {"user": 0}, "is_root": True}, "user.max_user_namespaces is 0", "user.max_user_nam"),
        ({"max_namespaces": {"user": 9, "net": 0}}, "user.max_net_namespaces is 0", "-w user.max_net_namespaces=15000"),
        (
            {"max_namespaces": {"user": 5, "net": 9}, "is_exhausted": True, "in_container": True},
            "user.max_user_namespaces, is 5",
            "-w user.max_user_namespaces=15000",
        ),
        ({"max_namespaces": {"user": 90000}, "is_exhausted": True}, "is reached", "user.max_user_namespaces=180000"),
        ({"userns_clone": 0}, "kernel.unprivileged_userns_clone is 0", "kernel.unprivileged_userns_clone=1"),
        ({"in_container": True, "has_seccomp_filter": True}, "container, which filters system calls", "--privileged"),
        ({"in_container": True}, "this is a container, which allows no namespaces", "--privileged"),
        ({"in_container": True, "apparmor_restricts": 1}, "this is a container", "--privileged"),
        ({"apparmor_restricts": 1}, "kernel.apparmor_restrict_unprivileged_userns is 1", "doctor --apparmor-profile"),
    ],
)
def test_a_known_cause_has_its_advice(facts, fact, advice):
    cause = cause_of(MachineFacts(**facts))
    assert cause is not None
    assert fact in cause.fact
    assert advice in cause.advice


@pytest.mark.parametrize(
    ("facts", "ways"),
    [
        ({}, ["doctor --apparmor-profile", "type docker", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"]),
        (
            {"has_unused_profile": True},
            ["doctor --apparmor-profile", "apt install bubblewrap", "type docker", "sysctl -w kernel.apparmor"],
        ),
    ],
)
def test_the_narrowest_way_around_apparmor_comes_first(facts, ways):
    cause = cause_of(MachineFacts(apparmor_restricts=1, **facts))
    assert cause is not None
    offered = cause.advice.split("; ")
    assert len(offered) == len(ways)
    assert all(way in words for way, words in zip(ways, offered, strict=True))


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"release": "5.15.153.1-microsoft-standard-WSL2"},
        {"release": "5.11.0"},
        {"max_namespaces": {"user": 100}, "userns_clone": 1, "apparmor_restricts": 0},
        {"userns_clone": 0, "is_root": True},
        {"apparmor_restricts": 1, "is_root": True},
        {"has_seccomp_filter": True},
    ],
)
def test_nothing_is_guessed(facts):
    assert cause_of(MachineFacts(**facts)) is None


def test_a_program_that_does_not_start_has_no_cause_of_namespaces():
    assert known_cause("/opt/bwrap: error while loading shared libraries: libcap.so.2") is None


def test_the_profile_is_for_one_program():
    profile = apparmor_profile("/opt/venv/bwrap")
    assert profile.name.startswith("slop-code-bwrap-")
    assert f'profile {profile.name} "/opt/venv/bwrap" flags=(unconfined) {{' in profile.text
    assert "userns," in profile.text
    assert profile.file == f"/etc/apparmor.d/{profile.name}"


def test_programs_have_profiles_of_their_own():
    one, other = apparmor_profile("/opt/one/bwrap"), apparmor_profile("/opt/other/bwrap")
    assert one.name != other.name
    assert one.file != other.file


@pytest.mark.parametrize(
    ("path", "quoted"),
    [
        ("/opt/my venv/bwrap", "/opt/my venv/bwrap"),
        ('/opt/"a"/bwrap', r"/opt/\"a\"/bwrap"),
        ("/opt/*?[a]{b,c}^d/bwrap", r"/opt/\*\?\[a\]\{b,c\}\^d/bwrap"),
        (r"/opt/a\101/bwrap", r"/opt/a\\101/bwrap"),
        ("/opt/@{HOME}/bwrap", r"/opt/@\{HOME\}/bwrap"),
    ],
)
def test_a_path_in_a_profile_stands_for_itself(path, quoted):
    assert f' "{quoted}" flags' in apparmor_profile(path).text


def test_a_profile_has_the_path_without_links(tmp_path):
    (tmp_path / "bwrap").touch()
    (tmp_path / "link").symlink_to("bwrap")
    assert apparmor_profile(str(tmp_path / "link")) == apparmor_profile(str(tmp_path / "bwrap"))
