"""Arguments of containers: privileges, limits and mounts of judge and subject."""

from __future__ import annotations

import itertools

import pytest

from slop_code.errors import ConfigError
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.extra_mounts import Mount
from slop_code.execution.environment import Limits
from slop_code.execution.sandbox import JudgeJob, JudgeRequest, PreparedSubject

USER = c.User(1234, 2345)
NAMES = c.ContainerNames("token")


def value_of(words, option):
    return words[words.index(option) + 1]


def values_of(words, option):
    return [value for word, value in itertools.pairwise(words) if word == option]


@pytest.fixture
def subject():
    mounts = [Mount("support", c.SUPPORT), Mount("/data", "/data", readonly=False)]
    container = c.ContainerSpec(owner="me", image="image", user=USER, workspace="/w", mounts=mounts)
    return c.subject_arguments(NAMES, container, Limits(memory=2 << 20, disk=10, processes=50, cpus=1.5), "/usr/bin")


LIMITS = Limits(memory=2 << 20, disk=10, processes=50)


def relayed(**settings):
    settings = {"owner": "me", "image": "image", "user": USER, "workspace": "/w", "mounts": [], **settings}
    return c.ContainerSpec(runtime="other", is_relayed=True, **settings)


@pytest.fixture
def judge_job(tmp_path):
    request = JudgeRequest(
        argv=["pytest", "--x"],
        environment={"A": "b c"},
        tests=tmp_path,
        shown=tmp_path,
        reports=tmp_path,
        tools=tmp_path,
        files={},
        timeout=1,
    )
    return JudgeJob(request, tmp_path, PreparedSubject(), tmp_path)


@pytest.fixture
def judge(judge_job):
    mounts = [Mount("support", c.SUPPORT), Mount("/data", "/data", readonly=False), Mount("/more", "/more")]
    container = c.ContainerSpec(owner="me", image="image", user=USER, workspace="/w", mounts=mounts)
    return c.judge_arguments(NAMES, container, judge_job, None)


def options_of(words):
    """The words before the image are the engine's options."""
    return words[: words.index("image")]


def test_the_subject_s_container_has_no_privileges(subject):
    options = options_of(subject)
    assert values_of(options, "--cap-drop") == ["ALL"]
    assert "--cap-add" not in options
    assert "--privileged" not in options
    assert "--read-only" in options
    assert values_of(options, "--security-opt") == ["no-new-privileges"]
    assert value_of(options, "--user") == "1234:2345"
    assert value_of(options, "--network") == "container:slop-code-token-judge"
    assert values_of(options, "--label") == ["slop-code.owner=me"]


def test_the_subject_s_container_has_limits(subject):
    options = options_of(subject)
    assert value_of(options, "--memory") == value_of(options, "--memory-swap") == str((2 << 20) + 30)
    assert 50 < int(value_of(options, "--pids-limit")) < 100
    assert value_of(options, "--cpus") == "1.5"
    assert int(value_of(options, "--shm-size")) <= 10


def test_no_container_runs_the_health_check_of_its_image(subject, judge):
    """It would run in the submission's folder, in the judge's container as root."""
    container = c.ContainerSpec(owner="me", image="image", mounts=[])
    setup = c.command_container_arguments("name", container, [], covered=True)
    assert all("--no-healthcheck" in options_of(words) for words in (subject, judge, setup))


def test_an_engine_is_asked_only_for_limits_that_it_can_enforce():
    """podman fails where a control group is not delegated to its user."""
    container = c.ContainerSpec(owner="me", image="image", mounts=[], enforced=frozenset({"memory", "processes"}))
    subject, setup = (
        c.subject_arguments(NAMES, container, LIMITS, "/usr/bin"),
        c.command_container_arguments("name", container, [], covered=True),
    )
    options = ("--memory", "--memory-swap", "--pids-limit", "--cpus", "--shm-size")
    assert [option in options_of(subject) for option in options] == [True, True, True, False, True]
    assert [option in options_of(setup) for option in options] == [True, False, True, False, False]


def test_of_the_shared_volumes_the_subject_writes_to_workspace_and_tmp_only(subject, judge):
    mine = dict(reversed(volume.split(":", 1)) for volume in values_of(options_of(subject), "--volume"))
    writable = {target.split(":")[0] for target in mine if not target.partition(":")[2].startswith("ro")}
    assert writable == {"/w", "/tmp"}
    for volume in values_of(options_of(subject), "--volume") + values_of(options_of(judge), "--volume"):
        assert "nocopy" in volume.split(":")[2].split(",")  # the image's content is not copied


def test_the_subject_is_shown_neither_tools_nor_the_judge_s_folder(subject):
    words = " ".join(subject)
    assert c.TOOLS not in words
    assert c.JUDGE not in words
    assert c.CALL not in words


def test_the_judge_s_own_process_has_no_privilege_and_follows_no_link(judge):
    restrict = judge[judge.index("restrict") :]
    assert values_of(restrict, "--user") == ["1234"]
    assert restrict[restrict.index("--user") + 2] == "2345"
    assert "--clearenv" in restrict
    paths = restrict[restrict.index("/slop/tmp") + 1 : restrict.index("--")]
    assert paths == ["/w", "/tmp", "/data"]  # all that the subject can write to, and nothing that it cannot
    assert restrict[restrict.index("--") :] == ["--", "pytest", "--x"]


def test_the_judge_s_container_has_only_the_capabilities_of_its_process_1(judge):
    options = options_of(judge)
    assert values_of(options, "--cap-drop") == ["ALL"]
    assert set(values_of(options, "--cap-add")) == set(c.JUDGE_INIT_CAPABILITIES)
    assert "--read-only" in options
    assert "no-new-privileges" in values_of(options, "--security-opt")
    assert value_of(options, "--network") == "none"
    assert values_of(options, "--label") == ["slop-code.owner=me"]


def test_only_code_of_the_submission_runs_with_another_runtime(judge_job):
    """The judge mounts, which a kernel of its own need not be able to."""
    judge = c.judge_arguments(NAMES, relayed(), judge_job, None)
    subject = c.subject_arguments(NAMES, relayed(), LIMITS, "/usr/bin")
    setup = c.command_container_arguments("name", relayed(), [], covered=True)
    assert ["--runtime" in options_of(words) for words in (judge, subject, setup)] == [False, True, True]
    assert value_of(judge, "--relay") == value_of(subject, "--relay") == c.RELAY_PORT


def test_calls_are_not_relayed_through_the_network_of_the_host(judge_job):
    with pytest.raises(ConfigError, match="a kernel of its own"):
        c.judge_arguments(NAMES, relayed(network="host"), judge_job, None)


def test_a_spawner_in_another_kernel_is_root_and_its_calls_are_the_user_s():
    subject = c.subject_arguments(NAMES, relayed(), LIMITS, "/usr/bin")
    options = options_of(subject)
    assert value_of(options, "--user") == "0:0"
    assert values_of(options, "--cap-drop") == ["ALL"]
    assert set(values_of(options, "--cap-add")) == set(c.RELAYED_SPAWNER_CAPABILITIES)
    assert values_of(options, "--security-opt") == ["no-new-privileges"]
    assert subject[subject.index("serve") :][:5] == ["serve", "--relay", c.RELAY_PORT, "1234", "2345"]


def test_names_are_new_each_time():
    assert len({c.ContainerNames().token for _ in range(100)}) == 100
    assert len(set(c.ContainerNames().shared)) == 4


def test_each_variable_of_a_command_is_one_word():
    words = c.exec_arguments("name", USER, "/w", {"A": "x; y", "B": ""}, ["sh", "-c", "z"])
    assert values_of(words, "--env") == ["A=x; y", "B="]
    assert words[-4:] == ["name", "sh", "-c", "z"]
    assert value_of(words, "--user") == "1234:2345"
