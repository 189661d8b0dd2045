"""Heuristics over the code of tests: each over code with the mistake and over code without it."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest

from slop_code.authoring.check.layout.data_file_rules import is_named
from slop_code.authoring.check.layout.import_rules import imports, loads
from slop_code.authoring.check.layout.marker_rules import marks
from slop_code.authoring.check.layout.port_rules import ports
from slop_code.authoring.check.layout.python_packages import distribution, given_modules, package_for
from slop_code.authoring.check.layout.sleep_and_network_rules import hosts, sleeps
from slop_code.authoring.check.layout.write_rules import writes

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
def test_fixed_ports_are_found_in_the_code(text, expected):
    assert [port for _, port in ports(ast.parse(text))] == expected


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
def test_sleeps_are_found_in_the_code(text, expected):
    assert [seconds for _, seconds in sleeps(ast.parse(text))] == expected


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
def test_hosts_of_the_network_are_found_in_the_code(text, expected):
    assert [host for _, host in hosts(ast.parse(text))] == expected


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
def test_writes_outside_temporary_folders_are_found_in_the_code(text, expected):
    assert [where for _, where in writes(ast.parse(text))] == ([expected] if expected else [])


def test_relative_paths_are_fine_where_tests_move():
    text = "open('out.txt', 'w'); open('/tmp/x', 'w')"
    assert [where for _, where in writes(ast.parse(text), moves=True)] == ["a fixed path, /tmp/x"]


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
def test_imports_of_the_submission_are_found(text, expected):
    assert bool(list(loads(ast.parse(text), {"main", "shouting"}))) is expected


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
def test_imported_modules_are_listed(text, expected):
    assert sorted(module for _, module in imports(ast.parse(text))) == sorted(expected)


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
def test_marks_of_tests_are_listed(text, expected):
    assert sorted(node.attr for node in marks(ast.parse(text))) == expected


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
def test_the_name_of_a_distribution_is_normalised(requirement, name):
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
def test_data_files_are_named_by_texts_or_patterns(file, said, patterns, expected):
    assert is_named(PurePosixPath(file), said, patterns) is expected
