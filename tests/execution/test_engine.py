"""Engine command line, with a `docker` that is a shell script of the test."""

from __future__ import annotations

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.docker.engine import Engine, LabelledObject, _labels
from slop_code.execution.docker.owners import OWNER
from slop_code.execution.progress_events import ProgressKind

PULL_S = 60.0


@pytest.mark.e2e
def test_the_deadline_of_a_pull_is_named(engine):
    """The engine waits for its own end, which only the deadline brings."""
    waiting = engine("[ $1 = pull ] && exec tail -f /dev/null; echo 'No such image: x' >&2; exit 1")
    with pytest.raises(InfrastructureError, match=r"image x: it was not pulled within the 0\.2 s of timeouts\.image"):
        waiting.image("x", print, 0.2)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("script", "further"),
    [
        ('shift 3; printf "%s\\n" "$@"', []),
        ("echo b", ["rm --force --volumes a"]),
        ("true", ["rm --force --volumes a", "rm --force --volumes b"]),
    ],
    ids=["both", "one", "none"],
)
def test_objects_that_are_not_printed_as_removed_are_removed_one_by_one(engine, calls, script, further):
    """podman removes nothing if one of several names is missing, and ends with 0."""
    engine(script).remove(containers=["a", "b"])
    assert calls() == ["rm --force --volumes a b", *further]


@pytest.mark.parametrize(
    ("text", "message"),
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
        ("", "`docker pull x` failed: it printed nothing"),
    ],
)
def test_each_known_failure_has_a_sentence(text, message):
    failure = Engine("docker").failure("pull x", text)
    assert isinstance(failure, InfrastructureError)
    assert message in str(failure)
    assert text in str(failure)


@pytest.mark.e2e
def test_a_long_error_message_is_cut(engine):
    failing = engine("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1")
    with pytest.raises(InfrastructureError) as caught:
        failing.check_output("info")
    assert len(str(caught.value)) < 3000


@pytest.mark.e2e
def test_a_missing_engine_is_an_infrastructure_failure():
    assert "no-such-engine is not installed" in Engine("no-such-engine").unavailable_reason()
    with pytest.raises(InfrastructureError, match="cannot start"):
        Engine("/no/such/engine").check_output("info")


@pytest.mark.e2e
def test_an_engine_that_does_not_answer_is_an_infrastructure_failure(engine):
    with pytest.raises(InfrastructureError, match=r"gave no answer within 0.2 s"):
        engine("exec sleep 20").check_output("info", timeout=0.2)


@pytest.mark.e2e
def test_an_image_is_pulled_when_it_is_not_there(engine, calls, tmp_path):
    events = []
    image = engine(
        f'case "$1" in pull) touch {tmp_path}/pulled;; *) [ -e {tmp_path}/pulled ] && echo \'[{{"Id": "x"}}]\' '
        "|| { echo 'Error: No such image: x' >&2; exit 1; };; esac"
    ).image("x", events.append, PULL_S)
    assert image == {"Id": "x"}
    assert [(event.kind, event.name) for event in events] == [(ProgressKind.PULL_IMAGE, "x")]
    assert [call.split()[0] for call in calls()] == ["image", "pull", "image"]


@pytest.mark.e2e
def test_an_image_that_is_there_is_not_pulled(engine, calls):
    assert engine('echo \'[{"Id": "x"}]\'').image("x", print, PULL_S) == {"Id": "x"}
    assert len(calls()) == 1


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            "Error response from daemon: pull access denied for x",
            "it cannot be pulled: its registry has no such image for you; ",
        ),
        (
            "Error response from daemon: connect: connection refused",
            "it cannot be pulled: its registry cannot be reached; ",
        ),
        ("no space left on device", "disk is full"),
    ],
)
def test_an_image_that_cannot_be_pulled_is_an_infrastructure_failure(engine, error, message):
    refusing = engine(f"[ $1 = pull ] && echo '{error}' >&2 || echo 'No such image: x' >&2; exit 1")
    with pytest.raises(InfrastructureError, match=message):
        refusing.image("x", print, PULL_S)


@pytest.mark.e2e
def test_a_name_that_looks_like_an_option_is_a_name(engine, calls):
    with pytest.raises(InfrastructureError, match="image --help: not here"):
        engine("echo 'No such image' >&2; exit 1").image("--help", print, PULL_S)
    assert [call.split()[-2:] for call in calls()] == [["--", "--help"]] * 2


@pytest.mark.e2e
@pytest.mark.parametrize("script", ["true", "echo []", "echo Usage: something", "echo '{}'"])
def test_a_command_that_is_no_engine_is_reported(engine, script):
    with pytest.raises(InfrastructureError, match="it is no container engine"):
        engine(script).image("x", print, PULL_S)


@pytest.mark.e2e
def test_a_daemon_that_fails_is_not_asked_to_pull(engine, calls):
    with pytest.raises(InfrastructureError, match="no daemon answers"):
        engine("echo 'Cannot connect to the Docker daemon' >&2; exit 1").image("x", print, PULL_S)
    assert len(calls()) == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a=b,c=d", {"a": "b", "c": "d"}),
        ("a=b=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("", {}),
        (None, {}),
        ({"a": "b"}, {"a": "b"}),
    ],
)
def test_labels_are_parsed_as_engines_print_them(value, expected):
    assert _labels(value) == expected


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
def test_listed_objects_have_names_and_labels(engine, printed):
    labels = {OWNER: "x:/y", "z": "1"}
    assert engine(f"cat <<'END'\n{printed}\nEND").containers() == [
        LabelledObject("one", labels),
        LabelledObject("two", labels),
    ]


@pytest.mark.e2e
def test_an_engine_without_objects_lists_nothing(engine):
    assert engine("exit 0").containers() == []
    assert engine("exit 0").volumes() == []
    assert engine("exit 0").images() == set()
