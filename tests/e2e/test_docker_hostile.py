"""Attacks that once worked in containers: images with their own programs, set-up that answers for us, endless trees."""

from __future__ import annotations

import os
import subprocess
import uuid
from textwrap import dedent

import pytest

from slop_code.execution.docker.owners import OWNER, owner_label

pytestmark = pytest.mark.e2e

IMAGE = os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")
OBEDIENT = "import sys\nexec(sys.argv[1])\n"


def engine(*arguments):
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def image(need_docker):
    """`image("VOLUME /data")`: the test image with changes."""
    need_docker()
    made = []

    def make(*changes, script="true"):
        name = f"slop-code-{uuid.uuid4().hex}"
        made.append(name)
        container = engine("create", "--label", "slop-code-test", IMAGE, "sh", "-c", script)
        try:
            engine("start", "--attach", container)
            engine("commit", *[word for change in changes for word in ("--change", change)], container, name)
        finally:
            engine("rm", "--force", container)
        return name

    yield make
    for name in made:
        engine("rmi", "--force", name)


def says(results, name="test_it"):
    assert results.infrastructure_failure_reason is None
    (test,) = (test for test in results.tests if test.id == name)
    return test.status, test.failure_message


DECLARED = ["/data", "/srv/deep/", "/tmp/inner", "/nothere/plug"]
DECLARING = """
mkdir -p /data /srv/deep /tmp/inner; chmod 777 /data /srv/deep /tmp/inner; echo of the image > /data/known
"""
OF_THE_IMAGE = f"""
import os

def test_volumes(run):
    assert open("/data/known").read() == "of the image\\n"
    for path in {DECLARED!r}:
        done = run(f"open({{path!r}} + '/x', 'w')")
        assert "Read-only file system" in done.stderr, (path, done.stderr)
    assert os.listdir("/nothere/plug") == []
    assert run("import os; print(os.listdir('/nothere/plug'))").stdout == "['evil.py']\\n"
"""


@pytest.fixture(scope="module")
def of_the_image(image, evaluate, make_problem, make_submission, cache):
    """The results where the image declares all it can, and the volumes that were there before and after."""
    name = image(*[f"VOLUME {path}" for path in DECLARED], script=DECLARING)

    def volumes(*words):
        return set(engine("volume", "ls", "--quiet", *words).split())

    before = volumes()
    setup = ["mv /nothere /nothere2; mkdir -p /nothere/plug; touch /nothere/plug/evil.py"]
    environment = {"docker": {"image": name}, "setup": {"commands": setup}}
    problem, submission = make_problem({"test_checkpoint_1.py": OF_THE_IMAGE}), make_submission({"main.py": OBEDIENT})
    results = evaluate(problem, submission, sandbox="docker", environment=environment)
    return results, volumes("--filter", f"label={OWNER}={owner_label(cache)}") - before


@pytest.mark.long
def test_declared_volumes_are_read_only_and_each_box_has_its_own(of_the_image):
    results, left = of_the_image
    assert says(results, "test_volumes") == ("passed", None)
    assert {volume.rpartition("-")[2] for volume in left} <= {"tools", "layer", "support"}


@pytest.mark.long
def test_an_image_that_declares_a_reserved_volume_is_refused(image, evaluate, make_problem, make_submission):
    name = image("VOLUME /slop/support")
    problem = make_problem({"test_checkpoint_1.py": "def test_it(): pass"})
    results = evaluate(problem, make_submission({}), sandbox="docker", environment={"docker": {"image": name}})
    assert "declares /slop/support as a volume" in results.infrastructure_failure_reason


@pytest.mark.long
def test_set_up_cannot_replace_the_helper(evaluate, make_problem, make_submission):
    """Neither the size of the workspace nor anything else is taken from what set-up may have replaced."""
    lie = "! mv /slop /slopx && ! cp /bin/echo /slop/support/box && ! mv /slop/support /slop/tik"
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): assert run().stdout == 'hello\\n'"})
    submission = make_submission({"main.py": "print('hello')"})
    environment = {"setup": {"commands": [lie]}}
    for _ in range(2):
        assert says(evaluate(problem, submission, sandbox="docker", environment=environment)) == ("passed", None)


@pytest.mark.long
def test_set_up_cannot_redirect_the_workspace(evaluate, make_problem, make_submission):
    """The workspace would be mounted over our helper, and a program of the submission's be process 1."""
    lie = "mv /app /other; mkdir -p /app/deep; ln -s /slop/support /app/deep/ws"
    docker = {"image": IMAGE, "workdir": "/app/deep/ws"}
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): run()"})
    environment = {"docker": docker, "setup": {"commands": [lie]}}
    results = evaluate(problem, make_submission({"main.py": ""}), sandbox="docker", environment=environment)
    assert "/app/deep/ws is no folder" in results.setup_failure


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("truncate -s 3G large", "the workspace has 3221225472 bytes"),
        ("truncate -s 11G /large", "it wrote 118"),
    ],
    ids=["large workspace", "large root"],
)
def test_set_up_cannot_escape_its_verdict_by_what_it_leaves(evaluate, make_problem, make_submission, command, reason):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): run()"})
    environment = {"setup": {"commands": [command]}}
    results = evaluate(problem, make_submission({"main.py": ""}), sandbox="docker", environment=environment)
    assert results.infrastructure_failure_reason is None
    assert reason in results.setup_failure


CROWD = """
import socket, sys, time
held = []
for _ in range(50):
    try:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.connect("/slop/gate/socket")
        held.append(peer)
    except OSError as error:
        break
print(len(held), flush=True)
time.sleep(60)
"""


@pytest.mark.long
def test_the_submission_cannot_talk_to_the_box_init(evaluate, make_problem, make_submission):
    """Each silent connection made it wait for 5 s, and a socket that lingers for as long as one likes."""
    test = """
        import subprocess
        def test_it(entrypoint, run):
            with subprocess.Popen([*entrypoint, CROWD], stdout=subprocess.PIPE) as crowd:
                crowd.stdout.readline()
                try:  # each call ends within its 25 s, or the crowd comes first
                    assert [run("print(1)").stdout for _ in range(3)] == ["1\\n"] * 3
                finally:
                    crowd.kill()
        """
    problem = make_problem({"test_checkpoint_1.py": f"CROWD = {CROWD!r}\n" + dedent(test)})
    results = evaluate(problem, make_submission({"main.py": OBEDIENT}), sandbox="docker")
    assert says(results) == ("passed", None)


@pytest.mark.long
@pytest.mark.parametrize(("mounted", "size"), [(True, 3 << 30), (False, 3 << 30), (True, 1 << 40)])
def test_a_submission_too_large_for_memory_is_refused(
    evaluate, make_problem, make_submission, environment_spec, mounted, size
):
    submission = make_submission({"main.py": ""})
    with (submission / "holes").open("wb") as file:
        file.truncate(size)
    docker = {**environment_spec(sandbox="docker").docker.model_dump(), "mount_workspace": mounted}
    problem = make_problem({"test_checkpoint_1.py": "def test_it(): pass"})
    results = evaluate(problem, submission, sandbox="docker", environment={"docker": docker})
    limit = "2 GiB" if size < 1 << 34 else "16 GiB"
    assert results.setup_failure.startswith(f"set-up failed: the tree has more than {limit}, including holes in files")
    assert not results.infrastructure_failure
