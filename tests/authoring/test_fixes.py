"""Mechanical changes: exactly what was meant, once, and never elsewhere."""

from __future__ import annotations

import os
import stat

import pytest

from slop_code.authoring.finding import Finding, Place, Rule, Severity
from slop_code.authoring.fixes import EntryAdded, Fix, KeyRenamed, Removed, Replaced, apply
from slop_code.authoring.yaml_text import keys_of, line_of, with_entry, with_key_renamed

RULE = Rule("a-rule", Severity.WARNING, "something is wrong", "mend it")


def findings(*fixes: Fix | None) -> list[Finding]:
    return [Finding(RULE, Place("x"), "x", fix=fix) for fix in fixes]


CONFIG = """\
# A problem.
name: shout
checkpoints:
  checkpoint_1:
    order: 1  # the first
  "checkpoint_2": {order: 2, time_out: 3}
static_assets:
  words.txt:
    path: words.txt
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("name", 2),
        ("checkpoints", 3),
        ("checkpoints.checkpoint_1.order", 5),
        ("checkpoints.checkpoint_2.time_out", 6),
        ("checkpoints.checkpoint_2.nothing", 6),
        ("checkpoints.checkpoint_3.order", 3),
        ("static_assets.words.txt.path", 9),
        ("nothing", None),
        ("", None),
    ],
)
def test_line_of_a_key(key, line):
    assert line_of(CONFIG, key) == line


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("", ["name", "checkpoints", "static_assets"]),
        ("checkpoints", ["checkpoint_1", "checkpoint_2"]),
        ("static_assets.words.txt", ["path"]),
        ("name", []),
        ("nothing", []),
        ("checkpoints.checkpoint_3", []),
    ],
)
def test_keys_of_a_mapping(key, keys):
    assert keys_of(CONFIG, key) == keys


@pytest.mark.parametrize("text", ["", "a: [", "- a", "\t", "a: &x [*x]\n*x", "[" * 5000, "x" * 300_000, "a: \0"])
def test_no_line_in_what_is_no_mapping(text):
    assert line_of(text, "b") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("time_out: 3  # seconds\nname: x\n", "timeout: 3  # seconds\nname: x\n"),
        ('name: x\n"time_out": 3\n', "name: x\ntimeout: 3\n"),
        ("{time_out: 3}", "{timeout: 3}"),
        ("# é 世\r\ntime_out: 3\r\n", "# é 世\r\ntimeout: 3\r\n"),
        ("time_out: 3\ntimeout: 4\n", None),
        ("other: 3\n", None),
        ("- time_out\n", None),
        ("a: &time_out 3\ntime_out: *time_out\n", "a: &time_out 3\ntimeout: *time_out\n"),
    ],
)
def test_a_key_is_renamed(before, after):
    assert with_key_renamed(before, "time_out", "timeout") == after


def test_an_inner_key_is_renamed():
    after = with_key_renamed(CONFIG, "checkpoints.checkpoint_2.time_out", "timeout")
    assert after == CONFIG.replace("time_out", "timeout")
    assert with_key_renamed(CONFIG, "checkpoints.checkpoint_1.time_out", "timeout") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("test_dependencies: [a]  # why\n", "test_dependencies: [a, new]  # why\n"),
        ("test_dependencies: [a, ]\n", "test_dependencies: [a, new ]\n"),
        (
            "test_dependencies: [\n  a,  # one\n  b  # two\n]\n",
            "test_dependencies: [\n  a,  # one\n  b, new  # two\n]\n",
        ),
        ("test_dependencies: []\n", "test_dependencies: [new]\n"),
        ("test_dependencies:\nname: x\n", "test_dependencies: [new]\nname: x\n"),
        ("test_dependencies: null\n", "test_dependencies: [new]\n"),
        ("test_dependencies:\n- a\n# b\nname: x\n", "test_dependencies:\n- a\n- new\n# b\nname: x\n"),
        ("test_dependencies:\n    - 'a>=1'  # one\n", "test_dependencies:\n    - 'a>=1'  # one\n    - new\n"),
        ("test_dependencies:\r\n  - a\r\nname: x\r\n", "test_dependencies:\r\n  - a\r\n  - new\r\nname: x\r\n"),
        ("test_dependencies:\n  - a", "test_dependencies:\n  - a\n  - new"),
        (
            "name: x\n\n# Three of them.\ncheckpoints: {}\n",
            "name: x\n\ntest_dependencies:\n  - new\n# Three of them.\ncheckpoints: {}\n",
        ),
        ("checkpoints: {}\n", "test_dependencies:\n  - new\ncheckpoints: {}\n"),
        ("test_dependencies: a\n", None),
        ("test_dependencies: [new]\n", None),
        ("test_dependencies: [[a]]\n", None),
        ("a: &l [b]\ntest_dependencies: *l\n", None),
        ("{test_dependencies: [a]}\n", None),
        ("name: x\n", None),
        ("test_dependencies: {a: b}\n", None),
        ("test_dependencies:\n  - |\n    a\n", None),
    ],
)
def test_an_entry_is_added(before, after):
    assert with_entry(before, "test_dependencies", "new", before="checkpoints") == after


def test_an_entry_of_odd_text_is_not_added():
    assert with_entry("test_dependencies: []\n", "test_dependencies", "a]\nname: y", before="checkpoints") is None


def test_the_token_alone_is_replaced(tmp_path):
    (tmp_path / "t.py").write_bytes("# é eror\r\nx = 'é'; a.eror; b.eror\r\n".encode())
    line, first = 2, len("x = 'é'; a.".encode())
    fixes = [Replaced("t.py", line, first, "eror", "error"), Replaced("t.py", line, first + 8, "eror", "error")]
    assert apply(tmp_path, findings(*fixes)) == findings(*fixes)
    assert (tmp_path / "t.py").read_bytes() == "# é eror\r\nx = 'é'; a.error; b.error\r\n".encode()
    assert apply(tmp_path, findings(fixes[1])) == []
    assert os.listdir(tmp_path) == ["t.py"]


@pytest.mark.parametrize("fix", [Replaced("t.py", 1, 0, "eror", "error"), Replaced("t.py", 9, 0, "eror", "error")])
def test_what_has_changed_meanwhile_stays(tmp_path, fix):
    (tmp_path / "t.py").write_text("other\n")
    assert apply(tmp_path, findings(fix, None)) == []
    assert (tmp_path / "t.py").read_text() == "other\n"


def test_config_is_mended_once_for_all_findings(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("# mine\nname: x\ntime_out: 3\ncheckpoints: {}  # none\n")
    path.chmod(0o640)
    wanted = findings(
        EntryAdded("config.yaml", "test_dependencies", "pyyaml", "checkpoints"),
        KeyRenamed("config.yaml", "time_out", "timeout"),
        EntryAdded("config.yaml", "test_dependencies", "requests", "checkpoints"),
        EntryAdded("config.yaml", "test_dependencies", "pyyaml", "checkpoints"),
    )
    assert apply(tmp_path, wanted) == wanted
    assert path.read_text() == (
        "# mine\nname: x\ntimeout: 3\ntest_dependencies:\n  - pyyaml\n  - requests\ncheckpoints: {}  # none\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert apply(tmp_path, wanted) == []


def test_what_config_cannot_hold_is_not_written(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "name: x\nversion: 1\ndescription: x\ntags: [cli]\nentry_file: main\ntime_out: soon\n"
        "checkpoints:\n  checkpoint_1: {order: 1, time_out: 3}\n"
    )
    good = KeyRenamed("config.yaml", "checkpoints.checkpoint_1.time_out", "timeout")
    bad = KeyRenamed("config.yaml", "time_out", "timeout")
    assert apply(tmp_path, findings(bad, good)) == findings(good)
    assert "time_out: soon" in path.read_text()


def test_files_and_folders_are_removed(tmp_path):
    (tmp_path / "tests/__pycache__").mkdir(parents=True)
    (tmp_path / "tests/__pycache__/a.pyc").touch()
    (tmp_path / "a~").touch()
    gone = findings(Removed("tests/__pycache__"), Removed("a~"))
    assert apply(tmp_path, gone) == gone
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["tests"]
    assert apply(tmp_path, gone) == []


def test_nothing_outside_is_touched(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "problem"
    outside.mkdir()
    folder.mkdir()
    (outside / "t.py").write_text("eror\n")
    (outside / "config.yaml").write_text("time_out: 3\n")
    (folder / "tests").symlink_to(outside)
    (folder / "config.yaml").symlink_to(outside / "config.yaml")
    os.mkfifo(folder / "pipe.py")
    wanted = findings(
        Replaced("tests/t.py", 1, 0, "eror", "error"),
        Replaced("../outside/t.py", 1, 0, "eror", "error"),
        Replaced(f"{outside}/t.py", 1, 0, "eror", "error"),
        Replaced("pipe.py", 1, 0, "eror", "error"),
        KeyRenamed("config.yaml", "time_out", "timeout"),
        Removed("tests/t.py"),
        Removed("../outside"),
        Removed(""),
        Removed("."),
    )
    assert apply(folder, wanted) == []
    assert (outside / "t.py").read_text() == "eror\n"
    assert (outside / "config.yaml").read_text() == "time_out: 3\n"


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "problem").mkdir()
    (tmp_path / "problem/__pycache__").symlink_to(tmp_path / "kept")
    gone = findings(Removed("__pycache__"))
    assert apply(tmp_path / "problem", gone) == gone
    assert (tmp_path / "kept").is_dir()


def test_what_is_no_text_stays(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"time_out: \xff\n")
    assert apply(tmp_path, findings(KeyRenamed("config.yaml", "time_out", "timeout"))) == []
