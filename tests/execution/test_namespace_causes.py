"""One advice for each known cause."""

from __future__ import annotations

import pytest

from slop_code.execution.bubblewrap.namespace_causes import MachineFacts, apparmor_profile, cause_of, known_cause


@pytest.mark.parametrize(
    ("facts", "fact", "advice"),
    [
        ({"release": "4.4.0-19041-Microsoft"}, "WSL 1", "wsl --set-version"),
        ({"release": "5.10.0-30-amd64"}, "Linux 5.10.0-30-amd64 is older than 5.11", "type docker"),
        ({"max_user_namespaces": 0, "is_root": True}, "user.max_user_namespaces is 0", "sysctl -w user.max_user_nam"),
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
        {"max_user_namespaces": 100, "userns_clone": 1, "apparmor_restricts": 0},
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
    assert "profile slop-code-bwrap /opt/venv/bwrap flags=(unconfined) {" in profile
    assert "userns," in profile
