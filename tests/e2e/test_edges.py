"""Edges where a verdict could have come out wrong, or an error as a traceback."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import pytest

from slop_code.errors import ConfigError, InfrastructureError, UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.bubblewrap.box_arguments import setup_arguments
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.cache import Cache
from slop_code.execution.dependencies.find_dependencies import python_dependencies
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.execution.process import run
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.sandbox import SetupJob, sandbox_for
from tests.e2e.conftest import link_or_copy
from tests.marks import in_long


@pytest.mark.e2e
def test_tests_that_leave_themselves_out_are_no_verdict(make_problem, make_submission, evaluate):
    """What a workspace holds may not decide which tests count."""
    problem = make_problem(
        {
            "test_checkpoint_1.py": """
            def test_easy():
                pass

            def test_hard():
                assert False
            """
        }
    )
    extra = problem.path / "tests/conftest.py"
    extra.write_text(
        extra.read_text()
        + """

def pytest_collection_modifyitems(config, items):
    import pathlib

    if pathlib.Path("easy").exists():
        gone = [item for item in items if "hard" in item.name]
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=gone)
"""
    )
    results = evaluate(problem, make_submission({"main.py": "", "easy": ""}))
    assert "test_hard" in (results.infrastructure_failure_reason or "")
    assert not any(results.passed.values())


def test_what_is_hidden_is_hidden_behind_links_too(tmp_path):
    (tmp_path / "link").symlink_to("/usr/share")
    found = system_arguments([tmp_path / "link", Path("/usr/lib"), tmp_path])
    assert [found[i + 1] for i, word in enumerate(found) if word == "--tmpfs"] == ["/usr/share", "/usr/lib"]


def test_set_up_is_as_blind_as_the_subject(tmp_path, need_bubblewrap):
    need_bubblewrap()
    job = SetupJob(
        submission=tmp_path,
        environment={},
        scratch=tmp_path,
        keep_workspace=False,
        hidden=[Path("/usr/share")],
    )
    arguments = setup_arguments(job)
    assert arguments[arguments.index("--tmpfs") + 1] == "/usr/share"


def test_a_docker_environment_never_runs_on_the_host(tmp_path):
    spec = EnvironmentSpec.model_validate(
        {"type": "docker", "name": "x", "docker": {"image": "x", "binary": "no-such-engine"}, "isolation": "none"}
    )
    with pytest.raises(InfrastructureError, match="no-such-engine is not installed"):
        sandbox_for(spec, Cache(tmp_path))


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000, "a = 1" + "0" * 5000, "[project]\ndependencies = 3", "\0", "[project"]
)
def test_hostile_project_files_declare_no_dependencies(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    found = python_dependencies(tmp_path)
    assert (found.source, found.text) in ((None, None), ("pyproject.toml", None))


def test_waiting_with_many_descriptors_and_for_ever(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"at most {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    held = [(tmp_path / "held").open("w") for _ in range(1100)]
    try:
        done = run(["/bin/true"], env={}, log=tmp_path / "log", timeout=1e12)
    finally:
        for stream in held:
            stream.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert done.exit_code == 0


def test_stars_that_are_no_glob(make_problem):
    problem = make_problem({"test_checkpoint_1.py": "def test_a():\n    pass\n"})
    config = problem.path / "config.yaml"
    config.write_text(config.read_text() + '\nvisible: ["data/**.txt"]\n')
    with pytest.raises(ConfigError, match=r"visible: found .*, expected globs in which"):
        ProblemConfig.from_yaml(problem.path)


PREAMBLE = """
import os
import subprocess
from pathlib import Path

TESTS = Path(__file__).parent


def call(entrypoint, *words, **options):
    return subprocess.run([*entrypoint, *words], capture_output=True, text=True, timeout=20, **options).stdout.strip()
"""
CALLS = """

def test_a_link_named_like_an_argument(entrypoint):
    assert call(entrypoint, "show") == "None"


def test_the_name_of_a_test_file(entrypoint):
    assert call(entrypoint, TESTS / "conftest.py") == "None"


def test_code_in_a_folder_that_is_handed_over(entrypoint):
    assert call(entrypoint, TESTS / "data") == "['value']"
    from data import oracle
    assert oracle


def test_a_file_that_is_handed_over(entrypoint):
    bin = Path("bin").resolve()
    env = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
    assert call(entrypoint, TESTS / "other" / "input.txt", env=env) == "handed"
    assert not Path(".scbench/planted").exists()


def test_executable_test_data_stays_executable():
    assert os.access(TESTS / "other/tool.sh", os.X_OK)


def test_calls_that_no_namespace_holds_back(entrypoint):
    assert call(entrypoint, "calls") == "['vsock', 'keyctl', 'fds 0']"
"""
SUBMISSION = """
import ctypes, errno, os, platform, socket, sys

def look(path):
    if os.path.isdir(path) and path != "show":
        return sorted(os.listdir(path))
    path = "show/value" if path == "show" else path
    return open(path).read() if os.path.exists(path) else None

def refused():
    try:
        socket.socket(40, socket.SOCK_STREAM)
    except OSError:
        yield "vsock"
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    if libc.syscall(number, 0, -3, 1) == -1 and ctypes.get_errno() == errno.ENOSYS:
        yield "keyctl"
    yield f"fds {len([fd for fd in os.listdir('/proc/self/fd') if int(fd) > 3])}"

print([*refused()] if sys.argv[1] == "calls" else look(sys.argv[1]))
"""
PLANTED = '#!/bin/sh\n: > /workspace/.scbench/planted\nexec /bin/cp "$@"\n'


@pytest.mark.e2e
def test_calls_get_data_files_and_neither_test_code_nor_forbidden_system_calls(make_problem, make_submission, evaluate):
    """Nothing of the submission runs where files are handed over: a call's own PATH is the subject's business."""
    files = {
        "data/value": "expected",
        "data/oracle.py": "",
        "other/input.txt": "handed",
        "other/tool.sh": "#!/bin/sh\n",
    }
    problem = make_problem(
        {"test_checkpoint_1.py": PREAMBLE + CALLS},
        files={f"tests/{name}": content for name, content in files.items()},
    )
    (problem.path / "tests/other/tool.sh").chmod(0o755)
    submission = make_submission({"main.py": SUBMISSION, "bin/cp": PLANTED})
    (submission / "bin/cp").chmod(0o755)
    (submission / "show").symlink_to("/workspace/.evaluation_tests/data")
    results = evaluate(problem, submission)
    assert {test.id: test.failure_message for test in results.tests if test.status != "passed"} == {}
    assert len(results.tests) == 6


@pytest.mark.e2e
def test_libraries_of_the_submission_stay_out_of_the_judge(make_problem, make_submission, evaluate):
    """A problem may point its variables into the workspace; the judge itself starts without them."""
    problem = make_problem(
        {"test_checkpoint_1.py": "import os\n\ndef test_it():\n    assert os.environ['LD_LIBRARY_PATH']\n"},
        config={"env": {"LD_LIBRARY_PATH": "/workspace/lib", "PYTHONPATH": "/workspace/lib"}},
    )
    submission = make_submission(
        {"main.py": "", "lib/libdl.so.2": "no library", "lib/pytest.py": "raise SystemExit(9)"}
    )
    assert evaluate(problem, submission).passed["all-cases"]


@pytest.mark.e2e
@pytest.mark.parametrize("inside", ["output", "problem"])
def test_what_decides_may_not_lie_in_the_submission(make_problem, make_submission, evaluate, inside):
    problem = make_problem({"test_checkpoint_1.py": "def test_a():\n    pass\n"})
    submission = problem.path.parent if inside == "problem" else make_submission({"main.py": ""})
    with pytest.raises(UsageError, match="lies inside the submission"):
        evaluate(problem, submission, output_dir=submission / "out" if inside == "output" else None)


def flip(paths, old, new):
    for path in list(paths):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("damage", "rebuilt"),
    [
        *in_long(
            (
                lambda root: [path.unlink() for path in root.glob("subjects/*/env/bin/*")],
                ProgressKind.RUN_SETUP_COMMAND,
            ),
            (
                lambda root: [path.write_text("") for path in root.glob("subjects/*/env/pyvenv.cfg")],
                ProgressKind.RUN_SETUP_COMMAND,
            ),
            (
                lambda root: [path.write_text("") for path in root.glob("tests/*/judge/*.py")],
                ProgressKind.COLLECT_TESTS,
            ),
            (lambda root: flip(root.glob("tests/*/tests/test_*.py"), "'x'", "'y'"), ProgressKind.COLLECT_TESTS),
        ),
        (lambda root: flip(root.glob("tests/*/roster.json"), "test_it", "test_at"), ProgressKind.COLLECT_TESTS),
    ],
    ids=["environment", "its settings", "plugin", "tests", "roster"],
)
def test_damage_in_the_cache_is_repaired(make_problem, make_submission, evaluate, tmp_path, cache, damage, rebuilt):
    problem = make_problem(
        {"test_checkpoint_1.py": PREAMBLE + "def test_it(entrypoint):\n    assert call(entrypoint) == 'x'\n"}
    )
    own = Cache(tmp_path / "cache")
    own.root.mkdir()
    for name in ("uv", "tools"):
        shutil.copytree(cache.root / name, own.root / name, symlinks=True, copy_function=link_or_copy)
    submission, events = make_submission({"main.py": "print('x')"}), []
    spec = load_environment("local")
    runner = PytestRunner(problem, problem.checkpoint(1), spec, submission, cache=own, progress=events.append)
    assert runner.run().passed["all-cases"]
    damage(own.root)
    events.clear()
    assert runner.run().passed["all-cases"]
    assert rebuilt in [event.kind for event in events]


@pytest.fixture(scope="module")
def taking(make_problem):
    test = "def test_it(entrypoint):\n    assert call(entrypoint) != 'all of it was taken'\n"
    return make_problem({"test_checkpoint_1.py": PREAMBLE + test})


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("limits", "main"),
    [
        (
            {"memory": "150M"},
            "import os; f = os.memfd_create('x'); [os.write(f, b'x' * (1 << 20)) for _ in range(180)]",
        ),
        ({"memory": "150M", "disk": "300M"}, "import os; [open(f'/tmp/{i}', 'w') for i in range(100_000)]"),
    ],
    ids=["memory files", "empty files"],
)
def test_memory_that_is_nobodys(taking, make_submission, evaluate, limits, main):
    held = f"{main}\nimport time; time.sleep(10)\nprint('all of it was taken')"
    results = evaluate(taking, make_submission({"main.py": held}), environment={"limits": limits})
    assert [(test.status, test.failure_message) for test in results.tests] == [("passed", None)]


@pytest.fixture(scope="module")
def leaving(make_problem):
    return make_problem({"test_checkpoint_1.py": "def test_it(run, tmp_path): assert run(tmp_path).stdout"})


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
@pytest.mark.parametrize(
    "sabotage",
    [
        "os.chmod(folder, 0)",
        "os.chmod('.', 0)",
        "os.chmod(folder + '/../..', 0)",
        "os.symlink('loop', folder + '/loop')",
    ],
)
def test_what_happens_to_its_folders_does_not_end_pytest(evaluate, leaving, make_submission, sandbox, sabotage):
    """pytest tidied up there when it had run all tests, and failed: no verdict for one who had failed them."""
    main = f"import os, sys\nfolder = os.path.dirname(sys.argv[1])\n{sabotage}\n"
    results = evaluate(leaving, make_submission({"main.py": main}), sandbox=sandbox)
    assert results.infrastructure_failure_reason is None
    assert [test.status for test in results.tests] == ["failed"]


CLOSING = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 100)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            os.chmod("/workspace", 0)
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_a_process_that_closes_its_folders_again_and_again(evaluate, make_problem, make_submission, sandbox):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): assert run().stdout"})
    results = evaluate(problem, make_submission({"main.py": CLOSING}), sandbox=sandbox)
    assert results.infrastructure_failure_reason is None
    assert [test.status for test in results.tests] == ["failed"]
