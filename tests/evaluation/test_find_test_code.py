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
        ("def test_it(monkeypatch):\n    monkeypatch.setattr('a.b', 1)", {(0, "a.b")}),
        ("def test_it(monkeypatch):\n    monkeypatch.delattr('a.b')", {(0, "a.b")}),
        ("def test_it(monkeypatch):\n    monkeypatch.setattr(sys, 'argv', [])", set()),
        ("from unittest.mock import patch\n@patch('a.b')\ndef test_it(b): ...",
         {(0, "unittest.mock"), (0, "unittest.mock.patch"), (0, "a.b")}),
        ("def test_it(mocker):\n    mocker.patch.dict('a.b', {})", {(0, "a.b")}),
    ],
)  # fmt: skip
def test_modules_that_a_file_names(text, modules):
    result = imports(text)
    assert (result.modules, result.computed) == (modules, False)


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module as load\nload(name)",
        "from importlib import import_module\nfor loader in [import_module]:\n    loader('a')",
        "import importlib\ngetattr(importlib, 'import_module')(name)",
        "from importlib import *",
        "import importlib\nvars(importlib)['import_' + 'module'](name)",
        "import importlib.util as tools\ngetattr(tools, function)(name)",
        "import importlib\nimportlib.__dict__[function](name)",
        "def test_it(monkeypatch):\n    monkeypatch.setattr(f'{module}.answer', 1)",
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
    ("text", "pattern"),
    [
        ("import runpy\nrunpy.run_path('a/b.py')", "a/b.py"),
        ("import runpy\nrunpy.run_path(str(HERE / 'a' / 'b.py'))", "*/a/b.py"),
        ("import runpy\nDATA = HERE / 'a'\nrunpy.run_path(DATA.joinpath('b.py'))", "*/a/b.py"),
        ("import runpy\ndef test_it(tmp_path):\n    runpy.run_path(tmp_path / 'b.py')", "~/b.py"),
        ("from importlib.util import spec_from_file_location as s\nPATH = os.path.join(HERE, 'b.py')\ns('x', PATH)",
         "*/b.py"),
        ("subprocess.run([sys.executable, str(HERE / 'b.py'), out])", "*/b.py"),
        ("ORACLE = HERE / 'b.py'\nargv = [str(sys.executable), '-I', str(ORACLE)]", "*/b.py"),
        ("words = (sys.executable, f'{HERE}/a/b.py')", "*/a/b.py"),
        ("argv = [sys.executable, str(HERE) + '/a/b.py']", "*/a/b.py"),
        ("subprocess.run(['python3', HERE / 'b.py'])", "*/b.py"),
        ("subprocess.run(['/usr/bin/python3.12', '-I', str(HERE / 'b.py')])", "*/b.py"),
        ("subprocess.run('python3 a/b.py --all', shell=True)", "a/b.py"),
        ("subprocess.run('cd a && python b.py', shell=True)", "a/b.py"),
        ("subprocess.run(f\"bash -c 'cd {HERE}/a; python b.py'\", shell=True)", "*/a/b.py"),
        ("subprocess.run(['uv', 'run', 'a/b.py'])", "a/b.py"),
        ("subprocess.run('uv run --script a/b.py', shell=True)", "a/b.py"),
        ("subprocess.run('timeout 5 python b.py', shell=True, cwd=HERE / 'a')", "*/a/b.py"),
        ("subprocess.run('python b.py', shell=True, cwd=folder)", "*/b.py"),
        ("subprocess.run('cd a && python b.py', shell=True, cwd=HERE)", "*/a/b.py"),
        ("argv = [sys.executable, Path(__file__).with_name('b.py')]", "*/b.py"),
        ("from sys import executable as python\nargv = [python, HERE / 'b.py']", "*/b.py"),
        ("import sys as system\nargv = [system.executable, HERE / 'b.py']", "*/b.py"),
        ("def test_it(tmp_path):\n    subprocess.run('python b.py', shell=True, cwd=tmp_path)", "~/b.py"),
        ("COMMAND = 'python b.py'\nsubprocess.run(COMMAND.split())", "b.py"),
        ("os.system(f'{sys.executable} {HERE}/b.py --all')", "*/b.py"),
        ("ORACLE = HERE / 'b.py'\nos.system(f'{sys.executable} {ORACLE}')", "*/b.py"),
        ("COMMAND = f'{sys.executable} b.py'", "b.py"),
        ("os.system(sys.executable + ' b.py')", "b.py"),
        ("os.system('{} b.py'.format(sys.executable))", "b.py"),
        ("PYTHON = sys.executable\nargv = [PYTHON, HERE / 'b.py']", "*/b.py"),
        ("argv = [shutil.which('python3'), HERE / 'b.py']", "*/b.py"),
    ],
)  # fmt: skip
def test_files_that_are_loaded_by_path(text, pattern):
    result = imports(f"import os, shutil, subprocess, sys\n{text}")
    assert (result.files, result.computed) == ({pattern}, False)


def test_a_change_of_the_working_directory_counts_for_relative_paths():
    text = "import os, sys\nos.chdir(HERE / 'a')\nargv = [sys.executable, 'b.py']"
    assert imports(text).files == {"b.py", "*/a/b.py"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_it(oracle):\n    subprocess.run([sys.executable, str(oracle)])", True),
        ("def test_it(oracle):\n    subprocess.run([sys.executable, '-I', str(oracle), 'input.py'])", True),
        ("PYTHON = [sys.executable]\ndef test_it(oracle):\n    subprocess.run(PYTHON + oracle)", True),
        ("subprocess.run([sys.executable, '-c', code])", False),
        ("subprocess.run([sys.executable, '-m', 'oracle', name])", False),
        ("subprocess.run([sys.executable, HERE / 'oracle.py', name])", False),
    ],
)
def test_the_tests_own_python_runs_a_file_of_a_computed_name(text, expected):
    definitions = imports(f"import subprocess, sys\n{text}").definitions
    assert any(definition.runs_computed for definition in definitions) is expected


@pytest.mark.parametrize(
    "text",
    [
        "parser.addoption('--entrypoint', default='python main.py')",
        "def test_it(run):\n    run('python', 'main.py')",
        "def test_it():\n    'python main.py works'",
        "argv = ['lint', 'python', DATA / 'main.py']",
        "subprocess.run([*entrypoint_argv, '--language', 'python', DATA / 'main.py'])",
    ],
)
def test_commands_that_the_tests_do_not_start(text):
    result = imports(text)
    assert (result.files, result.computed) == (set(), False)
    assert not any(definition.runs_computed for definition in result.definitions)


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
    result = imports(text)
    assert (result.changes_path, result.changes_path_later) == (changes, later)


FILES = {
    "pytest.ini": "[pytest]",
    "conftest.py": "import helpers",
    "test_checkpoint_1.py": "def test_a():\n    from package.inner import thing",
    "helpers.py": "from deeper import more",
    "deeper.py": "",
    "unused.py": "print('nobody imports this')",
    "package/__init__.py": "from . import sibling",
    "package/sibling.py": "x = 1",
    "package/inner.py": "",
    "package/data.py": "x = 2",
    "project/helpers.py": "print('an input of the same name')",
    "project/main.py": "import deeper",
    "project/test_main.py": "def test_main(): ...",
    "input.txt": "text",
}
CODE = {
    "pytest.ini", "conftest.py", "test_checkpoint_1.py", "helpers.py", "deeper.py", "package/__init__.py",
    "package/sibling.py", "package/inner.py",
}  # fmt: skip
LOADED = ("conftest.py", "test_checkpoint_1.py", "helpers.py", "deeper.py")


@pytest.fixture
def code_of(tmp_path):
    def find(files=(), loaded=LOADED, roots=(), shown=()):
        for name, text in {**FILES, **dict(files)}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return find_test_code(tmp_path, loaded, roots, shown).files

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
        ({"deeper.py": "import sys\ncommand = [sys.executable, 'main.py']"}, set()),
        ({"deeper.py": "import sys\ncommand = [sys.executable, HERE / 'unused.py']", "project/unused.py": "1"},
         {"unused.py"}),
        ({"deeper.py": "import sys\ncommand = [sys.executable, find() / 'main.py']"}, {"project/main.py"}),
        ({"deeper.py": "import sys\ncommand = [sys.executable, HERE / 'other' / 'main.py']", "other/main.py": "2"},
         {"other/main.py"}),
        ({"deeper.py": "def f():\n    import fast", "fast.cpython-312-x86_64-linux-gnu.so": "3", "fast.txt": "4"},
         {"fast.cpython-312-x86_64-linux-gnu.so"}),
        ({"deeper.py": "this is no Python"}, EVERY_PYTHON_FILE - CODE),
    ],
)  # fmt: skip
def test_loaded_files_and_their_imports_are_test_code(code_of, files, more):
    assert code_of(files) == CODE | more


RUNNER = """
import subprocess, sys
HERE = Path(__file__).parent
def run_script(script, *words):
    return subprocess.run([sys.executable, str(script), *words])
"""


@pytest.mark.parametrize(
    "test",
    [
        "def test_it(run):\n    run_script(HERE / 'oracle' / 'solve.py')",
        "def test_it(run):\n    assert run('x') == run_script(HERE / 'oracle' / 'solve.py', DATA)",
        "def test_it(run):\n    run(run_script(HERE / 'oracle' / 'solve.py'))",
        "def test_it(entrypoint_argv):\n    same(call(entrypoint_argv), run_script(HERE / 'oracle' / 'solve.py'))",
        "ORACLE = HERE / 'oracle' / 'solve.py'\ndef test_it():\n    run_script(ORACLE)",
        "@pytest.fixture\ndef oracle():\n    return HERE / 'oracle/solve.py'\ndef test_a(oracle):\n run_script(oracle)",
        "@pytest.mark.parametrize('name', ['solve.py'])\ndef test_it(name):\n    run_script(HERE / 'oracle' / name)",
        "def answer(name):\n    return run_script(HERE / 'oracle' / name)\ndef test_it():\n    answer('solve.py')",
        "from conftest import run_script as answer\ndef test_it():\n    answer('oracle/solve.py')",
        "class TestIt:\n    script = HERE / 'oracle' / 'solve.py'\n    def test_a(self):\n     run_script(self.script)",
        "def test_it(request):\n    request.getfixturevalue('run_script')(HERE / 'oracle' / 'solve.py')",
    ],
)
def test_files_that_a_helper_runs_are_test_code(code_of, test):
    """Here `sample.py` is handed over: its name is in no test that runs a Python."""
    both = "def test_other(run):\n    run(DATA / 'sample.py')\n"
    files = {"conftest.py": RUNNER, "test_checkpoint_1.py": both + test}
    files |= {"oracle/solve.py": "answer", "data/sample.py": "sample", "data/oracle.py": "data"}
    expected = {"conftest.py", "test_checkpoint_1.py", "helpers.py", "deeper.py", "unused.py", "oracle/solve.py"}
    assert code_of(files) == {*expected, "pytest.ini"}


@pytest.mark.parametrize(
    ("test", "is_code"),
    [
        ("def test_it(run, out):\n    run(DATA / 'sample.py')\n    run_script(out)", False),
        ("def test_it(run, out):\n    run('lint', str(DATA / 'sample.py'))\n    run_script(out)", False),
        ("def test_it(entrypoint_argv):\n    subprocess.run([*entrypoint_argv, DATA / 'sample.py'])\n    run_script(o)",
         False),
        ("def test_it(run, out):\n    sample = DATA / 'sample.py'\n    run(sample)\n    run_script(out)", True),
        ("def run(script):\n    return run_script(script)\ndef test_it(run):\n    run(DATA / 'sample.py')", True),
    ],
)  # fmt: skip
def test_arguments_of_the_submission_in_a_test_that_runs_a_python(code_of, test, is_code):
    code = code_of({"conftest.py": RUNNER, "test_checkpoint_1.py": test, "data/sample.py": "sample"})
    assert ("data/sample.py" in code) is is_code


def test_files_that_were_loaded_in_another_way(code_of):
    assert code_of(loaded=(*LOADED, "project/main.py")) == CODE | {"project/main.py"}


def test_folders_of_the_import_path(code_of):
    assert code_of({"deeper.py": "def f():\n    import main"}) == CODE
    assert code_of({"deeper.py": "def f():\n    import main"}, roots=("project",)) > CODE | {"project/main.py"}


def test_what_every_submission_sees_is_no_test_code(code_of):
    computed = {"deeper.py": "import runpy\ndef f():\n    runpy.run_path(x)"}
    shown = {"project/main.py", "project/helpers.py", "project/test_main.py"}
    assert code_of(computed, shown=shown) == EVERY_PYTHON_FILE - shown
