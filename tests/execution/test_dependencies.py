"""Dependencies of every package manager, installed for real."""

from __future__ import annotations

import json

import pytest

from slop_code.execution.dependencies.dependency_warnings import dependency_warnings
from slop_code.execution.dependencies.find_dependencies import python_dependencies
from slop_code.execution.dependencies.inline_metadata import script_metadata
from slop_code.execution.dependencies.poetry_project import pep440_specifier, poetry_project_requirements
from slop_code.execution.installation.setup import python_steps
from slop_code.execution.process import run
from slop_code.execution.sandbox import sandbox_for
from slop_code.execution.session import Session
from tests.marks import in_long

WHEEL = "sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"
SDIST = "sha256:1e61c37477a1626458e36f7b1d82aa5c9b094fa4802892072e49de9c44c4c926"
PROJECT = '[project]\nname = "own"\nversion = "1"\nrequires-python = ">=3.8"\n'
ANY_SIX = f'{PROJECT}dependencies = ["six"]\n'
FILES = f"""\
files = [
    {{file = "six-1.16.0-py2.py3-none-any.whl", hash = "{WHEEL}"}},
    {{file = "six-1.16.0.tar.gz", hash = "{SDIST}"}},
]
"""
POETRY = """\
[tool.poetry]
name = "own"
version = "1"
description = ""
authors = []
package-mode = false

[tool.poetry.dependencies]
python = ">=3.8"
six = "1.16.0"

[tool.poetry.group.dev.dependencies]
no-such-package-by-far = "*"

[build-system]
requires = ["poetry-core"]
build-backend = "poetry.core.masonry.api"
"""
POETRY_2 = """\
[project]
name = "own"
version = "1"
requires-python = ">=3.8"
dynamic = ["dependencies"]

[tool.poetry]
package-mode = false

[tool.poetry.dependencies]
six = [{version = "1.16.0", python = "^3.9"}, {version = "1.15.0", python = "<3.9 || >=4"}]

[build-system]
requires = ["poetry-core"]
build-backend = "poetry.core.masonry.api"
"""
POETRY_LOCK = f"""\
[[package]]
name = "six"
version = "1.16.0"
description = ""
optional = false
python-versions = ">=2.7"
groups = ["main"]
markers = "python_version >= \\"3.0\\""
{FILES}
[[package]]
name = "no-such-package-by-far"
version = "1.0"
optional = false
python-versions = "*"
groups = ["dev"]
files = []

[metadata]
lock-version = "2.1"
python-versions = ">=3.8"
content-hash = "00"
"""
TWO_VERSIONS = "".join(f'[[package]]\nname = "six"\nversion = "{version}"\n' for version in ("1.16.0", "1.15.0"))
PDM_LOCK = f"""\
[metadata]
groups = ["default", "dev"]
strategy = ["inherit_metadata"]
lock_version = "4.5.0"

[[package]]
name = "six"
version = "1.16.0"
requires_python = ">=2.7"
summary = ""
groups = ["default"]
{FILES}
[[package]]
name = "no-such-package-by-far"
version = "1.0"
groups = ["dev"]
files = []
"""
PYLOCK = f"""\
lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.8"

[[packages]]
name = "six"
version = "1.16.0"
marker = "python_version >= '3.8'"
sdist = {{ url = "https://index.example/six-1.16.0.tar.gz", hashes = {{ sha256 = "{SDIST[7:]}" }} }}
wheels = [
    {{ url = "https://index.example/six-1.16.0-py2.py3-none-any.whl", hashes = {{ sha256 = "{WHEEL[7:]}" }} }},
]
"""
SIX = f"""\
[[package]]
name = "six"
version = "1.16.0"
source = {{ registry = "https://index.example/simple" }}
sdist = {{ url = "https://index.example/six-1.16.0.tar.gz", hash = "{SDIST}", size = 34041 }}
wheels = [
    {{ url = "https://index.example/six-1.16.0-py2.py3-none-any.whl", hash = "{WHEEL}", size = 11053 }},
]
"""
UV_LOCK = f"""\
version = 1
revision = 3
requires-python = ">=3.8"

[[package]]
name = "own"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "six" }}]

[package.metadata]
requires-dist = [{{ name = "six" }}]

{SIX}"""
STALE_UV_LOCK = UV_LOCK.replace('[{ name = "six" }]', "[]")
SETUP_PY = (
    'from setuptools import setup\nsetup(name="own", version="1", py_modules=[], install_requires=["six==1.16.0"])\n'
)
SETUP_CFG = "[metadata]\nname = own\n[options]\ninstall_requires =\n    six == 1.16.0\n    # nothing else\n"
HATCH = f"""\
{PROJECT}dynamic = ["dependencies"]
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
bypass-selection = true
[tool.hatch.metadata.hooks.custom]
"""
HATCH_HOOK = """\
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Hook(MetadataHookInterface):
    def update(self, metadata):
        metadata["dependencies"] = ["six==1.16.0"]
"""
SCRIPT = '# /// script\n# requires-python = ">=3.8"\n# dependencies = ["six==1.16.0"]\n# ///\n'
MAIN = "import six\nprint(six.__version__)\n"
MANAGERS = {
    "requirements": ({"requirements.txt": f"six==1.16.0 --hash={WHEEL}\n"}, "requirements.txt", True),
    "project": ({"pyproject.toml": f'{PROJECT}dependencies = ["six==1.16.0"]\n'}, "pyproject.toml", True),
    "project without a name": (
        {"pyproject.toml": '[project]\ndependencies = ["six==1.16.0"]\n'},
        "pyproject.toml",
        True,
    ),
    "uv": ({"pyproject.toml": ANY_SIX, "uv.lock": UV_LOCK}, "uv.lock", True),
    "stale uv.lock": ({"pyproject.toml": ANY_SIX, "uv.lock": STALE_UV_LOCK}, "pyproject.toml", True),
    "poetry": ({"pyproject.toml": POETRY}, "pyproject.toml", True),
    "poetry 2": ({"pyproject.toml": POETRY_2}, "pyproject.toml", True),
    "poetry.lock": ({"pyproject.toml": POETRY, "poetry.lock": POETRY_LOCK}, "poetry.lock", True),
    "poetry.lock with two versions": (
        {"pyproject.toml": ANY_SIX, "poetry.lock": TWO_VERSIONS},
        "pyproject.toml",
        True,
    ),
    "pdm": ({"pyproject.toml": ANY_SIX, "pdm.lock": PDM_LOCK}, "pdm.lock", True),
    "pylock": ({"pylock.toml": PYLOCK}, "pylock.toml", True),
    "hatch": ({"pyproject.toml": HATCH, "hatch_build.py": HATCH_HOOK}, "pyproject.toml", False),
    "setup.py": ({"setup.py": SETUP_PY}, "setup.py", False),
    "setup.cfg": ({"setup.cfg": SETUP_CFG}, "setup.cfg", True),
    "script": ({"main.py": f"{SCRIPT}{MAIN}"}, "main.py", True),
}


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("*", ""),
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("1.2.*", "==1.2.*"),
        ("1.2", "==1.2"),
        (">=1.2,<2.0", ">=1.2,<2.0"),
        ("^1.0 || ^2.0", None),
        ("latest", None),
        (f"^{'1' * 5000}", None),
        ("-e .", None),
    ],
)
def test_constraints_of_poetry_become_specifiers(constraint, expected):
    assert pep440_specifier(constraint) == expected


@pytest.mark.parametrize(
    ("dependencies", "expected"),
    [
        ({"python": "^3.8"}, ""),
        ({"six": "^1.16", "attrs": {"version": "*", "optional": True}}, "six>=1.16,<2\n"),
        ({"x": {"version": "1", "extras": ["a", "b"], "markers": "os_name == 'nt'"}}, "x[a,b]==1 ; os_name == 'nt'\n"),
        ({"x": {"version": "1", "python": "^3.8"}}, "x==1 ; python_version >= '3.8' and python_version < '4'\n"),
        (
            {"x": {"version": "1", "python": "3.9 || ~3.10.2"}},
            "x==1 ; python_version == '3.9' or python_full_version >= '3.10.2' and python_version < '3.11'\n",
        ),
        (
            {"x": {"version": "1", "python": ">3.8", "markers": "os_name == 'nt'", "platform": "win32"}},
            "x==1 ; (os_name == 'nt') and (python_version > '3.8') and (sys_platform == 'win32')\n",
        ),
        ({"x": {"version": "*", "python": "*", "source": "other", "allow-prereleases": True}}, "x\n"),
        (
            {"x": [{"version": "1", "python": "<3.9"}, {"version": "2", "optional": True}, "^3"]},
            "x==1 ; python_version < '3.9'\nx>=3,<4\n",
        ),
        ({"x": []}, ""),
        ({"x": {"path": "../x", "develop": True}}, "x @ ../x\n"),
        ({"x": {"path": "a b"}}, None),
        (
            {"x": {"git": "https://x.example/x", "tag": "v1", "subdirectory": "y"}},
            "x @ git+https://x.example/x@v1#subdirectory=y\n",
        ),
        ({"x": {"url": "https://x.example/x.zip", "extras": ["a"]}}, "x[a] @ https://x.example/x.zip\n"),
        ({"x": {"version": "1", "python": "latest"}}, None),
        ({"x": {"version": "1", "python": "3"}}, None),
        ({"x": {"version": "1", "platform": "a' or os_name == 'nt"}}, None),
        ({"x": {"version": "1", "unknown": 1}}, None),
        ({"x": {"version": "1", "markers": "os_name\n-e ."}}, None),
        ({"x": [["1"]]}, None),
        ({"x": 1}, None),
    ],
)
def test_dependencies_of_poetry_become_requirements(dependencies, expected):
    assert poetry_project_requirements(dependencies) == expected


@pytest.mark.parametrize(
    ("project", "backend", "expected"),
    [
        (None, None, "six\n"),
        ("version = '1'", None, "six\n"),
        ("dynamic = ['dependencies']", "poetry.core.masonry.api", "six\n"),
        ("dynamic = ['dependencies']", "hatchling.build", None),
        ("dependencies = ['attrs']", "poetry.core.masonry.api", "attrs\n"),
        ("dependencies = []", None, ""),
    ],
)
def test_dependencies_of_poetry_count_where_the_project_states_none(make_submission, project, backend, expected):
    own = "" if project is None else f"[project]\nname = 'own'\n{project}\n"
    build = "" if backend is None else f"[build-system]\nrequires = []\nbuild-backend = '{backend}'\n"
    text = f"{own}{build}[tool.poetry.dependencies]\nsix = '*'\n"
    found = python_dependencies(make_submission({"pyproject.toml": text}))
    assert (found.source, found.text) == ("pyproject.toml", expected)


@pytest.mark.parametrize("manager", MANAGERS)
def test_the_file_that_names_the_dependencies_is_found(make_submission, manager):
    files, source, plain = MANAGERS[manager]
    found = python_dependencies(make_submission(files), "main.py")
    assert (found.source, found.plain) == (source, plain)


@pytest.mark.parametrize("manager", MANAGERS)
def test_dependencies_of_every_package_manager_are_installed(
    cache, environment_spec, make_submission, tmp_path, manager
):
    submission = make_submission({"main.py": MAIN, **MANAGERS[manager][0]})
    sandbox = sandbox_for(environment_spec(sandbox="none"), cache)
    with Session.open(sandbox, submission, entry_file="main.py") as session:
        argv = ["env", "python", str(submission / "main.py")]
        done = run(argv, env=session.environment({}), log=tmp_path / "log", timeout=60)
    assert (done.output, done.exit_code) == ("1.16.0\n", 0)


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ("", {}),
        ("# script\n", {}),
        ("#!/usr/bin/env python\n# /// script\n# a = 1\n#\n# b = 2\n# ///\n# more\n", {"a": 1, "b": 2}),
        ("\ufeff# /// script\r\n# a = 1\r\n# ///\r\n", {"a": 1}),
        ('# /// script\n# a = """\n# ///\n# """\n# ///\n', {"a": "///\n"}),
        ("text = 'a\u2028# /// script\u2028# a = 1\u2028# ///\u2028'\n", {}),
        ("# /// other\n# a = 1\n# ///\n", {}),
        ("# /// script\n# a = 1\nimport six\n# ///\n", None),
        ("# /// script\n# a = [\n# ///\n", None),
        ("# /// script\n# ///\nimport six\n# /// script\n# ///\n", None),
        ("# /// script\n" * 50_000, None),
    ],
)
def test_metadata_of_scripts_is_parsed(text, metadata):
    assert script_metadata(text) == metadata


@pytest.mark.parametrize(
    ("dependencies", "plain"),
    [('["six"]', True), ('["own @ ./own"]', False), ('["six\\n-e ."]', False), ("1", False), ("[1]", False)],
)
def test_a_script_with_other_than_plain_dependencies_is_read_by_uv(make_submission, dependencies, plain):
    script = f"# /// script\n# dependencies = {dependencies}\n# ///\n"
    found = python_dependencies(make_submission({"main.py": script}), "main.py")
    assert (found.source, found.plain, found.requirements) == ("main.py", plain, "six\n" if plain else None)


@pytest.mark.parametrize(
    ("files", "warnings"),
    [
        ({}, []),
        ({"requirements.txt": "six==1.16.0\n"}, []),
        ({"requirements.txt": "\n"}, []),
        (
            {"requirements.txt": "attrs\n"},
            ["the script metadata in main.py of the submission is ignored: dependencies"],
        ),
        ({"requirements.txt": "-e .\n"}, ["the script metadata in main.py of the submission is ignored: dependencies"]),
        ({"pyproject.toml": ANY_SIX, "uv.lock": UV_LOCK}, []),
        (
            {"poetry.lock": POETRY_LOCK.replace("1.16.0", "1.15.0")},
            ["the script metadata in main.py of the submission"],
        ),
        ({"main.py": "# /// script\n"}, ["the script metadata in main.py of the submission cannot be parsed"]),
        (
            {"main.py": SCRIPT.replace("# ///\n", "# [tool.uv.sources]\n# six = {path = './six'}\n# ///\n")},
            ["[tool] in the script metadata in main.py of the submission is ignored"],
        ),
        ({"main.py": "# /// script\n# dependencies = []\n# ///\n", "requirements.txt": "-e .\n"}, []),
    ],
)
def test_metadata_of_a_script_that_does_not_count_is_a_warning(make_submission, files, warnings):
    found = dependency_warnings(make_submission({"main.py": SCRIPT, **files}), "main.py")
    assert [warning[: len(expected)] for warning, expected in zip(found, warnings, strict=True)] == warnings


@pytest.mark.parametrize(
    ("manager", "sandbox"),
    [
        ("uv", "bubblewrap"),
        ("poetry.lock", "docker"),
        *in_long(("poetry.lock", "bubblewrap"), ("uv", "docker"), ("stale uv.lock", "docker")),
    ],
)
def test_locks_are_installed_in_boxes(evaluate, make_problem, make_submission, manager, sandbox):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): assert run().stdout == '1.16.0\\n'\n"})
    submission = make_submission({"main.py": MAIN, **MANAGERS[manager][0]})
    results = evaluate(problem, submission, sandbox=sandbox)
    assert [test.status for test in results.tests] == ["passed"], (
        results.infrastructure_failure_reason or results.tests[0].failure_message
    )


@pytest.mark.parametrize(
    ("files", "source"),
    [
        ({"setup.py": "print(input())\n"}, None),
        ({"setup.cfg": "[flake8]\nmax-line-length = 100\n"}, None),
        ({"setup.cfg": "[options\n"}, None),
        ({"uv.lock": UV_LOCK}, None),
        ({"uv.lock": "[", "pyproject.toml": ANY_SIX}, "pyproject.toml"),
        ({"poetry.lock": "package = 1\n", "pyproject.toml": POETRY}, "pyproject.toml"),
        (
            {
                "poetry.lock": POETRY_LOCK.replace("groups", '[package.source]\ntype = "git"\nurl = "x"\n#', 1),
                "pyproject.toml": POETRY,
            },
            "pyproject.toml",
        ),
        ({"pdm.lock": PDM_LOCK.replace("groups", 'path = "./own"\ngroups')}, None),
        ({"pdm.lock": PDM_LOCK.replace('name = "six"', 'name = "-e ."')}, None),
        ({"pdm.lock": PDM_LOCK.replace('version = "1.16.0"', 'version = "1\\n-e ."')}, None),
    ],
)
def test_files_that_name_no_dependencies(make_submission, files, source):
    assert python_dependencies(make_submission(files)).source == source


@pytest.mark.parametrize(
    ("files", "source", "text"),
    [
        ({"requirements.txt": "", "pyproject.toml": ANY_SIX}, "pyproject.toml", "six\n"),
        ({"requirements.txt": "# six\n\n", "setup.cfg": SETUP_CFG}, "setup.cfg", "six == 1.16.0"),
        ({"requirements.txt": "", "setup.py": SETUP_PY}, "setup.py", None),
        ({"requirements.txt": "", "pyproject.toml": f"{PROJECT}dependencies = []\n"}, "requirements.txt", ""),
        ({"requirements.txt": "", "pyproject.toml": f'{PROJECT}dynamic = ["readme"]\n'}, "requirements.txt", ""),
        ({"requirements.txt": "--pre\n", "pyproject.toml": ANY_SIX}, "requirements.txt", "--pre\n"),
    ],
)
def test_a_file_that_names_nothing_does_not_shadow_another(make_submission, files, source, text):
    found = python_dependencies(make_submission(files))
    assert (found.source, found.text) == (source, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("file: one.txt", "six # pinned\nattrs"),
        ("file: one.txt, deep/two.txt", "six # pinned\nattrs\nidna"),
        ("\n    file: deep/two.txt", "idna"),
        ("file: none.txt", None),
        ("file: one.txt, none.txt", None),
        ("file: ../outside.txt", None),
        ("file: link.txt", None),
        ("file: one.txt\0", None),
        (f"file: {'a' * 300}", None),
        pytest.param(f"file: {'a/' * 100_000}", None, marks=pytest.mark.e2e, id="long path"),
        ("file: long.txt", None),
        ("file: ", None),
        (f"file: {','.join(['one.txt'] * 21)}", None),
    ],
)
def test_files_that_a_setup_cfg_names_are_read_inside_the_submission_alone(make_submission, value, text):
    files = {"one.txt": "six # pinned\nattrs\n", "deep/two.txt": "idna"}
    submission = make_submission({**files, "setup.cfg": f"[options]\ninstall_requires = {value}\n"})
    (submission.parent / "outside.txt").write_text("six")
    (submission / "link.txt").symlink_to("../outside.txt")
    (submission / "long.txt").symlink_to("a" * 300)
    assert python_dependencies(submission).text == text
    assert len(dependency_warnings(submission)) == (text is None)


@pytest.mark.parametrize("name", ["a" * 300, "a\0", "\ud800"])
def test_an_entry_file_that_cannot_exist_names_no_dependencies(make_submission, name):
    submission = make_submission({})
    assert python_dependencies(submission, name).source is None
    assert dependency_warnings(submission, name) == []


@pytest.mark.parametrize(
    ("marker", "plain"),
    [
        ("(python_full_version < '3.11' and sys_platform == 'linux') or extra == \"x-1\"", True),
        ("sys_platform not in 'a b'", False),
        ("sys_platform != 'Failed to fetch'", False),
        ("sys_platform != 'a # b'", False),
        ("sys_platform != 'a\nb'", False),
    ],
)
def test_a_lock_with_unusual_markers_is_not_plain(make_submission, marker, plain):
    """uv copies them into the requirements that it exports, and into its messages."""
    lock = UV_LOCK.replace('{ name = "six" }', f'{{ name = "six", marker = {json.dumps(marker)} }}', 1)
    found = python_dependencies(make_submission({"pyproject.toml": ANY_SIX, "uv.lock": lock}))
    assert (found.source, found.plain) == ("uv.lock", plain)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("", True),
        ('directory = { path = "./six" }', False),
        ('vcs = { type = "git", url = "https://x.example/six" }', False),
        ("marker = \"'dev' in dependency_groups\"", False),
        ("marker = \"'web' in extras\"", False),
    ],
)
def test_a_pylock_that_is_not_made_of_requirements_is_read_by_uv(make_submission, line, plain):
    text = PYLOCK.replace("marker = \"python_version >= '3.8'\"", line)
    found = python_dependencies(make_submission({"pylock.toml": text}))
    assert (found.source, found.plain) == ("pylock.toml", plain)
    assert found.requirements == (f"six==1.16.0 --hash={SDIST} --hash={WHEEL}\n" if plain else None)


@pytest.mark.parametrize(
    ("lock", "text", "dependency", "missing"),
    [
        ("uv.lock", UV_LOCK, "six", []),
        ("uv.lock", UV_LOCK, "Six >=1.16, <2 ; os_name != 'nt'", []),
        ("uv.lock", UV_LOCK, "six (~=1.16)", []),
        ("uv.lock", UV_LOCK, "six>=1.16rc1", []),
        ("uv.lock", UV_LOCK, "six @ https://index.example/six-1.16.0.tar.gz", []),
        ("uv.lock", UV_LOCK, "six>=1.17", ["six"]),
        ("uv.lock", UV_LOCK, "six[fast]", ["six"]),
        ("uv.lock", UV_LOCK.replace('{ name = "six" }', '{ name = "six", extra = ["fast"] }', 1), "six[Fast]", []),
        ("uv.lock", UV_LOCK, "attrs", ["attrs"]),
        ("uv.lock", STALE_UV_LOCK, "six", ["six"]),
        ("uv.lock", UV_LOCK.replace('name = "own"', 'name = "other"'), "six", ["six"]),
        ("uv.lock", "package = [1, {name = 1, metadata = 1}]\n", "six", ["six"]),
        ("poetry.lock", POETRY_LOCK, "six[fast]<2", []),
        ("poetry.lock", POETRY_LOCK, "six>=2", ["six"]),
        ("poetry.lock", POETRY_LOCK, "no-such_Package.by.far", ["no-such_Package.by.far"]),
        ("poetry.lock", POETRY_LOCK, "tomli>=2 ; python_version < '3.11'", []),
        *(
            ("poetry.lock", POETRY_LOCK.replace("1.16.0", version), dependency, [])
            for version, dependency in [("1!1.0", "six>=2"), ("1.2.3.4", "six>1.2.3")]
        ),
        ("pdm.lock", PDM_LOCK, "six", []),
        ("pdm.lock", PDM_LOCK, "attrs", ["attrs"]),
        ("pylock.toml", PYLOCK, "six!=1.17.*", []),
        ("pylock.toml", PYLOCK, "attrs", ["attrs"]),
        ("pylock.toml", PYLOCK, "colorama; sys_platform == 'win32'", []),
        ("uv.lock", UV_LOCK, "colorama; sys_platform == 'win32'", ["colorama"]),
    ],
)
def test_a_lock_without_all_dependencies_of_the_project_is_stale(make_submission, lock, text, dependency, missing):
    project = f'{PROJECT}dependencies = ["{dependency}"]\n'
    submission = make_submission({lock: text, "pyproject.toml": project})
    found = python_dependencies(submission)
    assert (found.preferred_lock.missing if found.preferred_lock else []) == missing
    assert found.source == ("pyproject.toml" if missing else lock)
    expected = [f"{lock} of the submission lacks what pyproject.toml asks for ({missing[0]})"] if missing else []
    assert [warning.partition(", so")[0] for warning in dependency_warnings(submission)] == expected


def test_versions_of_a_stale_lock_are_preferred_where_uv_can_parse_them(make_submission):
    others = "".join(
        f'[[package]]\nname = "{name}"\nversion = "{version}"\n'
        for name, version in [("A.b", "2.0rc1.post2"), ("six", "1.15"), ("x", "1\\n-e ."), ("-e .", "1"), ("y", "one")]
    )
    submission = make_submission({"uv.lock": f"{STALE_UV_LOCK}\n{others}", "pyproject.toml": ANY_SIX})
    stale = python_dependencies(submission).preferred_lock
    assert stale
    assert stale.preferences == "own==1\nsix==1.16.0\nsix==1.15\na-b==2.0rc1.post2\n"


@pytest.mark.parametrize(("settings", "expected"), [("", [True, True]), ("[tool.uv]\n", [False, False])])
def test_sources_of_a_project_count_for_resolution_and_installation_alike(make_submission, settings, expected):
    submission = make_submission({"pyproject.toml": f"{ANY_SIX}{settings}", "uv.lock": STALE_UV_LOCK})
    steps = python_steps("python", python_dependencies(submission))[1:]
    assert ["--no-sources" in step.argv for step in steps] == expected


def test_a_lock_of_poetry_without_all_of_its_dependencies_is_stale(make_submission):
    files = {
        "pyproject.toml": f'{POETRY}\n[tool.poetry.dependencies.attrs]\nversion = "*"\n',
        "poetry.lock": POETRY_LOCK,
    }
    found = python_dependencies(make_submission(files))
    assert found.preferred_lock
    assert found.preferred_lock.missing == ["attrs"]
    assert (found.lines, found.preferred_lock.preferences) == (
        ("six==1.16.0", "attrs"),
        "six==1.16.0\nno-such-package-by-far==1.0\n",
    )


@pytest.mark.parametrize(
    ("markers", "source"),
    [
        (("python_version < '3'", "python_version >= '3'"), "poetry.lock"),
        (("", "python_version >= '3'"), "pyproject.toml"),
        (("", ""), "pyproject.toml"),
    ],
)
def test_versions_of_a_lock_with_two_of_a_package_are_preferred_unless_both_have_markers(
    make_submission, markers, source
):
    package = '[[package]]\nname = "six"\nversion = "1.{}.0"\nmarkers = "{}"\n'
    lock = "".join(package.format(number, marker) for number, marker in zip((15, 16), markers, strict=True))
    submission = make_submission({"pyproject.toml": ANY_SIX, "poetry.lock": lock})
    found, is_lock = python_dependencies(submission), source == "poetry.lock"
    both = ("six==1.15.0 ; python_version < '3'", "six==1.16.0 ; python_version >= '3'")
    assert (found.source, found.lines) == (source, both if is_lock else ("six",))
    assert (found.preferred_lock and found.preferred_lock.preferences) == (
        None if is_lock else "six==1.15.0\nsix==1.16.0\n"
    )
    warnings = [warning.partition(";")[0] for warning in dependency_warnings(submission)]
    assert warnings == ([] if is_lock else ["poetry.lock of the submission cannot be installed as it is"])


@pytest.mark.e2e
def test_a_deep_lock_is_read(make_submission):
    lock = f"{UV_LOCK}\n[{'.'.join('a' * 3000)}]\n"
    assert python_dependencies(make_submission({"pyproject.toml": ANY_SIX, "uv.lock": lock})).plain


@pytest.mark.parametrize("source", ['directory = "six"', 'editable = "."', 'virtual = "."'])
def test_a_lock_with_files_of_the_submission_is_not_plain(make_submission, source):
    own = UV_LOCK.replace('{ registry = "https://index.example/simple" }', f"{{ {source} }}")
    found = python_dependencies(make_submission({"pyproject.toml": ANY_SIX, "uv.lock": own}))
    assert (found.source, found.plain) == ("uv.lock", False)


def test_a_lock_with_a_second_registry_is_not_plain_and_a_warning(make_submission):
    other = [package.replace('"six"', f'"six-{index}"') for index, package in enumerate([SIX, SIX])]
    lock = "\n".join([UV_LOCK, *other, SIX.replace("index.example/simple", "other.example/whl")])
    submission = make_submission({"pyproject.toml": ANY_SIX, "uv.lock": lock})
    assert not python_dependencies(submission).plain
    (warning,) = dependency_warnings(submission)
    assert warning.startswith("uv.lock of the submission has packages of 'https://other.example/whl'")


@pytest.mark.parametrize(
    ("files", "warnings"),
    [
        ({}, []),
        ({"Pipfile": ""}, ["Pipfile of the submission is not supported"]),
        ({"environment.yml": "", "requirements.txt": ""}, ["environment.yml of the submission is not supported"]),
        (
            {"conda.yml": "", "Pipfile.lock": ""},
            ["Pipfile.lock of the submission is not", "conda.yml of the submission"],
        ),
        ({"pyproject.toml": "[project"}, ["pyproject.toml of the submission cannot be parsed"]),
        (
            {"requirements.txt": "attrs", "uv.lock": UV_LOCK, "pyproject.toml": ANY_SIX},
            [
                "uv.lock of the submission is ignored: dependencies come from requirements.txt",
                "pyproject.toml of the submission is ignored: dependencies come from requirements.txt",
            ],
        ),
        ({"requirements.txt": "# none\n", "uv.lock": UV_LOCK, "pyproject.toml": ANY_SIX}, []),
        ({"requirements.txt": "attrs\nsix\n", "pyproject.toml": ANY_SIX}, []),
        ({"requirements.txt": "-e .\n", "pyproject.toml": ANY_SIX}, []),
        (
            {"pyproject.toml": ANY_SIX, "setup.py": SETUP_PY, "setup.cfg": SETUP_CFG},
            [
                "setup.py of the submission is ignored: dependencies come from pyproject.toml",
                "setup.cfg of the submission is ignored: dependencies come from pyproject.toml",
            ],
        ),
        (
            {"pyproject.toml": POETRY.replace('"1.16.0"', '"^1.0 || ^2.0"')},
            ["[tool.poetry.dependencies] of the submission has what only Poetry can read"],
        ),
        ({"pyproject.toml": POETRY.replace('"1.16.0"', '"^1 || ^2"').replace("package-mode = false", "")}, []),
        ({"pyproject.toml": POETRY.replace('"1.16.0"', '"^1 || ^2"'), "poetry.lock": POETRY_LOCK}, []),
        ({"setup.cfg": "[options]\ninstall_requires = file: none.txt\n"}, ["install_requires in setup.cfg of the"]),
        ({"setup.cfg": "[options]\na = 1\na = 2\n"}, ["setup.cfg of the submission cannot be parsed"]),
        ({"uv.lock": UV_LOCK}, ["uv.lock of the submission is ignored: it cannot be used"]),
        ({"pylock.toml": "packages = 1\n"}, ["pylock.toml of the submission is ignored: it cannot be used"]),
        (MANAGERS["poetry.lock"][0], []),
    ],
)
def test_files_that_do_not_count_are_warnings(make_submission, files, warnings):
    found = dependency_warnings(make_submission(files))
    assert [warning[: len(expected)] for warning, expected in zip(found, warnings, strict=True)] == warnings


def test_a_script_runs_with_its_dependencies_and_a_pipfile_is_a_warning(evaluate, make_problem, make_submission):
    problem = make_problem({"test_checkpoint_1.py": "def test_it(run): assert run().stdout == '1.16.0\\n'\n"})
    files = {"main.py": f"{SCRIPT}{MAIN}", "Pipfile": "[packages]\nsix = '*'\n"}
    results = evaluate(problem, make_submission(files), sandbox="none")
    assert any(warning.startswith("Pipfile of the submission is not supported") for warning in results.warnings)
    assert results.passed["all-cases"]


def test_a_script_that_uv_runs_is_a_warning(evaluate, make_problem, make_submission):
    """uv makes an environment of its own for it, and cannot while the tests run."""
    problem = make_problem({"test_checkpoint_1.py": "def test_it(): pass\n"})
    environment = {"commands": {"command": "uv run"}}
    results = evaluate(problem, make_submission({"main.py": SCRIPT}), sandbox="none", environment=environment)
    assert any(warning.startswith("`uv run` does not use what was installed") for warning in results.warnings)
