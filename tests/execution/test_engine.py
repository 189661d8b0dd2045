"""The engine's command with a `docker` that only answers what a test needs, and what every container may do."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import subprocess
import sys

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.engine import (
    ENTRY,
    OWNER,
    Engine,
    LabelledObject,
    _labels,
    host,
    is_alive,
    is_left_over,
    owner,
    remove_dead_owners,
    sweep,
)
from slop_code.execution.docker.extra_mounts import Mount, extra_mounts, is_free
from slop_code.execution.environment import Limits


@pytest.fixture
def engine(tmp_path):
    """`engine("echo hello")`: an engine that runs this script, and notes its words in `calls`."""

    def make(script):
        path = tmp_path / "docker"
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
        path.chmod(0o755)
        return Engine(str(path))

    return make


@pytest.fixture
def calls(tmp_path):
    return lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


@pytest.fixture
def cache(tmp_path):
    root = tmp_path / "a cache, with 100% odd=name"
    root.mkdir()
    return Cache(root)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "no daemon answers"),
        ("error during connect: Get http://x: EOF", "no daemon answers"),
        ("dial tcp 127.0.0.1:2375: connect: connection refused", "no daemon answers"),
        ("level=error msg=error waiting for container: unexpected EOF", "no daemon answers"),
        ("Got permission denied while trying to connect to the Docker daemon socket", "may not use the daemon"),
        ("permission denied while trying to connect to the docker API", "may not use the daemon"),
        ("write /var/lib/docker/x: no space left on device", "disk is full"),
        ("Error response from daemon: mkdir /x: no space left on device", "disk is full"),
        ("Error response from daemon: Get http://r/v2/: connect: connection refused", "`docker pull x` failed: Error"),
        ("something else", "`docker pull x` failed: something else"),
        ("", "`docker pull x` failed: it said nothing"),
    ],
)
def test_each_way_to_fail_has_its_words(text, told):
    failure = Engine("docker").failure("pull x", text)
    assert isinstance(failure, InfrastructureError)
    assert told in str(failure)
    assert text in str(failure)


@pytest.mark.e2e
def test_an_endless_complaint_is_cut(engine):
    failing = engine("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1")
    with pytest.raises(InfrastructureError) as caught:
        failing.check_output("info")
    assert len(str(caught.value)) < 3000


@pytest.mark.e2e
def test_a_command_that_is_not_there():
    assert "no-such-engine is not installed" in Engine("no-such-engine").unavailable_reason()
    with pytest.raises(InfrastructureError, match="cannot start"):
        Engine("/no/such/engine").check_output("info")


@pytest.mark.e2e
def test_no_answer_in_time(engine):
    with pytest.raises(InfrastructureError, match=r"gave no answer within 0.2 s"):
        engine("exec sleep 20").check_output("info", timeout=0.2)


@pytest.mark.e2e
def test_an_image_is_pulled_when_it_is_not_there(engine, calls, tmp_path):
    told = []
    found = engine(
        f'case "$1" in pull) touch {tmp_path}/pulled;; *) [ -e {tmp_path}/pulled ] && echo \'[{{"Id": "x"}}]\' '
        "|| { echo 'Error: No such image: x' >&2; exit 1; };; esac"
    ).image("x", told.append)
    assert found == {"Id": "x"}
    assert "x" in told[0]
    assert [call.split()[0] for call in calls()] == ["image", "pull", "image"]


@pytest.mark.e2e
def test_an_image_that_is_there_is_not_pulled(engine, calls):
    assert engine('echo \'[{"Id": "x"}]\'').image("x", print) == {"Id": "x"}
    assert len(calls()) == 1


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("Error response from daemon: pull access denied for x", "image x: not here, and it cannot be pulled"),
        ("Error response from daemon: connect: connection refused", "image x: not here, and it cannot be pulled"),
        ("no space left on device", "disk is full"),
    ],
)
def test_an_image_that_cannot_be_pulled(engine, complaint, told):
    refusing = engine(f"[ $1 = pull ] && echo '{complaint}' >&2 || echo 'No such image: x' >&2; exit 1")
    with pytest.raises(InfrastructureError, match=told):
        refusing.image("x", print)


@pytest.mark.e2e
def test_a_name_that_looks_like_an_option_is_a_name(engine, calls):
    with pytest.raises(InfrastructureError, match="image --help: not here"):
        engine("echo 'No such image' >&2; exit 1").image("--help", print)
    assert [call.split()[-2:] for call in calls()] == [["--", "--help"]] * 2


@pytest.mark.e2e
@pytest.mark.parametrize("script", ["true", "echo []", "echo Usage: something", "echo '{}'"])
def test_a_command_that_is_no_engine(engine, script):
    with pytest.raises(InfrastructureError, match="it is no container engine"):
        engine(script).image("x", print)


@pytest.mark.e2e
def test_a_daemon_that_fails_is_not_asked_to_pull(engine, calls):
    with pytest.raises(InfrastructureError, match="no daemon answers"):
        engine("echo 'Cannot connect to the Docker daemon' >&2; exit 1").image("x", print)
    assert len(calls()) == 1


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a=b,c=d", {"a": "b", "c": "d"}),
        ("a=b=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("", {}),
        (None, {}),
        ({"a": "b"}, {"a": "b"}),
    ],
)
def test_labels_as_engines_print_them(value, found):
    assert _labels(value) == found


@pytest.mark.e2e
@pytest.mark.parametrize(
    "printed",
    [
        '{"Names": "one", "Labels": "slop-code.owner=x:/y,z=1"}\n'
        '{"Names": "two", "Labels": "slop-code.owner=x:/y,z=1"}',
        '[{"Names": ["one"], "Labels": {"slop-code.owner": "x:/y", "z": "1"}}, '
        '{"Names": ["two"], "Labels": {"slop-code.owner": "x:/y", "z": "1"}}]',
    ],
    ids=["docker", "podman"],
)
def test_what_is_listed(engine, printed):
    labels = {OWNER: "x:/y", "z": "1"}
    assert engine(f"cat <<'END'\n{printed}\nEND").containers() == [
        LabelledObject("one", labels),
        LabelledObject("two", labels),
    ]


@pytest.mark.e2e
def test_nothing_is_listed(engine):
    assert engine("exit 0").containers() == []
    assert engine("exit 0").volumes() == []
    assert engine("exit 0").images() == set()


def test_an_owner_lives_as_long_as_its_process(cache):
    code = (
        "import sys, pathlib; from slop_code.execution.docker.engine import owner; "
        "from slop_code.execution.cache import Cache; "
        "print(owner(Cache(pathlib.Path(sys.argv[1]))), flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", code, cache.root]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        label = process.stdout.readline().strip()
        assert is_alive(label)
        remove_dead_owners(cache)
        assert is_alive(label)
        assert not is_left_over(LabelledObject("x", {OWNER: label}))
        process.kill()
        process.wait()
        assert not is_alive(label)
    assert len(list((cache.root / "owners").iterdir())) == 1
    remove_dead_owners(cache)
    assert list((cache.root / "owners").iterdir()) == []
    assert not is_alive(label)


def test_a_new_owner_forgets_the_dead(cache):
    (cache.root / "owners").mkdir()
    (cache.root / "owners" / "123-dead").touch()
    label = owner(cache)
    assert is_alive(label)
    assert [path.name.partition("-")[0] for path in (cache.root / "owners").iterdir()] == [str(os.getpid())]
    assert "," not in label  # where docker would see the next label
    assert " " not in label


def test_an_owner_of_another_machine_is_left_alone(tmp_path):
    assert is_alive(f"another:{tmp_path}/gone")
    assert is_alive("")
    assert not is_alive(f"{host()}:{tmp_path}/gone")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look at every lock")
def test_an_owner_whose_lock_cannot_be_looked_at_is_left_alone(tmp_path):
    (tmp_path / "owner").touch(mode=0)
    assert is_alive(f"{host()}:{tmp_path}/owner")


def entry_with(tmp_path, kept):
    folder = tmp_path / "an entry"
    folder.mkdir()
    if kept is not None:
        (folder / "names.json").write_text(kept)
    return str(folder).replace(" ", "%20")


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        ('{"a": "mine"}', False),
        ('{"a": "other", "b": "mine"}', False),
        ('{"a": "other"}', True),
        ('{"mine": "not"}', True),
        ("", True),
        (None, True),
    ],
)
def test_what_an_entry_names_is_kept(tmp_path, kept, left):
    dead = f"{host()}:{tmp_path}/gone"
    assert is_left_over(LabelledObject("mine", {OWNER: dead, ENTRY: entry_with(tmp_path, kept)})) is left


def test_what_no_entry_names_is_left_over_when_its_owner_is_gone(tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not is_left_over(LabelledObject("x", {OWNER: f"{host()}:{tmp_path}/lock"}))
        assert not is_left_over(LabelledObject("x", {OWNER: f"{host()}:{tmp_path}/lock", ENTRY: "/no/such/entry"}))
    assert is_left_over(LabelledObject("x", {OWNER: f"{host()}:{tmp_path}/lock"}))
    assert is_left_over(LabelledObject("x", {OWNER: f"{host()}:{tmp_path}/lock", ENTRY: "/no/such/entry"}))
    assert not is_left_over(LabelledObject("x", {}))


@pytest.mark.e2e
def test_sweep_removes_what_is_left_over_and_nothing_else(engine, calls, tmp_path):
    dead, other = {OWNER: f"{host()}:{tmp_path}/gone"}, {OWNER: "another:/lock"}
    gone = sweep(
        engine("exit 1"),
        [LabelledObject("c-dead", dead), LabelledObject("c-other", other)],
        [
            LabelledObject("v-dead", dead),
            LabelledObject("v-other", other),
            LabelledObject("v-kept", {**dead, ENTRY: entry_with(tmp_path, '{"a": "v-kept"}')}),
        ],
    )
    assert gone == ["c-dead", "v-dead"]
    assert [re.sub(r" --\w+", "", call) for call in calls()] == ["rm c-dead", "volume rm v-dead"]


def test_sweep_asks_nothing_where_nothing_is_left(engine, calls):
    assert sweep(engine("exit 1"), [], []) == []
    assert calls() == []


USER = c.User(1234, 2345)
NAMES = c.Names("token")


def value_of(words, option):
    return words[words.index(option) + 1]


def values_of(words, option):
    return [value for word, value in itertools.pairwise(words) if word == option]


@pytest.fixture
def subject():
    return c.subject_arguments(
        NAMES,
        owner="me",
        image="image",
        user=USER,
        workspace="/w",
        mounts=[Mount("support", c.SUPPORT), Mount("/data", "/data", readonly=False)],
        limits=Limits(memory=2 << 20, disk=10, processes=50, cpus=1.5),
    )


@pytest.fixture
def judge():
    return c.judge_arguments(
        NAMES,
        owner="me",
        image="image",
        user=USER,
        workspace="/w",
        network="none",
        mounts=[Mount("support", c.SUPPORT), Mount("/data", "/data", readonly=False), Mount("/more", "/more")],
        source=None,
        collecting=False,
        environment={"A": "b c"},
        argv=["pytest", "--x"],
    )


def options_of(words):
    """What stands before the image is said to the engine."""
    return words[: words.index("image")]


def test_the_subject_s_container_may_do_nothing(subject):
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


def test_of_what_is_shared_the_subject_writes_to_workspace_and_tmp_only(subject, judge):
    mine = dict(reversed(volume.split(":", 1)) for volume in values_of(options_of(subject), "--volume"))
    writable = {target.split(":")[0] for target in mine if not target.partition(":")[2].startswith("ro")}
    assert writable == {"/w", "/tmp"}
    for volume in values_of(options_of(subject), "--volume") + values_of(options_of(judge), "--volume"):
        assert "nocopy" in volume.split(":")[2].split(",")  # nothing of the image's own comes in


def test_the_subject_is_shown_neither_tools_nor_the_judge_s_folder(subject):
    words = " ".join(subject)
    assert c.TOOLS not in words
    assert c.JUDGE not in words
    assert c.CALL not in words


def test_the_judge_s_own_process_has_no_privilege_and_follows_no_link(judge):
    seal = judge[judge.index("seal") :]
    assert values_of(seal, "--user") == ["1234"]
    assert seal[seal.index("--user") + 2] == "2345"
    assert "--clearenv" in seal
    paths = seal[seal.index("b c") + 1 : seal.index("--")]
    assert paths == ["/w", "/tmp", "/data"]  # all that the subject can write to, and nothing that it cannot
    assert seal[seal.index("--") :] == ["--", "pytest", "--x"]


def test_the_judge_s_container_has_only_what_opening_takes(judge):
    options = options_of(judge)
    assert values_of(options, "--cap-drop") == ["ALL"]
    assert set(values_of(options, "--cap-add")) == set(c.OPENING)
    assert "--read-only" in options
    assert "no-new-privileges" in values_of(options, "--security-opt")
    assert value_of(options, "--network") == "none"
    assert values_of(options, "--label") == ["slop-code.owner=me"]


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        (Mount("volume", "/t"), ["--volume", "volume:/t:ro,nocopy"]),
        (Mount("volume", "/t", readonly=False), ["--volume", "volume:/t:nocopy"]),
        (Mount("/a b", "/t"), ["--mount", "type=bind,source=/a b,target=/t,readonly"]),
        (Mount("/a", "/t", readonly=False), ["--mount", "type=bind,source=/a,target=/t"]),
        (Mount('/a,"b"', "/t"), ["--mount", 'type=bind,"source=/a,""b""",target=/t,readonly']),
    ],
)
def test_mounts_as_words(mount, words):
    assert mount.words == words


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([], []),
        ({}, []),
        (["/a:/b"], [Mount("/a", "/b")]),
        (["/a:/b:rw", "v:/c:ro"], [Mount("/a", "/b", readonly=False), Mount("v", "/c")]),
        ({"/a": "/b"}, [Mount("/a", "/b")]),
        ({"/a": "/b:rw"}, [Mount("/a", "/b", readonly=False)]),
        ({"/a": {"bind": "/b", "mode": "rw"}}, [Mount("/a", "/b", readonly=False)]),
        ({"/a": {"bind": "/b"}, "/c": "/d"}, [Mount("/a", "/b"), Mount("/c", "/d")]),
        ([{"/a:b": {"bind": "/c"}}], [Mount("/a:b", "/c")]),
    ],
)
def test_extra_mounts(value, found):
    assert extra_mounts(value) == found


@pytest.mark.parametrize(
    "value",
    [
        ["/a"], [":/b"], ["/a:b"], ["/a:/b:wr"], ["/a:/b:rw:x"], [""], {"/a": None}, {"/a": ""}, {"": "/b"},
        {"/a": {"mode": "rw"}}, {"/a": {"bind": "/b", "mode": "x"}},
        {"/a": {"bind": "/b", "mode": [1]}},
        ["/a:/tmp"], ["./a:/b"], ["/a:/slop/support"], ["/a:/"], ["/a:/proc/x"], ["/a:/x/../slop"], {5: "data"},
    ],
)  # fmt: skip
def test_what_is_no_mount(value):
    with pytest.raises(ValueError, match=r"such as source:/target|absolute|targets that are free"):
        extra_mounts(value)


@pytest.mark.parametrize(
    ("path", "free"),
    [
        ("/workspace", True), ("/app", True), ("/a/b c", True), ("/sloppy", True), ("/home/me", True),
        ("", False), ("app", False), ("/", False), ("/a/", False), ("//a", False), ("/a/../b", False), ("/./a", False),
        ("/slop", False), ("/slop/x", False), ("/tmp", False), ("/tmp/x", False), ("/proc/x", False), ("/dev", False),
        ("/sys", False), (c.HOME, False), (f"{c.HOME}/x", False),
    ],
)  # fmt: skip
def test_where_a_workspace_can_lie(path, free):
    assert is_free(path) is free


def test_names_are_new_each_time():
    assert len({c.Names().token for _ in range(100)}) == 100
    assert len(set(c.Names().shared)) == 4


def test_variables_of_a_command_are_words_of_their_own():
    words = c.exec_arguments("name", USER, "/w", {"A": "x; y", "B": ""}, ["sh", "-c", "z"])
    assert values_of(words, "--env") == ["A=x; y", "B="]
    assert words[-4:] == ["name", "sh", "-c", "z"]
    assert value_of(words, "--user") == "1234:2345"


def test_a_label_is_read_back_as_it_was_written(cache):
    """The path of a cache can have any character in it; docker prints labels with commas between them."""
    label = owner(cache)
    assert _labels(f"{OWNER}={label},other=1") == {OWNER: label, "other": "1"}
    assert is_alive(label)
