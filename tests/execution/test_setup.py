"""The subject's own Python environment."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from slop_code.execution.dependencies.find_dependencies import python_dependencies
from slop_code.execution.dependencies.plain_requirements import plain_lines
from slop_code.execution.process import run
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.sandbox import sandbox_for
from slop_code.execution.session import Session
from slop_code.execution.uv import base_python
from tests.conftest import write_files
from tests.marks import in_long

SANDBOXES = ["none", "bubblewrap", "docker"]
VERSION = {
    "test_checkpoint_1.py": """
    def test_six(run):
        done = run()
        assert (done.stdout, done.returncode) == ("1.16.0\\n", 0), done.stderr
    """
}
PRINTS_VERSION = "import six\nprint(six.__version__)\n"


def steps_of(events):
    return [event.kind for event in events if event.kind is not ProgressKind.TESTS_DONE]


HASH = f"--hash=sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", True),
        ("# nothing\n\n", True),
        ("six", True),
        ("six==1.16.0  # pinned", True),
        ("Flask[async, dotenv]>=2,<4\nzope.interface ~= 6.0\n", True),
        ("tomli>=2; python_version < '3.11'", True),
        ("six\r\nattrs\r\n", True),
        ("six\rattrs", True),
        ("six#1", False),
        ("six\u2028attrs", False),
        ("six # a \u2028 comment", True),
        ("six\x0cattrs", False),
        ("-e .", False),
        (".", False),
        ("./x", False),
        ("../x", False),
        ("x/y", False),
        ("/abs/x.whl", False),
        ("x.whl @ y", False),
        ("-r other.txt", False),
        ("-c constraints.txt", False),
        ("--index-url http://127.0.0.1/simple", False),
        ("six --hash=sha256:00", False),
        ("https://127.0.0.1/x.tar.gz", False),
        ("git+https://127.0.0.1/x.git", False),
        ("name @ file:///x", False),
        ("name@file:x", False),
        ("six; python_version < '3' or '@' == ''", False),
        ("six==1 \\\n  --hash=sha256:00", False),
        (f"six==1 \\\n    {HASH} \\\n    {HASH}\n    # via something\nattrs\n", True),
        (f"six==1 \\\r\n    {HASH}\r\n", True),
        ("six \\\n" + "--hash=x \\\n" * 90_000, False),
        (f"six==1 \\\x0b    {HASH}\n", False),
        (f"six==1\\\n    {HASH}\n", False),
        ("six \\\n==1", False),
        ("# six \\\n./own", False),
        (f"# six \\\n{HASH}\n", False),
        ("six\n-e .", False),
        ("${HOME}", False),
    ],
)
def test_only_names_and_versions_are_plain_requirements(text, plain):
    assert (plain_lines(text) is not None) is plain


PROJECT = '[project]\nname = "x"\nversion = "1"\n'


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (None, None)),
        ({"main.py": ""}, (None, None)),
        ({"requirements.txt": "six\n"}, ("requirements.txt", "six\n")),
        ({"requirements.txt": "", "pyproject.toml": PROJECT}, ("requirements.txt", "")),
        ({"requirements.txt": b"\xff\xfe"}, ("requirements.txt", None)),
        ({"requirements.txt": "x" * ((1 << 20) + 1)}, ("requirements.txt", None)),
        ({"requirements.txt/file": ""}, (None, None)),
        ({"pyproject.toml": PROJECT}, (None, None)),
        ({"pyproject.toml": f'{PROJECT}dependencies = ["six", "attrs>=1"]\n'}, ("pyproject.toml", "six\nattrs>=1\n")),
        ({"pyproject.toml": f"{PROJECT}dependencies = []\n"}, ("pyproject.toml", "")),
        ({"pyproject.toml": f'{PROJECT}dependencies = "six"\n'}, ("pyproject.toml", None)),
        ({"pyproject.toml": f'{PROJECT}dynamic = ["dependencies"]\n'}, ("pyproject.toml", None)),
        ({"pyproject.toml": "[tool.other]\nx = 1\n"}, (None, None)),
        ({"pyproject.toml": 'project = "text"\n'}, (None, None)),
        ({"pyproject.toml": "[project\n"}, (None, None)),
    ],
)
def test_dependencies_come_from_requirements_or_pyproject(make_submission, files, expected):
    found = python_dependencies(make_submission(files))
    assert (found.source, found.text) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("list", ("requirements.txt", "six")),
        ("requirements.txt", (None, None)),
        ("missing", (None, None)),
        ("../outside", (None, None)),
        ("/etc/passwd", (None, None)),
    ],
)
def test_links_are_followed_inside_the_submission_alone(tmp_path, target, expected):
    submission = tmp_path / "submission"
    submission.mkdir()
    (submission / "list").write_text("six")
    (tmp_path / "outside").write_text("six")
    (submission / "requirements.txt").symlink_to(target)
    found = python_dependencies(submission)
    assert (found.source, found.text) == expected


@pytest.mark.parametrize(
    ("text", "requirements"),
    [("Six == 1.16.0  # pinned\r\n\r\nattrs\t\n", "Six == 1.16.0\nattrs\n"), ("", ""), ("-e .", None)],
)
def test_plain_requirements_are_read_once(tmp_path, text, requirements):
    submission = tmp_path / "snapshot"
    submission.mkdir()
    (submission / "list").write_text(text, newline="")
    (submission / "requirements.txt").symlink_to("../snapshot/list")  # the submission has another folder in its box
    assert python_dependencies(submission).requirements == requirements


@pytest.fixture(scope="module")
def problem(make_problem):
    """Of one test: what its submission prints is a version."""
    return make_problem(VERSION)


OTHER = "# another program\n"
DEPENDENCIES = {
    "requirements": ({"requirements.txt": "six == 1.16.0\n"}, OTHER),
    "nested requirements": ({"requirements.txt": "-r more.txt\n", "more.txt": "six==1.16.0\n"}, ""),
    "pyproject": ({"pyproject.toml": f'{PROJECT}dependencies = ["six==1.16.0"]\n'}, OTHER),
}
"""By names alone where names are all there is; else the submission may bring what is installed, and counts too."""


@pytest.mark.parametrize(
    ("kind", "sandbox"),
    [
        *((kind, "bubblewrap") for kind in DEPENDENCIES),
        ("requirements", "docker"),
        *in_long(
            ("requirements", "none"),
            ("nested requirements", "docker"),
            ("nested requirements", "none"),
        ),
    ],
)
def test_dependencies_are_installed_once_per_content(evaluate, problem, make_submission, kind, sandbox):
    files, change = DEPENDENCIES[kind]
    for text, again in ((PRINTS_VERSION, False), (PRINTS_VERSION + change, True)):
        events = []
        submission = make_submission({**files, "main.py": text})
        results = evaluate(problem, submission, sandbox=sandbox, progress=events.append)
        assert [test.status for test in results.tests] == ["passed"], results.infrastructure_failure_reason
        if again:
            assert steps_of(events) == [ProgressKind.RUN_TESTS]


@pytest.mark.parametrize(
    ("project", "plain"),
    [
        ('dependencies = ["attrs[more]"]\n[project.optional-dependencies]\nmore = ["evil"]', True),
        ('dependencies = ["attrs", "S.I_x[more]"]\n[project.optional-dependencies]\nmore = ["evil"]', True),
        ('dependencies = ["attrs", "X"]', False),
        ('dynamic = ["version"]\ndependencies = ["attrs"]', True),
        ('dynamic = ["dependencies"]', False),
        ('dynamic = 1\ndependencies = ["attrs"]', False),
        ('dependencies = ["attrs # no comment"]', False),
        (f'dependencies = ["attrs {HASH}"]', False),
        ('dependencies = ["attrs\\nidna"]', False),
        ("dependencies = [1]", False),
        ('dependencies = ["./own"]', False),
        ('dependencies = ["attrs"]\n[tool.uv]', False),
    ],
)
def test_dependencies_of_a_project_are_plain_if_they_are_names_of_the_index(make_submission, project, plain):
    found = python_dependencies(make_submission({"pyproject.toml": f"{PROJECT}{project}\n"}))
    assert (found.source, found.plain) == ("pyproject.toml", plain)


def test_extras_of_the_project_s_own_name_are_the_submission_s_own(make_submission):
    """uv would take them from the file, so that a plain name stood for whatever the submission likes."""
    own = 'dependencies = ["X[more]"]\n[project.optional-dependencies]\nmore = ["evil @ file:///workspace/evil"]\n'
    submission = make_submission({"pyproject.toml": PROJECT + own})
    found = python_dependencies(submission)
    assert (found.source, found.text) == ("pyproject.toml", None)


@pytest.mark.parametrize(
    ("init", "sandbox"),
    [
        ("uv init", "bubblewrap"),
        *in_long(("uv init --bare", "bubblewrap"), ("uv init", "docker"), ("uv init", "none")),
    ],
)
def test_set_up_commands_run_once_per_content(evaluate, problem, make_submission, init, sandbox):
    environment = {
        "setup": {"commands": [init], "eval_commands": ["uv add -r requirements.txt"]},
        "commands": {"command": "uv run"},
    }
    submission = make_submission({"requirements.txt": "six==1.16.0\n", "main.py": PRINTS_VERSION})
    events = []
    for _ in range(2):
        events.clear()
        results = evaluate(problem, submission, sandbox=sandbox, environment=environment, progress=events.append)
        assert [test.status for test in results.tests] == ["passed"], (
            results.infrastructure_failure_reason or results.tests[0].failure_message
        )
    assert steps_of(events) == [ProgressKind.RUN_TESTS]
    assert sorted(path.name for path in submission.iterdir()) == ["main.py", "requirements.txt"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_files_made_by_set_up_are_there_for_the_tests(evaluate, problem, make_submission, sandbox):
    environment = {"setup": {"commands": ["mkdir made", "echo 1.16.0 > made/version; rm gone; echo >> changed"]}}
    files = {"main.py": "import os\nprint(open('made/version').read(), end='')\nassert not os.path.exists('gone')\n"}
    submission = make_submission({**files, "gone": "x", "changed": "x"})
    results = evaluate(problem, submission, sandbox=sandbox, environment=environment)
    assert [test.status for test in results.tests] == ["passed"], results.tests[0].failure_message
    assert (submission / "changed").read_text() == "x"
    assert (submission / "gone").exists()


@pytest.fixture
def run_on_host(tmp_path, monkeypatch, cache, environment_spec, make_submission):
    """Sets a submission up and runs it, without tests; the host's interpreter has the packages HOST_ONLY."""
    base, name = Path(base_python()), f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = tmp_path / "host/lib" / name
    (tmp_path / "host/bin").mkdir(parents=True)
    shutil.copy(base, tmp_path / "host/bin" / name)
    library.mkdir(parents=True)
    for path in Path(os.__file__).parent.iterdir():
        if path.name != "site-packages":
            (library / path.name).symlink_to(path)
    write_files(library / "site-packages", HOST_ONLY)
    monkeypatch.setattr(sys, "_base_executable", str(tmp_path / "host/bin" / name))

    def run_submission(files, environment):
        spec = environment_spec({"commands": {"command": "python"}, **environment}, sandbox="none")
        sandbox = sandbox_for(spec, cache)
        with Session.open(sandbox, make_submission(files)) as session:
            workspace = tmp_path / "workspace"
            layer = session.subject.entry / "layer" if session.subject.has_workspace else session.submission
            shutil.copytree(layer, workspace)
            argv = ["env", *spec.entry("main.py")]  # finds it through the PATH of the submission
            return run(argv, env=session.environment({}), log=tmp_path / "log", timeout=60, cwd=workspace)

    return run_submission


HOST_ONLY = {
    "hostonly.py": "__version__ = '1.16.0'\n",
    "hostonly-1.16.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hostonly\nVersion: 1.16.0\n",
    "hostonly-1.16.0.dist-info/INSTALLER": "uv\n",
    "hostonly-1.16.0.dist-info/RECORD": "hostonly.py,,\n",
    "six.py": "__version__ = 'that of the host'\n",
    "six-1.16.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: six\nVersion: 1.16.0\n",
    "six-1.16.0.dist-info/INSTALLER": "uv\n",
    "six-1.16.0.dist-info/RECORD": "six.py,,\n",
}
INSTALL = {"setup": {"commands": ["uv pip install -r requirements.txt"]}}


@pytest.mark.parametrize(
    "environment",
    [
        INSTALL,
        {},
        {"setup": {"commands": ["python -c 'import six' || uv pip install -r requirements.txt"]}},
        {"commands": {"command": "uv run"}},
        {**INSTALL, "commands": {"command": "uv run"}},
    ],
    ids=["set-up command", "requirements", "python in set-up", "uv run", "uv run after a command"],
)
def test_a_package_of_the_host_does_not_count_as_installed(run_on_host, environment):
    done = run_on_host({"requirements.txt": "six==1.16.0\n", "main.py": PRINTS_VERSION}, environment)
    assert done.exit_code == 0, done.output
    assert "1.16.0\n" in done.output


@pytest.mark.parametrize("command", ["python", "python3", "uv run"])
def test_a_package_that_only_the_host_has_cannot_be_imported(run_on_host, command):
    done = run_on_host({"main.py": "import hostonly\n"}, {"commands": {"command": command}})
    assert "No module named 'hostonly'" in done.output
