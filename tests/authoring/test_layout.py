"""What the files alone tell: each heuristic over code that is fine and code that is not."""

from __future__ import annotations

import ast
import os
import shutil
import textwrap
from pathlib import Path, PurePosixPath

import pytest

from slop_code.authoring.bench import Workbench, environment_for
from slop_code.authoring.check import check_problem, step
from slop_code.authoring.fixes import apply
from slop_code.authoring.layout.data import is_named
from slop_code.authoring.layout.habits import hosts, sleeps
from slop_code.authoring.layout.imports import imports
from slop_code.authoring.layout.markers import marks
from slop_code.authoring.layout.ports import ports
from slop_code.authoring.layout.requirements import distribution, given_modules, package_for
from slop_code.authoring.layout.submission import loads
from slop_code.authoring.layout.writes import writes
from slop_code.authoring.steps.layout import refused
from slop_code.errors import ConfigError
from slop_code.evaluation import ProblemConfig

EXAMPLES = Path(__file__).parents[2] / "examples" / "problems"


def tree(text: str) -> ast.Module:
    return ast.parse(textwrap.dedent(text))


@pytest.fixture
def found(bench):
    """`found(overlay)`: rule and place of each finding of the step."""

    def check(*overlays):
        [report] = check_problem(bench(*overlays), ["layout"])
        return [(one.rule.id, str(one.place)) for one in report.outcome.findings]

    return check


def with_tests(text: str) -> dict[str, str]:
    return {"tests/test_checkpoint_1.py": textwrap.dedent(text)}


def config(*lines: str) -> dict[str, str]:
    head = ["name: shout", "version: 1", "description: x", "tags: [cli]", "entry_file: main"]
    return {"config.yaml": "\n".join([*head, *lines, "checkpoints:", "  checkpoint_1: {order: 1}", ""])}


@pytest.mark.parametrize("name", ["corkboard", "hitcount", "larder"])
def test_the_examples_are_clean(name, tmp_path):
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    problem = ProblemConfig.from_yaml(folder)
    outcome = step("layout").run(Workbench(problem, environment_for(problem, None)))
    assert outcome.findings == ()


def test_the_miniature_is_clean(found):
    assert found() == []


PORTS = [
    ("PORT = 8080", [8080]),
    ("SERVER_PORT: int = 8080", [8080]),
    ("def serve(port=8080): ...", [8080]),
    ("def serve(a, *, http_port=8080): ...", [8080]),
    ("ADDRESS = ('127.0.0.1', 8080)", [8080]),
    ("BASE_URL = 'http://localhost:8080/api'", [8080]),
    ("url = f'http://127.0.0.1:8080/{name}'", [8080]),
    ("probe.connect_ex(('localhost', 8080))", [8080]),
    ("sock.bind(('', 8080))", [8080]),
    ("sock.bind((HOST, 8080))", [8080]),
    ("HTTPServer(('127.0.0.1', 8080), Handler)", [8080]),
    ("app.run(port=8080)", [8080]),
    ("requests.get('http://localhost:8080/x')", [8080]),
    ("httpx.Client(base_url='http://127.0.0.1:8080')", [8080]),
    ("subprocess.Popen([*argv, '--port', '8080'])", [8080]),
    ("PORT = 0", []),
    ("PORT = free_port()", []),
    ("PORT = int(os.environ['PORT'])", []),
    ("EXPORT = 8080", []),
    ("REPORT = 8080", []),
    ("port = None", []),
    ("port = True", []),
    ("port = 70000", []),
    ("sock.bind(('127.0.0.1', 0))", []),
    ("sock.bind(('127.0.0.1', port))", []),
    ("assert parse('localhost:8080') == ('localhost', 8080)", []),
    ("CASES = [('localhost', 8080), ('127.0.0.1', 99)]", []),
    ("run('--url', 'http://localhost:8080/')", []),
    ("check('listening on 127.0.0.1:8080')", []),
    ("SIZE = (640, 480)", []),
    ("url = f'http://127.0.0.1:{port}/'", []),
    ("BASE_URL = 'http://localhost/api'", []),
    ("host = 'localhost'", []),
    ("d.get('port')", []),
    ("make(size=8080)", []),
    ("lines = ['--port', '8080']", []),
]


@pytest.mark.parametrize(("text", "expected"), PORTS, ids=[text for text, _ in PORTS])
def test_ports(text, expected):
    assert [port for _, port in ports(tree(text))] == expected


SLEEPS = [
    ("import time\ndef f():\n    time.sleep(0.1)", [0.1]),
    ("from time import sleep as nap\ndef f():\n    nap(2)", [2.0]),
    ("import time as t\ndef f(n):\n    t.sleep(n)", [None]),
    ("import asyncio\nasync def f():\n    await asyncio.sleep(3)", [3.0]),
    ("import time\nwhile not ready():\n    time.sleep(1)", [1.0]),
    ("import time\nwhile not ready():\n    time.sleep(0.05)", []),
    ("import time\nfor _ in range(9):\n    if ready():\n        break\n    time.sleep(0.2)", []),
    ("import time\nwhile True:\n    time.sleep(pause)", []),
    ("import time\ntime.sleep(0)", []),
    ("import time\nclass H:\n    def do_GET(self):\n        time.sleep(5)", []),
    ("import time\ntime.monotonic()", []),
    ("def f(clock):\n    clock.sleep(5)", []),
    ("def sleep(n): ...\nsleep(5)", []),
    ("CODE = 'import time; time.sleep(9)'", []),
]


@pytest.mark.parametrize(("text", "expected"), SLEEPS)
def test_sleeps(text, expected):
    assert [seconds for _, seconds in sleeps(tree(text))] == expected


HOSTS = [
    ("import urllib.request\nurllib.request.urlopen('https://example.com/x')", ["example.com"]),
    ("from urllib.request import urlopen\nurlopen('http://10.0.0.1/')", ["10.0.0.1"]),
    ("import requests\nrequests.get(url='https://api.example.org')", ["api.example.org"]),
    ("import requests\nrequests.get(f'https://api.example.org/{x}')", ["api.example.org"]),
    ("import httpx\nhttpx.post('https://example.com', json={})", ["example.com"]),
    ("import socket\nsocket.create_connection(('example.com', 80))", ["example.com"]),
    ("import socket\ns = socket.socket()\ns.connect(('8.8.8.8', 53))", ["8.8.8.8"]),
    ("import http.client\nhttp.client.HTTPSConnection('example.com')", ["example.com"]),
    ("import subprocess\nsubprocess.run(['git', 'clone', 'https://example.com/x.git'])", ["example.com"]),
    ("import requests\nrequests.get('http://localhost:1/x')", []),
    ("import requests\nrequests.get('http://127.0.0.1/x')", []),
    ("import requests\nrequests.get('http://nowhere.invalid/')", []),
    ("import requests\nrequests.get(f'http://{host}/x')", []),
    ("import requests\nrequests.get(f'http://127.0.0.1:{port}/x')", []),
    ("import requests\nrequests.get(url)", []),
    ("import requests\nrequests.get('https://example.com', proxies=proxy)", []),
    ("client.get('https://example.com/')", []),
    ("run('fetch', 'https://example.com/')", []),
    ("import subprocess\nsubprocess.run([*argv, 'https://example.com/'])", []),
    ("import sqlite3\nsqlite3.connect('words.db')", []),
    ("import socket\nsocket.socket().connect(('127.0.0.1', 1))", []),
    ("import socket\nsocket.socket().connect('/tmp/socket')", []),
    ("LINK = 'https://example.com'", []),
    ("import urllib.request\nurllib.request.urlopen('http://[')", []),
]


@pytest.mark.parametrize(("text", "expected"), HOSTS)
def test_hosts(text, expected):
    assert [host for _, host in hosts(tree(text))] == expected


HERE = "from pathlib import Path\nHERE = Path(__file__).parent\n"
WRITES = [
    ("open('out.txt', 'w')", "the relative path out.txt"),
    ("open('/tmp/out.txt', mode='ab')", "a fixed path, /tmp/out.txt"),
    ("OUT = '/tmp/out.txt'\ndef test(): open(OUT, 'w')", "a fixed path, /tmp/out.txt"),
    ("from pathlib import Path\nPath('out').mkdir()", "the relative path out"),
    ("from pathlib import Path\n(Path.cwd() / 'x').write_text('')", "the working directory"),
    ("import os\nos.makedirs(os.path.join(os.getcwd(), 'x'))", "the working directory"),
    ("import os\nos.remove(os.path.join(os.path.dirname(__file__), 'x'))", "the tests folder"),
    ("import shutil\nfrom pathlib import Path\nshutil.copy(x, Path(__file__).with_name('y'))", "the tests folder"),
    (HERE + "DATA = HERE / 'data'\ndef test():\n    (DATA / 'x').write_bytes(b'')", "the tests folder"),
    (HERE + "def test():\n    out = HERE / 'x'\n    with out.open('w') as f: ...", "the tests folder"),
    ("open('in.txt')", None),
    ("open('in.txt', 'rb')", None),
    ("open('in.txt', mode)", None),
    ("open('/dev/null', 'w')", None),
    ("open(path, 'w')", None),
    ("def test(tmp_path):\n    (tmp_path / 'x').write_text('')", None),
    ("def test(tmp_path):\n    open(tmp_path / 'x', 'w')", None),
    ("NAME = 'x.txt'\ndef test(tmp_path):\n    (tmp_path / NAME).write_text('')", None),
    (HERE + "def test(tmp_path):\n    import shutil\n    shutil.copy(HERE / 'x', tmp_path)", None),
    (HERE + "def test():\n    (HERE / 'x').read_text()", None),
    (HERE + "def test(HERE):\n    (HERE / 'x').write_text('')", None),
    (HERE + "def test(tmp_path):\n    HERE = tmp_path\n    (HERE / 'x').write_text('')", None),
    ("from pathlib import Path\nHERE = Path(__file__)\nHERE = make()\n(HERE / 'x').write_text('')", None),
    ("def test(tmp_path):\n    out = tmp_path / 'x'\n    out.touch()", None),
    ("self.path.write_text('')", None),
    ("zip.open('name', 'w')", None),
    ("import tempfile\nopen(tempfile.mktemp(), 'w')", None),
]


@pytest.mark.parametrize(("text", "expected"), WRITES)
def test_writes(text, expected):
    assert [where for _, where in writes(tree(text))] == ([expected] if expected else [])


def test_relative_paths_are_fine_where_tests_move():
    text = "open('out.txt', 'w'); open('/tmp/x', 'w')"
    assert [where for _, where in writes(tree(text), moves=True)] == ["a fixed path, /tmp/x"]


LOADS = [
    ("import main", True),
    ("from shouting.words import x", True),
    ("def test():\n    import main", True),
    ("import importlib\nimportlib.import_module('main')", True),
    ("import runpy\nrunpy.run_path('main.py')", True),
    ("__import__('main')", True),
    ("import importlib.util\nimportlib.util.spec_from_file_location('m', HERE / 'solution' / 'main.py')", True),
    ("import sys\nsys.path.insert(0, '.')", True),
    ("import os, sys\nsys.path.append(os.getcwd())", True),
    ("import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent.parent))", True),
    ("import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).resolve().parents[1]))", True),
    ("import sys\nsys.path.insert(0, 'solutions/checkpoint_1')", True),
    ("import json, helpers", False),
    ("from . import main", False),
    ("import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent))", False),
    ("import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent / 'lib'))", False),
    ("import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parents[0] / 'lib'))", False),
    ("import importlib\nimportlib.import_module(name)", False),
    ("run('main.py')", False),
    ("run('import main')", False),
]


@pytest.mark.parametrize(("text", "expected"), LOADS)
def test_loads_the_submission(text, expected):
    assert bool(list(loads(tree(text), {"main", "shouting"}))) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b, c as d", ["a", "c"]),
        ("from a.b import c", ["a"]),
        ("def f():\n    import a", ["a"]),
        ("from . import a", []),
        ("try:\n    import a\nexcept ImportError:\n    import b", ["b"]),
        ("try:\n    import a\nexcept (OSError, ModuleNotFoundError):\n    a = None", []),
        ("try:\n    import a\nexcept OSError:\n    pass", ["a"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a", ["typing"]),
        ("import typing\nif typing.TYPE_CHECKING:\n    import a\nelse:\n    import b", ["typing", "b"]),
    ],
)
def test_imports(text, expected):
    assert sorted(module for _, module in imports(tree(text))) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import pytest\n@pytest.mark.a\ndef test(): ...", ["a"]),
        ("import pytest\npytestmark = [pytest.mark.a, pytest.mark.b(1)]", ["a", "b"]),
        ("import pytest\npytest.param(1, marks=pytest.mark.a)", ["a"]),
        ("from pytest import mark\n@mark.a\ndef test(): ...", ["a"]),
        ("from pytest import mark as m\n@m.a\ndef test(): ...", ["a"]),
        ("import pytest as p\nm = p.mark\n@m.a\ndef test(): ...", ["a"]),
        ("text.mark.a", []),
        ("import pytest\npytest.mark", []),
    ],
)
def test_marks(text, expected):
    assert sorted(node.attr for node in marks(tree(text))) == expected


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("PyYAML>=6", "pyyaml"),
        ("ruamel.yaml", "ruamel-yaml"),
        ("requests[socks]==2.*; python_version > '3'", "requests"),
        ("a @ https://example.com/a.whl", "a"),
        ("httpx", "httpx"),
        ("https://example.com/a.whl", None),
        ("./a", None),
        ("git+https://example.com/a", None),
        ("", None),
    ],
)
def test_distribution(requirement, name):
    assert distribution(requirement) == name


@pytest.mark.parametrize(
    ("module", "package"),
    [("yaml", "pyyaml"), ("PIL", "pillow"), ("requests", "requests"), ("mystery", None), ("google", None)],
)
def test_a_package_is_named_only_where_it_is_well_known(module, package):
    assert package_for(module) == package


def test_what_every_test_has():
    assert {"json", "pytest", "jsonschema", "deepdiff", "attr", "rpds", "typing_extensions"} <= given_modules()
    assert {"yaml", "requests", "colorama"}.isdisjoint(given_modules())


@pytest.mark.parametrize(
    ("file", "said", "patterns", "expected"),
    [
        ("a.txt", {"a.txt"}, [], True),
        ("a.txt", {"a"}, [], True),
        ("a.tar.gz", {"a"}, [], True),
        ("data/a.txt", {"data"}, [], True),
        ("cases/one/in.txt", {"cases"}, [], True),
        ("a.txt", {}, ["*.txt"], True),
        ("data/a.txt", {}, ["data/**"], True),
        ("case_1.txt", {}, ["case_*.txt"], True),
        ("a.txt", {"b.txt"}, ["*.json", "data/*"], False),
        ("data/a.txt", {"b"}, ["other/*"], False),
    ],
)
def test_named_data(file, said, patterns, expected):
    assert is_named(PurePosixPath(file), said, patterns) is expected


@pytest.mark.parametrize(
    "text",
    [
        "HERE = 1\nfor path in HERE.iterdir(): ...",
        "HERE.glob('*')",
        "HERE.glob('*.json')",
        "import os\nos.listdir(HERE)",
        "name = f'{word}.json'",
        "name = word + '/' + 'words.json'",
        "def test(f):\n    f('see words.json')",
    ],
)
def test_data_is_used(found, text):
    assert found({"tests/words.json": "{}"}, with_tests(text)) == []


def test_data_in_a_comment_is_not_used(found):
    assert found({"tests/words.json": "{}"}, with_tests("# words.json\n")) == [("data-unused", "tests/words.json")]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("class TestA:\n    def __init__(self): ...\n    def test_x(self): ...", ["test-not-collected"]),
        ("class Words:\n    def test_x(self): ...", ["test-not-collected"]),
        ("import pytest\n@pytest.mark.error\ndef no_words(): ...", ["test-not-collected"]),
        ("class TestA:\n    def tset_x(self): ...", ["test-not-collected"]),
        ("class TestA:\n    def test_x(self): ...\n    def test_x(self): ...", ["test-hidden"]),
        ("class TestA:\n    def test_x(self): ...\nclass TestA:\n    def test_y(self): ...", ["test-hidden"]),
        ("import sys\nif sys.platform:\n    def test_x(): ...\nelse:\n    def test_x(): ...", []),
        ("class TestServer:\n    def __init__(self): ...\n    def start(self): ...\nTestServer()", []),
        ("class Words:\n    def test_x(self): ...\nclass TestA(Words): ...", []),
        ("import unittest\nclass Words(unittest.TestCase):\n    def test_x(self): ...", []),
        ("def tests_are_good(): ...\ndef text_of(): ...\ndef testing(): ...", []),
        ("def _test_x(): ...", []),
        ("def helper(): ...\ndef helper(): ...", []),
    ],
)
def test_names(found, text, rules):
    assert [rule for rule, _ in found(with_tests(text))] == rules


@pytest.mark.parametrize(
    ("conftest", "dependencies", "rules"),
    [
        ("def pytest_configure(config):\n    config.addinivalue_line('markers', 'loud(n): x')\n", "[]", []),
        ("", "[pytest-strange]", []),
        ("", "[pytest-order]", ["marker-unknown"]),
        ("", "[]", ["marker-unknown"]),
    ],
)
def test_markers_of_others(found, conftest, dependencies, rules):
    text = "import pytest\n@pytest.mark.loud\ndef test_x(): ...\n"
    overlay = {**with_tests(text), "tests/conftest.py": conftest, **config(f"test_dependencies: {dependencies}")}
    assert [rule for rule, _ in found(overlay)] == rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("def test_x(assets): ...", []),
        ("import os\nos.environ['SCBENCH_ASSETS_DIR']", []),
        ("import os\nos.environ['SCBENCH_ASSET_' + name]", []),
        ("def test_x(): ...", ["asset-unused"]),
        ("import os\nos.environ['SCBENCH_ASSET_OTHER']", ["asset-unused"]),
    ],
)
def test_assets(found, text, rules):
    overlay = {"lists/odd.txt": "", **config("static_assets:", "  stop-words: {path: lists/odd.txt}"), **with_tests(text)}
    assert [rule for rule, _ in found(overlay)] == rules


def test_an_asset_of_the_specification_is_used(found):
    overlay = {"odd.txt": "", **config("static_assets:", "  stop-words: {path: odd.txt}")}
    assert found(overlay, {"checkpoint_1.md": "Read $SCBENCH_ASSET_STOP_WORDS."}) == []


def test_imports_of_the_tests_own_modules(found):
    overlay = {
        "tests/helpers.py": "from lib import more\n",
        "tests/lib/__init__.py": "",
        "tests/lib/more.py": "import strange\n",
        "tests/data/unread.py": "import stranger\n",
        **with_tests("import helpers\nDATA = 'data'\n"),
    }
    assert found(overlay) == [("import-undeclared", "tests/lib/more.py:1")]


def test_in_process_may_import_the_submission(found):
    text = with_tests("def test_x():\n    from main import x\n")
    assert found(text) == [("imports-submission", "tests/test_checkpoint_1.py:2")]
    assert found(text, config("in_process: true")) == []


def test_mistakes_of_config_have_lines(authored):
    folder = authored(config("timeout: soon", "static_assets:", "  words: {path: nowhere}"))
    with pytest.raises(ConfigError) as error:
        ProblemConfig.from_yaml(folder)
    report = refused(folder, error.value)
    assert [(one.rule.id, str(one.place), one.message) for one in report.outcome.findings] == [
        ("config-invalid", "config.yaml:6", "timeout: found 'soon', expected a number"),
        (
            "config-invalid",
            "config.yaml:8",
            "static_assets.words.path: found 'nowhere', expected a file or folder that exists",
        ),
    ]


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2", "- a", "", "a: \0", "\ud800"])
def test_any_config_is_refused_with_a_finding(authored, text):
    folder = authored()
    (folder / "config.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError) as error:
        ProblemConfig.from_yaml(folder)
    assert {one.rule.id for one in refused(folder, error.value).outcome.findings} == {"config-invalid"}


def test_fixes_mend_what_was_found_and_nothing_else(bench):
    text = "import pytest\nimport yaml\n\n\n@pytest.mark.eror  # eror\ndef test_x(run): ...\n"
    tried = bench(config("time_out: 3  # mine"), with_tests(text), {"a~": "", "solutions/__pycache__/x.pyc": ""})
    folder = tried.problem.path
    [report] = check_problem(tried, ["layout"])
    assert apply(folder, report.outcome.findings) == list(report.outcome.findings)
    again = ProblemConfig.from_yaml(folder)
    assert step("layout").run(Workbench(again, tried.environment)).findings == ()
    assert (folder / "tests/test_checkpoint_1.py").read_text() == text.replace("mark.eror", "mark.error")
    assert "timeout: 3  # mine\ntest_dependencies:\n  - pyyaml\ncheckpoints:" in (folder / "config.yaml").read_text()
    assert sorted(os.listdir(folder / "solutions")) == ["checkpoint_1"]


ODD = {
    "nul": b"x = '\0'\n",
    "binary": bytes(range(256)) * 40,
    "latin": "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "not utf-8": b"x = '\xff'\n",
    "unknown coding": b"# coding: klingon\n",
    "brackets": b"(" * 100_000,
    "minus": b"x = " + b"-" * 100_000 + b"1\n",
    "dots": b"x = a" + b".b" * 50_000 + b"\n",
    "long": b"x = 1\n" * 1_000_000,
    "escape": b"x = '\\d'\n",
    "names": b"def tset_" + b"x" * 5000 + b"(): ...\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_end_as_findings(bench, name):
    tried = bench({"tests/more.txt": "x"})
    (tried.problem.path / "tests/test_checkpoint_1.py").write_bytes(ODD[name])
    [report] = check_problem(tried, ["layout"])
    assert report.broken is None
    assert all(len(one.message) < 1000 and one.message.isprintable() for one in report.outcome.findings)
    fine = {"latin", "long", "escape", "empty", "names"}
    assert ("python-unreadable" in {one.rule.id for one in report.outcome.findings}) is (name not in fine)


def test_a_pipe_and_a_link_out_of_the_folder_are_not_read(bench, tmp_path):
    tried = bench()
    folder = tried.problem.path
    for name in ("tests/test_checkpoint_1_pipe.py", "tests/flaky.json", "solutions/pipe"):
        os.mkfifo(folder / name)
    (folder / "checkpoint_1.md").unlink()
    os.mkfifo(folder / "checkpoint_1.md")
    outcome = step("layout").run(tried)
    assert {one.rule.id for one in outcome.findings} == {"ledger-unreadable", "spec-missing"}
    (tmp_path / "secret.py").write_text("x")
    (folder / "tests/data").symlink_to(tmp_path)
    assert "tests-missing" in {one.rule.id for one in step("layout").run(tried).findings}


def test_an_allowed_finding_passes(bench):
    text = "import time\n\n\ndef test_x(run):\n    time.sleep(2)  # slop-code: allow fixed-sleep  notes expire\n"
    [report] = check_problem(bench(with_tests(text)), ["layout"])
    assert (report.outcome.findings, len(report.allowed)) == ((), 1)
