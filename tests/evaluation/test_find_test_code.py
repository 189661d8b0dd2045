"""Files of a tests folder that decide a verdict."""

from __future__ import annotations

from textwrap import dedent

import pytest

from slop_code.evaluation.test_code.find_test_code import find_test_code
from slop_code.evaluation.test_code.python_imports import Imports, read_imports


def imports(text: str) -> Imports:
    return read_imports(dedent(text))


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("import a, b.c as d", {(0, "a"), (0, "b.c")}),
        ("from a.b import c", {(0, "a.b"), (0, "a.b.c")}),
        ("from . import a", {(1, ""), (1, "a")}),
        ("from ..a import b", {(2, "a"), (2, "a.b")}),
        ("def test():\n    import a", {(0, "a")}),
        ("def test():\n    async def inner():\n        from a import *", {(0, "a"), (0, "a.*")}),
        ("if False:\n    import a", {(0, "a")}),
        ("pytest_plugins = 'a.b'", {(0, "a.b")}),
        ("pytest_plugins = ['a', 'b']", {(0, "a"), (0, "b")}),
        ("import importlib\nimportlib.import_module('a.b')", {(0, "importlib"), (0, "a.b")}),
        ("__import__('a')", {(0, "a")}),
        ("import pytest\npytest.importorskip('a')", {(0, "pytest"), (0, "a")}),
        ("import importlib\nimportlib.import_module('.a', __package__)", {(0, "importlib"), (1, "a"), (0, "a")}),
    ],
)
def test_modules_that_a_file_names(text, modules):
    found = imports(text)
    assert (found.modules, found.computed) == (modules, False)


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module as load\nload(name)",
        "from importlib import import_module\nfor loader in [import_module]:\n    loader('a')",
        "import importlib\ngetattr(importlib, 'import_module')(name)",
        "from importlib import *",
        "__import__(name)",
        "exec(open(path).read())",
        "import builtins\nbuiltins.exec(open(path).read())",
        "eval(open(path).read())",
        "code = compile(open(path).read(), path, 'exec')",
        "import runpy\nrunpy.run_path(path)",
        "import runpy\nrunpy.run_path(f'{name}.py')",
        "from importlib.util import spec_from_file_location\nspec_from_file_location('a', path)",
        "path = a / 'b.py'\npath = c\nimport runpy\nrunpy.run_path(path)",
        "pytest_plugins = [name]",
        "pytest_plugins = names()",
    ],
)
def test_a_computed_name_cannot_be_told(text):
    assert imports(text).computed


@pytest.mark.parametrize(
    "text",
    [
        "import re\nre.compile(pattern)",
        "class Model:\n    def exec(self): ...\nModel().exec(1)",
        "import_path = 1\nprint(import_path)",
        "import ast\nast.literal_eval(text)",
        "frame.eval('a + b')",
    ],
)
def test_names_that_load_nothing(text):
    assert not imports(text).computed


@pytest.mark.parametrize(
    "text",
    [
        "import runpy\nrunpy.run_path('a/b.py')",
        "import runpy\nrunpy.run_path(str(HERE / 'a' / 'b.py'))",
        "from importlib.util import spec_from_file_location as s\nPATH = os.path.join(HERE, 'b.py')\ns('x', PATH)",
        "import sys, subprocess\nsubprocess.run([sys.executable, str(HERE / 'b.py'), out])",
        "import sys\nORACLE = HERE / 'b.py'\nargv = [str(sys.executable), '-I', str(ORACLE)]",
        "import sys\nwords = (sys.executable, f'{HERE}/b.py')",
        "import subprocess\nsubprocess.run(['python3', HERE / 'b.py'])",
        "import subprocess\nsubprocess.run(['/usr/bin/python3.12', '-I', str(HERE / 'b.py')])",
        "import subprocess\nsubprocess.run('python3 a/b.py --all', shell=True)",
        "import subprocess\nCOMMAND = 'python b.py'\nsubprocess.run(COMMAND.split())",
        "import os, sys\nos.system(f'{sys.executable} {HERE}/b.py --all')",
        "import os, sys\nORACLE = HERE / 'b.py'\nos.system(f'{sys.executable} {ORACLE}')",
        "import sys\nCOMMAND = f'{sys.executable} b.py'",
        "import os, sys\nos.system(sys.executable + ' b.py')",
        "import os, sys\nos.system('{} b.py'.format(sys.executable))",
        "import sys\nPYTHON = sys.executable\nargv = [PYTHON, HERE / 'b.py']",
        "import shutil\nargv = [shutil.which('python3'), HERE / 'b.py']",
    ],
)
def test_files_that_are_loaded_by_path(text):
    found = imports(text)
    assert (found.files, found.computed) == ({"b.py"}, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_it(oracle):\n    subprocess.run([sys.executable, str(oracle)])", True),
        ("PYTHON = [sys.executable]\ndef test_it(oracle):\n    subprocess.run(PYTHON + oracle)", True),
        ("subprocess.run([sys.executable, '-c', 'print(1)'])", False),
        ("subprocess.run([sys.executable, '-m', 'oracle'])", False),
        ("subprocess.run([sys.executable, HERE / 'oracle.py'])", False),
    ],
)
def test_the_tests_own_python_runs_a_file_of_a_computed_name(text, expected):
    assert imports(f"import subprocess, sys\n{text}").runs_computed is expected


@pytest.mark.parametrize(
    "text",
    [
        "parser.addoption('--entrypoint', default='python main.py')",
        "def test_it(run):\n    run('python', 'main.py')",
        "def test_it():\n    'python main.py works'",
        "argv = ['lint', 'python', DATA / 'main.py']",
    ],
)
def test_commands_that_the_tests_do_not_start(text):
    assert imports(text) == imports("")


@pytest.mark.parametrize(
    ("text", "changes", "later"),
    [
        ("import os", False, False),
        ("import sys\nsys.path.insert(0, 'x')", True, False),
        ("def test(monkeypatch):\n    monkeypatch.syspath_prepend('x')", True, True),
        ("def test():\n    import sys\n    sys.path.append('x')", True, True),
        ("from sys import path", True, False),
    ],
)
def test_changes_of_the_import_path(text, changes, later):
    found = imports(text)
    assert (found.changes_path, found.changes_path_later) == (changes, later)


FILES = {
    "pytest.ini": "[pytest]",
    "conftest.py": "import helpers",
    "test_checkpoint_1.py": "def test_a():\n    from package.inner import thing",
    "helpers.py": "from deeper import more",
    "deeper.py": "",
    "unused.py": "print('nobody imports this')",
    "package/__init__.py": "from . import beside",
    "package/beside.py": "x = 1",
    "package/inner.py": "",
    "package/data.py": "x = 2",
    "project/helpers.py": "print('an input of the same name')",
    "project/main.py": "import deeper",
    "project/test_main.py": "def test_main(): ...",
    "input.txt": "text",
}
CODE = {
    "pytest.ini", "conftest.py", "test_checkpoint_1.py", "helpers.py", "deeper.py", "package/__init__.py",
    "package/beside.py", "package/inner.py",
}  # fmt: skip
LOADED = ("conftest.py", "test_checkpoint_1.py", "helpers.py", "deeper.py")


@pytest.fixture
def code_of(tmp_path):
    def find(files=(), loaded=LOADED, roots=(), shown=()):
        for name, text in {**FILES, **dict(files)}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return find_test_code(tmp_path, loaded, roots, shown)

    return find


EVERY_PYTHON_FILE = {name for name in FILES if name.endswith(".py")} | {"pytest.ini"}


@pytest.mark.parametrize(
    ("files", "more"),
    [
        ({}, set()),
        ({"test_checkpoint_9.py": "import unused"}, {"test_checkpoint_9.py", "unused.py"}),
        ({"deeper.py": "import helpers"}, set()),
        ({"deeper.py": "from project import main"}, {"project/main.py"}),
        ({"deeper.py": "import project.main"}, {"project/main.py"}),
        ({"deeper.py": "from package import *"}, {"package/data.py"}),
        ({"package/inner.py": "from ..project import main"}, {"project/main.py"}),
        ({"package/inner.py": "from .. import unused"}, {"unused.py"}),
        ({"deeper.py": "def f():\n    import sys\n    sys.path.append('project')\n    import main"},
         {"project/helpers.py", "project/main.py"}),
        ({"copy.txt": FILES["helpers.py"]}, {"copy.txt"}),
        ({"empty.txt": ""}, set()),
        ({"deeper.py": "import runpy\ndef f():\n    runpy.run_path(x)"}, EVERY_PYTHON_FILE - CODE),
        ({"deeper.py": "import sys\ncommand = [sys.executable, find_oracle()]"}, {"unused.py"}),
        ({"deeper.py": "import sys\ncommand = [sys.executable, '-m', 'project.main']"}, {"project/main.py"}),
        ({"deeper.py": "this is no Python"}, EVERY_PYTHON_FILE - CODE),
    ],
)  # fmt: skip
def test_loaded_files_and_their_imports_are_test_code(code_of, files, more):
    assert code_of(files) == CODE | more


def test_files_that_were_loaded_in_another_way(code_of):
    assert code_of(loaded=(*LOADED, "project/main.py")) == CODE | {"project/main.py"}


def test_folders_of_the_import_path(code_of):
    assert code_of({"deeper.py": "def f():\n    import main"}) == CODE
    assert code_of({"deeper.py": "def f():\n    import main"}, roots=("project",)) > CODE | {"project/main.py"}


def test_what_every_submission_sees_is_no_test_code(code_of):
    computed = {"deeper.py": "import runpy\ndef f():\n    runpy.run_path(x)"}
    shown = {"project/main.py", "project/helpers.py", "project/test_main.py"}
    assert code_of(computed, shown=shown) == EVERY_PYTHON_FILE - shown
