"""Edges where a verdict could have come out wrong, or an error as a traceback."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from slop_code.errors import ConfigError, InfrastructureError, SubmissionError
from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.backends.bubblewrap import setup_arguments
from slop_code.execution.backends.mounts import system_arguments
from slop_code.execution.boxes import SetupJob, sandbox_for
from slop_code.execution.process import run
from slop_code.execution.setup import python_dependencies
from slop_code.execution.snapshot import tree_digest
from slop_code.execution.spec import EnvironmentSpec

PASSES = {"main.py": "print('right')"}


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
        },
        files={
            "tests/conftest_extra.py": "",
            "tests/sub/conftest.py": "",
        },
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


@pytest.mark.e2e
def test_a_part_of_the_tests_is_no_verdict(make_problem, make_submission, evaluate):
    problem = make_problem({"test_checkpoint_1.py": "def test_a():\n    pass\n\ndef test_b():\n    assert False\n"})
    results = evaluate(problem, make_submission({}), pytest_args=["-k", "test_a"])
    assert (results.deselected, [test.status for test in results.tests]) == (1, ["passed"])
    assert results.infrastructure_failure is False
    assert not any(results.passed.values())


@pytest.mark.e2e
def test_nothing_of_the_submission_runs_where_files_are_handed_over(
    make_problem, make_submission, evaluate, need_bubblewrap
):
    """The call's own PATH and LD_PRELOAD are the subject's business alone."""
    problem = make_problem(
        {
            "test_checkpoint_1.py": """
            import os
            import subprocess
            from pathlib import Path

            DATA = Path(__file__).parent / "data" / "input.txt"

            def test_handed(entrypoint):
                bin = Path("bin").resolve()
                env = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
                done = subprocess.run([*entrypoint, DATA], capture_output=True, text=True, env=env, timeout=20)
                assert done.stdout == "handed"
                assert not Path(".scbench/planted").exists()
            """
        },
        files={"tests/data/input.txt": "handed"},
    )
    planted = '#!/bin/sh\n: > /workspace/.scbench/planted\nexec /bin/cp "$@"\n'
    submission = make_submission({"main.py": "import sys; print(open(sys.argv[1]).read(), end='')", "bin/cp": planted})
    (submission / "bin/cp").chmod(0o755)
    results = evaluate(problem, submission)
    assert [(test.status, test.failure_message) for test in results.tests] == [("passed", None)]


@pytest.mark.e2e
def test_executable_test_data_stays_executable(make_problem, make_submission, evaluate):
    problem = make_problem(
        {
            "test_checkpoint_1.py": """
            import os
            from pathlib import Path

            def test_tool():
                assert os.access(Path(__file__).parent / "data/tool.sh", os.X_OK)
            """
        },
        files={"tests/data/tool.sh": "#!/bin/sh\n"},
    )
    (problem.path / "tests/data/tool.sh").chmod(0o755)
    assert evaluate(problem, make_submission({})).passed["all-cases"]


def test_what_is_hidden_is_hidden_behind_links_too(tmp_path):
    (tmp_path / "link").symlink_to("/usr/share")
    found = system_arguments([tmp_path / "link", Path("/usr/lib"), tmp_path])
    assert [found[i + 1] for i, word in enumerate(found) if word == "--tmpfs"] == ["/usr/share", "/usr/lib"]


def test_set_up_is_as_blind_as_the_subject(tmp_path, need_bubblewrap):
    job = SetupJob(
        submission=tmp_path,
        command=[],
        environment={},
        scratch=tmp_path,
        subject_env=tmp_path,
        timeout=1,
        hidden=[Path("/usr/share")],
    )
    arguments = setup_arguments(job)
    assert arguments[arguments.index("--tmpfs") + 1] == "/usr/share"


def test_a_docker_environment_never_runs_on_the_host():
    spec = EnvironmentSpec.model_validate(
        {"type": "docker", "name": "x", "docker": {"image": "nothing"}, "isolation": "none"}
    )
    with pytest.raises(InfrastructureError, match="docker"):
        sandbox_for(spec)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000, "a = 1" + "0" * 5000, "[project]\ndependencies = 3", "\0", "[project"]
)
def test_hostile_project_files(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    source, content = python_dependencies(tmp_path)
    assert (source, content) in ((None, None), ("pyproject.toml", None))


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


def test_a_tree_that_cannot_be_walked_is_refused(tmp_path):
    folder = tmp_path / "tree"
    inner = folder
    for _ in range(120):
        inner = inner / "d"
    inner.mkdir(parents=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        with pytest.raises(SubmissionError, match="cannot be read to its end"):
            tree_digest(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_stars_that_are_no_glob(make_problem):
    problem = make_problem({"test_checkpoint_1.py": "def test_a():\n    pass\n"})
    config = problem.path / "config.yaml"
    config.write_text(config.read_text() + '\nvisible: ["data/**.txt"]\n')
    with pytest.raises(ConfigError, match=r"visible: found .*, expected globs in which"):
        ProblemConfig.from_yaml(problem.path)
