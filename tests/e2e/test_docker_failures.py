"""Failures of the engine: one message, exit status 3, no verdict, no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import warnings
from pathlib import Path

import pytest
import yaml

from slop_code.evaluation import CorrectnessResults
from slop_code.execution.docker.docker_sandbox import DockerSandbox
from slop_code.execution.docker.owners import OBJECTS_FILE, OWNER, owner_label
from tests.command import SLOP_CODE, slop_code

pytestmark = pytest.mark.e2e

IMAGE = os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")
PATIENCE_S = 600
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount, start a daemon or become another user")


@pytest.fixture(scope="module")
def problem(make_problem):
    tests = """
        from pathlib import Path

        def test_it(run):
            assert run("hello").stdout == "hello\\n"

        def test_long(run):
            while Path("stay").exists():
                assert run("hello").stdout == "hello\\n"
    """
    return make_problem({"test_checkpoint_1.py": tests}, config={"timeout": 120})


@pytest.fixture(scope="module")
def good(make_submission):
    return make_submission({"main.py": "import sys; print(sys.argv[1])\n"})


@pytest.fixture
def command(problem, good, need_docker, tmp_path):
    """The words of an evaluation in an environment with these keys."""
    need_docker()

    def words(keys, submission=good):
        settings = {"type": "docker", "name": "test", **keys, "docker": {"image": IMAGE, **keys.get("docker", {})}}
        (tmp_path / "environment.yaml").write_text(yaml.safe_dump(settings))
        out = tmp_path / "out"
        given = ["-p", problem.path, "-c", "1", "-e", tmp_path / "environment.yaml", "-o", out, "-v"]
        return [str(word) for word in ["eval-snapshot", submission, *given]]

    return words


@pytest.fixture
def fails(command, tmp_path, cache):
    """What an evaluation gives as the reason when it ends as an infrastructure failure; it leaves nothing."""

    def run(keys, prefix=(), submission=None, **variables):
        words = command(keys, submission) if submission else command(keys)
        if prefix:
            argv, pipe = [*prefix, SLOP_CODE, *words], subprocess.PIPE
            with subprocess.Popen(
                argv, env={**os.environ, **variables}, stdout=pipe, stderr=subprocess.STDOUT, text=True
            ) as evaluator:
                printed, _ = evaluator.communicate(timeout=300)
            status, process = evaluator.returncode, evaluator.pid
        else:
            with pytest.MonkeyPatch.context() as patch:
                for name, value in variables.items():
                    patch.setenv(name, value)
                done = slop_code(*words)
            status, printed, process = done.returncode, done.stdout + done.stderr, os.getpid()
        assert things_of(process, cache) == []
        return reason_of(status, printed, tmp_path / "out")

    return run


def reason_of(status, printed, out):
    assert "Traceback" not in printed
    assert status == 3, printed
    results = CorrectnessResults.load(out / "evaluation.json")
    assert results.infrastructure_failure
    assert not any(results.passed.values())
    assert results.infrastructure_failure_reason.splitlines()[0] in printed
    return results.infrastructure_failure_reason


def things_of(evaluator, cache):
    """Containers that belong to this process, and what its cache keeps no note of among volumes."""
    form = '{{.Label "slop-code.owner"}}'
    containers = docker("ps", "--all", "--format", "{{.Names}} " + form).splitlines()
    volumes = docker("volume", "ls", "--format", "{{.Name}} " + form).splitlines()
    kept = {
        name for path in cache.root.glob(f"*/[!.]*/{OBJECTS_FILE}") for name in json.loads(path.read_text()).values()
    }
    mine = f"{cache.root}/owners/{evaluator}-"
    return [line for line in [*containers, *volumes] if mine in line and line.split()[0] not in kept]


def docker(*words, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run(["docker", *words], env=environment, capture_output=True, text=True, check=True).stdout


def test_a_missing_daemon_is_an_infrastructure_failure(fails, tmp_path):
    nowhere = tmp_path / "sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(nowhere))
    reason = fails({}, DOCKER_HOST=f"unix://{nowhere}")
    assert "no daemon answers" in reason
    assert str(nowhere) in reason


def test_a_missing_engine_is_an_infrastructure_failure(fails, tmp_path):
    reason = fails({"docker": {"binary": "no-such-engine"}})
    assert reason.startswith("no-such-engine is not installed")
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["pytest_exit_code"] == -1


def test_a_missing_image_is_an_infrastructure_failure(fails):
    """Nothing listens on port 1, so that there is nobody to pull from."""
    reason = fails({"docker": {"image": "127.0.0.1:1/nobody/has:this"}})
    assert reason.startswith("image 127.0.0.1:1/nobody/has:this: not here, and it cannot be pulled")


@NEEDS_ROOT
def test_a_user_who_may_not_use_the_daemon_is_an_infrastructure_failure(fails, tmp_path):
    engine = tmp_path / "engine"
    engine.write_text('#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups docker "$@"\n')
    engine.chmod(0o755)
    reason = fails({"docker": {"binary": str(engine)}})
    assert "this user may not use the daemon" in reason


def test_a_user_unknown_to_the_image_is_an_infrastructure_failure(fails):
    assert "nobody-of-that-name" in fails({"docker": {"user": "nobody-of-that-name"}})


def test_a_mount_of_a_missing_path_is_an_infrastructure_failure(fails, tmp_path):
    assert f"{tmp_path}/nothing" in fails({"docker": {"extra_mounts": [f"{tmp_path}/nothing:/given"]}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workdir": "here"}, "docker.workdir: found 'here', expected an absolute folder"),
        ({"workdir": "/slop/support"}, "docker.workdir: found '/slop/support'"),
        ({"workdir": "/tmp"}, "docker.workdir: found '/tmp'"),
        ({"workdir": "/etc/passwd"}, "docker.workdir: found '/etc/passwd'"),
        ({"workdir": "/a\nb"}, "docker.workdir: found '/a"),
        ({"extra_mounts": ["/etc"]}, "docker.extra_mounts: found"),
        ({"extra_mounts": ["/etc:/given:wr"]}, "expected mounts such as source:/target"),
        ({"extra_mounts": ["./etc:/given"]}, "expected absolute sources, which ./etc is not"),
        ({"extra_mounts": ["/etc:/slop/support"]}, "expected targets that are free, which /slop/support is not"),
    ],
)
def test_invalid_settings_are_a_config_error(command, tmp_path, settings, message):
    done = slop_code(*command({"docker": settings}))
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out" / "evaluation.json").exists()


def test_failing_set_up_is_reported_with_its_output(fails):
    commands = ["true", "(echo much; seq 9000; echo the last words) >&2; exit 7"]
    reason = fails({"setup": {"commands": commands, "on_failure": "infrastructure"}})
    assert reason.splitlines()[0].endswith("exited with 7")
    assert "set-up: `(echo much" in reason
    assert reason.endswith("9000\nthe last words")


@pytest.mark.long
def test_set_up_has_a_timeout(fails):
    commands = ["echo begun; trap '' TERM; while :; do sleep 1; done"]
    reason = fails({"setup": {"commands": commands, "timeout": 30, "on_failure": "infrastructure"}})
    assert "did not end within the 30 s of setup.timeout" in reason
    assert reason.endswith("begun")


@NEEDS_ROOT
@pytest.mark.parametrize("commands", [[], ["true"]], ids=["plain", "with set-up"])
def test_a_submission_that_the_daemon_cannot_see_is_detected(fails, tmp_path, commands):
    """Here the folder has a file; in the daemon's view of this machine it is empty."""
    folder = tmp_path / "submission"
    folder.mkdir()
    script = 'mount -t tmpfs none "$0" && echo "print(1)" > "$0/main.py" && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, str(folder)]
    reason = fails({"setup": {"commands": commands}}, prefix, folder)
    assert "set docker.mount_workspace: false" in reason


def test_objects_that_another_evaluation_made_meanwhile_are_known(need_docker, cache, environment_spec, tmp_path):
    need_docker()
    sandbox, volume = DockerSandbox(environment_spec(sandbox="docker"), cache), f"slop-code-test-{os.getpid()}"
    (tmp_path / OBJECTS_FILE).write_text(json.dumps({"layer": volume}))
    with pytest.raises(ValueError, match="gone from the engine"):
        sandbox.objects_of(tmp_path)
    create = ["docker", "volume", "create", "--label", f"{OWNER}={owner_label(cache)}", volume]
    subprocess.run(create, check=True, capture_output=True)
    try:
        assert sandbox.objects_of(tmp_path) == {"layer": volume}
    finally:
        subprocess.run(["docker", "volume", "rm", volume], check=True, capture_output=True)


@pytest.fixture(scope="module")
def own_daemon(need_docker):
    """One more daemon, with its data in memory: its folder, and the variables that lead to it."""
    need_docker()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1])
        import private_daemon as own

        folder = Path(tempfile.mkdtemp(prefix=own.PREFIX, dir=own.FOLDERS))
        found = {"DOCKER_HOST": f"unix://{folder}/sock", "DOCKER_CONTEXT": "", "DOCKER_TLS_VERIFY": ""}
        environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", **found}
        with own.hold(folder):
            try:
                (folder / "data").mkdir()
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m", "none", folder / "data"], check=True)
                with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # nobody waits for its end
                    own.start(folder, environment)
                saved = folder / "image.tar"
                docker("save", "--output", str(saved), IMAGE)
                docker("load", "--input", str(saved), **found)
                saved.unlink()
                yield folder, found
            finally:
                own.remove(folder, environment)


@pytest.fixture
def cache_with_downloads_only(cache, tmp_path_factory):
    """Nothing in it but what uv has fetched already."""
    folder = tmp_path_factory.mktemp("cache")
    shutil.copytree(cache.uv, folder / "uv", symlinks=True)
    return folder


@pytest.mark.long
@NEEDS_ROOT
def test_a_full_daemon_and_a_stopped_daemon_are_infrastructure_failures(
    command, own_daemon, cache_with_downloads_only, make_submission, tmp_path
):
    """A full disk is named; with room again the same works, until the daemon is killed."""
    folder, found = own_daemon
    variables = {**os.environ, **found, "SCBENCH_CACHE_DIR": str(cache_with_downloads_only)}
    staying = make_submission({"main.py": "import sys; print(sys.argv[1])\n", "stay": ""})
    words = [SLOP_CODE, *command({"docker": {"mount_workspace": False}, "commands": {"command": "python3"}}, staying)]
    fill(folder / "data" / "filled")
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=300)
    assert "the daemon's disk is full" in reason_of(done.returncode, done.stdout + done.stderr, tmp_path / "out")
    (folder / "data" / "filled").unlink()
    with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as evaluator:
        until_it_says(evaluator, b"running 2 tests")
        while "-subject" not in docker("ps", "--format", "{{.Names}}", **found):
            assert evaluator.poll() is None
        os.kill(int((folder / "pid").read_text()), 9)
        printed, complained = evaluator.communicate(timeout=300)
    reason = reason_of(evaluator.returncode, (printed + complained).decode(), tmp_path / "out")
    possible = ("no daemon answers", "`docker run` failed", "was it, or docker's daemon, stopped?")
    assert any(words in reason for words in possible), reason


def fill(path):
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * (1 << 20))


def until_it_says(process, words):
    printed = b""
    while words not in printed:
        assert select.select([process.stderr], [], [], PATIENCE_S)[0], printed
        part = os.read(process.stderr.fileno(), 1 << 16)
        assert part, printed
        printed += part
