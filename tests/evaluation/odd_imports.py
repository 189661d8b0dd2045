"""Small problems with odd behaviour when their files are imported, made of parts by chance, from a seed."""

import random
from textwrap import dedent

from tests.evaluation.import_cases import LEFT, REFUSED

PARTS = (
    "SEEN = []\ndef test_state(): SEEN.append(1); assert SEEN == [1]\ndef test_again(): assert SEEN == [1]",
    "import functools\n@functools.cache\ndef made(n): return object()\nFIRST = made(1)\n"
    "def test_cache(): assert made(1) is FIRST and made(2) is not FIRST",
    "import itertools\nCOUNT = itertools.count()\nnext(COUNT)\ndef test_iterator(): assert next(COUNT) == 1",
    "def generate():\n    yield 1\n    yield 2\nVALUES = generate()\nnext(VALUES)\n"
    "def test_generator(): assert list(VALUES) == [2]",
    "import os\nos.environ['ODD'] = os.environ.get('ODD', '') + 'x'\n"
    "def test_environment(): assert set(os.environ['ODD']) == {'x'}",
    "import os, time\nos.environ['TZ'] = 'UTC-9'\ntime.tzset()\ndef test_zone(): assert time.timezone == -9 * 3600",
    "import sys\nsys.path.append('/no_such_folder')\ndef test_path(): assert '/no_such_folder' in sys.path",
    "import sys\nsys.modules['made_up'] = sys\ndef test_module(): import made_up; assert made_up.argv",
    "import sys\nsys.setrecursionlimit(2000)\ndef test_limit(): assert sys.getrecursionlimit() == 2000",
    "import gc, weakref\nclass Node: pass\nNODE = Node(); NODE.own = NODE; REF = weakref.ref(NODE)\n"
    "def test_garbage():\n    global NODE\n    del NODE\n    gc.collect()\n    assert REF() is None",
    "import gc\ngc.disable()\ndef test_collector(): assert not gc.isenabled()",
    "import warnings\nwarnings.simplefilter('error')\ndef test_warning(): warnings.warn('odd')",
    "import warnings\nwarnings.warn('when it was imported', RuntimeWarning)\ndef test_warned(): pass",
    "import builtins\nbuiltins.ODD = 1\ndef test_builtin(): assert ODD == 1",
    "import atexit\natexit.register(print, 'the end')\ndef test_exit(): pass",
    "import signal\nsignal.signal(signal.SIGUSR2, signal.SIG_IGN)\n"
    "def test_signal():\n    import os\n    os.kill(os.getpid(), signal.SIGUSR2)",
    "import signal\nsignal.signal(signal.SIGALRM, lambda *_: 1 / 0)\n"
    "def test_alarm(): assert signal.getsignal(signal.SIGALRM)",
    "import logging\nlogging.getLogger().setLevel(5)\nLOG = logging.getLogger('odd')\n"
    "def test_log(caplog): LOG.debug('text'); assert caplog.messages == ['text']",
    "import decimal\ndecimal.getcontext().prec = 3\n"
    "def test_precision(): assert str(decimal.Decimal(1) / 3) == '0.333'",
    "import random\nRNG = random.Random(7)\nVALUE = RNG.random()\ndef test_seeded(): assert RNG.random() != VALUE",
    "import threading\nLOCK = threading.RLock()\nLOCK.acquire()\n"
    "def test_lock():\n    assert LOCK.acquire(blocking=False)\n    LOCK.release()",
    "import contextvars\nODD = contextvars.ContextVar('odd')\nODD.set(1)\ndef test_context(): assert ODD.get() == 1",
    "import pytest\nPATCH = pytest.MonkeyPatch()\nPATCH.setenv('ODD_PATCH', '1')\n"
    "def test_patch(monkeypatch):\n    import os\n    assert os.environ.pop('ODD_PATCH')",
    "import unittest\nclass TestOdd(unittest.TestCase):\n    made = []\n    def setUp(self): self.made.append(1)\n"
    "    def test_one(self): self.assertTrue(self.made)\n    def test_two(self): self.fail(str(len(self.made)))",
    "import pytest\n@pytest.fixture(scope='module', autouse=True)\ndef odd(): yield; print('done')\n"
    "def test_fixture(capsys): print('in'); assert capsys.readouterr().out == 'in\\n'",
    "import pytest\n@pytest.mark.parametrize('n', [object(), 1, 'x', b'y', None])\ndef test_ids(n): assert n",
    "import pytest\npytestmark = pytest.mark.skipif('ODD_SKIP' in __import__('os').environ, reason='odd')\n"
    "def test_mark(): assert 0, 'it ran'",
    "import io, sys\nTEXT = io.StringIO('a\\nb')\nTEXT.readline()\ndef test_text(): assert TEXT.read() == 'b'",
    "import tempfile, os\ndef test_folder(tmp_path): assert not os.listdir(tmp_path) and tempfile.mkdtemp()",
    "import threading, os\nMAIN = threading.main_thread()\ndef test_thread(): assert MAIN.native_id == os.getpid()",
    "import sys\nprint('when it was imported')\nprint('error', file=sys.stderr)\n"
    "def test_output(): print('x'); assert 0",
    "import random, os\ndef test_entropy(): assert random.random() != os.urandom(8) and os.getpid() > 0",
    "try:\n    import absent\nexcept ImportError as error:\n    ERROR = error\ndef test_error(): assert ERROR.name",
    "import asyncio\nasync def one(): return 1\ndef test_async(): assert asyncio.run(one()) == 1",
    "import os\nFD = os.open(os.devnull, os.O_WRONLY)\ndef test_null(): assert os.write(FD, b'x') == 1",
    "import os\nFD = os.dup(2)\ndef test_copy(): os.write(FD, b'copied\\n')",
    "import sys\nOLD = sys.stdout\nsys.stdout.write('by hand\\n')\ndef test_stream(capfd): print('x')",
    "import inspect\nLINES = inspect.getsource(inspect.getmodule(lambda: 0))\n"
    "def test_source(): assert 'LINES' in LINES",
    "import platform, locale\nNAME = platform.system(), locale.getlocale()\n"
    "def test_system(): assert NAME[0] == 'Linux'",
    "import pytest\npytest.skip('odd', allow_module_level=True)\ndef test_never(): pass",
    "def test_one(one_fixture): assert one_fixture\n"
    "import pytest\n@pytest.fixture\ndef one_fixture(request): return request",
    "import subprocess, sys\ndef test_child(): assert subprocess.run([sys.executable, '-c', '1/0']).returncode == 1",
    "import multiprocessing, os\nOWN = multiprocessing.current_process()\n"
    "def test_own(): assert OWN.pid == os.getpid()",
    "import os, stat\nfrom os import stat as look\ndef test_look(): assert look('/').st_mode and look is os.stat",
    "import sys\nsys.settrace(None)\ndef test_trace(): assert sys.gettrace() is None and sys.getprofile() is None",
)  # fmt: skip
"""A module-level statement and tests."""

HOOKS = (
    "STATE = []\ndef pytest_sessionstart(session): STATE.append('start')",
    "def pytest_collection_modifyitems(items): items.reverse()",
    "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\ndef pytest_collection_modifyitems(items):\n"
    "    yield\n    items.sort(key=lambda item: item.name)",
    "def pytest_collection_finish(session): print('collected', len(session.items))",
    "def pytest_itemcollected(item): item.user_properties.append(('odd', item.name))",
    "def pytest_runtest_setup(item): item.add_marker('odd')",
    "def pytest_report_header(config): return 'odd header'",
    "def pytest_generate_tests(metafunc): metafunc.fixturenames.append('tmp_path') if 'one' in str(metafunc) else 0",
    "def pytest_configure(config): config.addinivalue_line('markers', 'odd: x'); config.odd = object()",
    "def pytest_unconfigure(config): print('unconfigured')",
    "import pytest\n@pytest.fixture(autouse=True)\ndef each(request):\n    yield\n"
    "    request.node.user_properties.append(1)",
    "import sys\nsys.dont_write_bytecode = True\nclass Finder:\n    def find_spec(self, *a): return None\n"
    "sys.meta_path.insert(0, Finder())",
    "collect_ignore = ['test_9.py']\nimport os\nos.environ['FROM_CONFTEST'] = '1'",
    "def pytest_ignore_collect(collection_path): return collection_path.name == 'test_1.py' or None",
    "def pytest_assertrepr_compare(op, left, right): return ['odd comparison', repr(op)]",
    "def pytest_terminal_summary(terminalreporter): terminalreporter.write_line('odd summary')",
    "def pytest_sessionstart(session): session.config.own = session.config._tmp_path_factory.mktemp('own')",
    "def pytest_sessionfinish(session, exitstatus): print('finished', int(exitstatus))",
)  # fmt: skip
"""Conftests."""

UNSAFE = (*(code for code, _ in REFUSED.values()), *(code for text, code in LEFT.items() if "process" not in text))
UNSAFE_SHARE = 0.3


def odd_problem(seed):
    """Files of a problem."""
    rng = random.Random(seed)
    files = {}
    for number in range(rng.randint(1, 3)):
        parts = rng.sample(PARTS, rng.randint(1, 3))
        if rng.random() < UNSAFE_SHARE / 2:
            parts.append(f"{rng.choice(UNSAFE)}\ndef test_nothing(): pass")
        files[f"test_{number}.py"] = "\n".join(rng.sample(parts, len(parts))) + "\n"
    if rng.random() < 0.6:
        files["conftest.py"] = rng.choice(HOOKS) + "\n"
    if rng.random() < 0.2:
        files["sub/conftest.py"] = rng.choice(HOOKS) + "\n"
        files["sub/test_sub.py"] = rng.choice(PARTS) + "\n"
    return {name: dedent(text) for name, text in {**files, "data.txt": ""}.items()}
