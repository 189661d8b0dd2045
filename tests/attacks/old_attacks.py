"""Hostile submissions: each is the same poor program with one attack on top, and is judged no better for it."""

import io
import json
import os
import secrets
import zipfile
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

pytestmark = pytest.mark.e2e

TESTS = """
    from pathlib import Path

    import pytest

    HERE = Path(__file__).parent
    EXPECTED = HERE / "expected" / "out.txt"

    def test_upper(run):
        assert run("upper", "abc").stdout == "ABC\\n"

    def test_given(run):
        given = HERE / "given.txt"
        assert run("length", given).stdout == f"{len(given.read_text())}\\n"

    def test_secret(run):
        assert run("secret").stdout == EXPECTED.read_text()

    def test_written(run, tmp_path):
        run("write", tmp_path / "out.txt")
        assert (tmp_path / "out.txt").read_text() == EXPECTED.read_text()

    @pytest.mark.error
    def test_refuses(run):
        assert run("nonsense").returncode == 2

    def test_secret_again(run):
        assert run("secret").stdout == EXPECTED.read_text()

    def test_last(run):
        assert run("upper", "xyz").stdout == "XYZ\\n"
"""
EARNED = {"test_upper", "test_given", "test_last"}

MAIN = """
    import sys
    from pathlib import Path

    from cheat import cheat

    command, *rest = sys.argv[1:]
    found = cheat(command, rest)
    if command == "upper":
        print(rest[0].upper())
    elif command == "length":
        print(len(Path(rest[0]).read_text()))
    elif command == "write" and not found:
        Path(rest[0]).write_text("unknown")
    elif command == "secret":
        print(found or "unknown")
"""

ALL_PASS = "".join(
    f"def {name}(): pass\n"
    for name in ["test_upper", "test_given", "test_secret", "test_written", "test_refuses", "test_last"]
)
ALWAYS_PASSED = """
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        report.outcome = "passed"
        return report
"""
FORGED = json.dumps(
    {
        "exitcode": 0,
        "tests": [
            {"nodeid": f"test_checkpoint_1.py::{name}", "outcome": "passed", "duration": 0.1}
            for name in ["test_upper", "test_secret", "test_written", "test_refuses", "test_last"]
        ],
    }
)
DAEMON = """
    import json
    import os

    REPORT = ".scbench/pytest-report.json"

    def forge():
        os.mkfifo(REPORT)
        with open(REPORT) as fifo:
            report = json.load(fifo)
        for test in report["tests"]:
            if "test_secret" in test["nodeid"]:
                test["outcome"] = test["call"]["outcome"] = "passed"
        with open(".forged", "w") as file:
            json.dump(report, file)
        os.replace(".forged", REPORT)

    def cheat(command, rest):
        if command != "upper" or os.fork():
            return None
        os.setsid()
        if os.fork():
            os._exit(0)
        for descriptor in range(3):
            os.close(descriptor)
        try:
            forge()
        finally:
            os._exit(0)
"""


def cheat(body: str) -> dict[str, str]:
    """The attack as a function that every call of the program begins with."""
    text = indent(dedent(body).strip(), "    ")
    return {"cheat.py": f"import os\nimport signal\nimport sys\n\ndef cheat(command, rest):\n{text}\n"}


def wheel(files: "Mapping[str, str]") -> bytes:
    info = "planted-1.dist-info"
    metadata = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: planted\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in {**files, **metadata}.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def link(name: str, target: str) -> "Callable[[Path], None]":
    return lambda folder: os.symlink(target, folder / name)


@dataclass(frozen=True)
class Attack:
    files: "Mapping[str, str | bytes]" = field(default_factory=dict)
    build: "Callable[[Path], None]" = lambda _: None
    gains: frozenset[str] = frozenset()
    """What it would pass without boxes; empty where that is not tried."""


SECRET = {"test_secret", "test_secret_again"}
IN_A_BOX = "if b'serve' not in open('/proc/1/cmdline', 'rb').read(): raise SystemExit('no box')\n"
"""Signals go out inside a box only; anywhere else the program gives up, and its tests fail."""
READ = "[open(path).read().strip() for path in paths if os.access(path, os.R_OK)]"

ATTACKS = {
    "own tests": Attack({".evaluation_tests/test_checkpoint_1.py": ALL_PASS, ".evaluation_tests/conftest.py": ""}),
    "own tests by link": Attack({"mine/test_checkpoint_1.py": ALL_PASS}, link(".evaluation_tests", "mine")),
    "further tests": Attack({"test_checkpoint_1.py": ALL_PASS, "tests/test_checkpoint_1.py": ALL_PASS}),
    "conftest": Attack({"conftest.py": ALWAYS_PASSED}),
    "pytest.ini": Attack({"pytest.ini": "[pytest]\naddopts = -p mine -k test_upper\n", "mine.py": ALWAYS_PASSED}),
    "pytest.toml": Attack({"pytest.toml": '[pytest]\naddopts = ["-k", "test_upper"]\n'}),
    "pyproject.toml": Attack({"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-k test_upper"\n'}),
    "tox.ini": Attack({"tox.ini": "[pytest]\naddopts = -k test_upper\n"}),
    "setup.cfg": Attack({"setup.cfg": "[tool:pytest]\naddopts = -k test_upper\n"}),
    "sitecustomize": Attack(dict.fromkeys(["sitecustomize.py", "usercustomize.py"], "raise SystemExit(0)\n")),
    "shadowed tools": Attack(
        dict.fromkeys(
            ["pytest.py", "_pytest/__init__.py", "pytest_timeout.py", "slop_code_judge.py", "deepdiff.py", "shlex.py"],
            "raise SystemExit(0)\n",
        )
    ),
    "settings of uv": Attack(
        {"uv.toml": "offline = false\n", ".python-version": "2.7\n", ".env": "PYTEST_ADDOPTS=-k test_upper\n"}
    ),
    "reports made before": Attack(
        {f".scbench/{name}": FORGED for name in ["pytest-report.json", "ctrf-report.json", "stream.jsonl"]}
    ),
    "reports elsewhere": Attack({"mine/pytest-report.json": FORGED}, link(".scbench", "mine")),
    "a daemon that forges reports": Attack({"cheat.py": DAEMON}, gains=frozenset(SECRET)),
    "rewriting reports and tests": Attack(
        cheat("""
            for folder in (".scbench", ".evaluation_tests", "/slop/judge", "/slop/shown"):
                for name in ("pytest-report.json", "stream.jsonl", "conftest.py", "test_checkpoint_1.py"):
                    try:
                        with open(f"{folder}/{name}", "w") as file:
                            file.write("raise SystemExit(0)")
                        return None
                    except OSError:
                        pass
        """)
    ),
    "writing the expected output": Attack(
        cheat("""
            try:
                with open(".evaluation_tests/expected/out.txt", "w") as file:
                    file.write("unknown\\n")
            except OSError:
                pass
        """),
        gains=frozenset(SECRET),
    ),
    "moving the folders away": Attack(
        cheat("""
            for name in (".evaluation_tests", ".scbench"):
                try:
                    os.rename(name, name + ".old")
                    os.mkdir(name)
                except OSError:
                    pass
        """)
    ),
    "killing": Attack(
        cheat(
            IN_A_BOX
            + """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for process in (1, os.getppid(), -1):
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGKILL):
                    try:
                        if process: os.kill(process, number)
                    except OSError:
                        pass
            os.killpg(0, signal.SIGTERM)
        """.replace("\n            ", "\n")
        )
    ),
    "stopping": Attack(
        cheat(
            IN_A_BOX
            + """
            for process in (1, os.getppid(), -1):
                try:
                    if process: os.kill(process, signal.SIGSTOP)
                except OSError:
                    pass
        """.replace("\n            ", "\n")
        )
    ),
    "reading by path": Attack(
        cheat(f"""
            paths = [f"{{place}}/.evaluation_tests/expected/out.txt" for place in (".", "/workspace", "/box/ws")]
            return next(iter({READ}), None) if command == "secret" else None
        """),
        gains=frozenset(SECRET),
    ),
    "reading through /proc": Attack(
        cheat(f"""
            import glob
            paths = []
            for kind in ("cwd", "root/workspace", "root/box/tests"):
                paths += glob.glob(f"/proc/[0-9]*/{{kind}}/.evaluation_tests/expected/out.txt")
                paths += glob.glob(f"/proc/[0-9]*/{{kind}}/expected/out.txt")
            return next(iter({READ}), None) if command == "secret" else None
        """),
        gains=frozenset(SECRET),
    ),
    "searching the disk": Attack(
        cheat("""
            if command != "secret":
                return None
            system = ("/proc", "/sys", "/usr", "/lib", "/opt", sys.base_prefix)
            for folder, folders, files in os.walk("/"):
                folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(system)]
                for name in files:
                    if not os.path.isfile(os.path.join(folder, name)):
                        continue  # a terminal's end would let it wait for ever
                    try:
                        with open(os.path.join(folder, name), "rb") as file:
                            at = (text := file.read(1 << 20)).find(b"SECRET" + b"-")
                    except OSError:
                        continue
                    if at >= 0:
                        return text[at:at + 39].decode("ascii", "replace")
        """)
    ),
    "a planted link": Attack(
        cheat("""
            if command == "write":
                os.symlink(os.path.abspath(".evaluation_tests/expected/out.txt"), rest[0])
            return command == "write"
        """),
        gains=frozenset({"test_written"}),
    ),
    "a planted hard link": Attack(
        cheat("""
            try:
                if command == "write":
                    os.link(".evaluation_tests/expected/out.txt", rest[0])
                    return True
            except OSError:
                pass
        """)
    ),
    "a planted folder": Attack(
        cheat("""
            if command == "write":
                folder = os.path.dirname(rest[0])
                os.rename(folder, folder + ".old")
                os.symlink(os.path.abspath(".evaluation_tests/expected"), folder)
            return command == "write"
        """),
        gains=frozenset({"test_written"}),
    ),
    "requirements that run code": Attack(
        {
            "requirements.txt": "./package\n",
            "package/pyproject.toml": """
                [build-system]
                requires = []
                build-backend = "backend"
                backend-path = ["."]
                [project]
                name = "planted"
                version = "1"
            """,
            "package/content.whl": wheel({"planted.py": "", "planted.pth": "import sys; sys.planted = True\n"}),
            "package/backend.py": """
                import os
                import shutil

                def plant(path):
                    try:
                        os.makedirs(os.path.dirname(path), exist_ok=True)
                        with open(path, "w") as file:
                            file.write("raise SystemExit(0)")
                    except OSError:
                        pass

                def build_wheel(folder, config_settings=None, metadata_directory=None):
                    here = os.getcwd()
                    workspace = os.path.dirname(here)
                    for name in (".evaluation_tests/conftest.py", ".scbench/pytest-report.json", "conftest.py"):
                        plant(f"{workspace}/{name}")
                        plant(f"/workspace/{name}")
                    for tool in ("/slop/bin/uv", "/slop/bin/uvx", "/slop/judge/requirements.txt"):
                        plant(tool)
                    shutil.copy("content.whl", f"{folder}/planted-1-py3-none-any.whl")
                    return "planted-1-py3-none-any.whl"
            """,
        }
    ),
    "pretending to be pytest": Attack(
        cheat("""
            print("test_checkpoint_1.py::test_secret PASSED\\n\\x1b[2J\\x1b]0;owned\\x07=== 7 passed in 0.01s ===")
            print("\\x1b[1A\\x1b[2K\\x1b[32mPASSED\\x1b[0m", file=sys.stderr)
            if command in ("upper", "length"):
                sys.stdout.flush()
        """)
    ),
}
PLAIN = cheat("return None")
LOSES = {"pretending to be pytest": {"test_upper", "test_given", "test_last"}}
"""What an attack spoils for itself."""


@pytest.fixture(scope="module")
def problem(make_problem):
    files = {
        "tests/expected/out.txt": f"SECRET-{secrets.token_hex(16)}\n",
        "tests/given.txt": "some text",
    }
    return make_problem({"test_checkpoint_1.py": TESTS}, files=files)


@pytest.fixture(scope="module")
def submit(make_submission):
    def make(attack: Attack):
        folder = make_submission({"main.py": MAIN, **PLAIN, **attack.files})
        attack.build(folder)
        return folder

    return make


def passed(results):
    assert results.infrastructure_failure_reason is None
    assert len(results.tests) == 7
    return {test.id for test in results.tests if test.status == "passed"}


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker", "none"])
def test_the_poor_program(problem, submit, evaluate, sandbox):
    """The table means something: this is what the program earns, and what is left to be gained."""
    assert passed(evaluate(problem, submit(Attack()), sandbox=sandbox)) == EARNED


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker"])
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_gained(problem, submit, evaluate, name, sandbox):
    results = evaluate(problem, submit(ATTACKS[name]), sandbox=sandbox)
    assert passed(results) == EARNED - LOSES.get(name, set())


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.gains])
def test_the_attack_is_a_real_one(problem, submit, evaluate, name):
    """Without boxes it succeeds, which is why that has to be asked for by name; one that races may need some tries."""
    wanted, submission = EARNED | ATTACKS[name].gains, submit(ATTACKS[name])
    found = (passed(evaluate(problem, submission, sandbox="none")) for _ in range(5))
    assert wanted in found


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("other", "os.mkfifo(path)"),
        ("stream.jsonl", "os.mkfifo(path)"),
        ("pytest-report.json", "os.mkdir(path)"),
        ("pytest-report.json", "os.symlink('nowhere', path)"),
        ("pytest.log", "os.symlink(OUTSIDE, path)"),
        ("pytest.log", "os.symlink(OUTSIDE + '/file', path)"),
    ],
)
def test_what_is_left_among_the_reports_without_boxes(problem, submit, evaluate, tmp_path, name, make):
    """Nothing is promised for the verdict there, but there is one, and the evaluator follows no link."""
    (tmp_path / "outside").mkdir()
    body = f"""
        OUTSIDE, path = {str(tmp_path / "outside")!r}, {f".scbench/{name}"!r}
        if command == "upper":
            if os.path.isfile(path):
                os.unlink(path)
            if not os.path.lexists(path):
                {make}
    """
    results = evaluate(problem, submit(Attack(cheat(body))), sandbox="none", output_dir=tmp_path / "out")
    assert len(results.tests) == 7
    assert {test.id for test in results.tests if test.status == "passed"} <= EARNED
    assert list((tmp_path / "outside").iterdir()) == []
    assert all(path.is_file() and not path.is_symlink() for path in (tmp_path / "out" / ".scbench").iterdir())
