"""Shared kit of the attacks: an attack that cannot detect its success would always count as held."""

import compileall
import runpy

import pytest

from slop_code.attacks.attack_host import new_secret, open_host, write_problem
from slop_code.attacks.trial import HONEST

SECRET = new_secret()


@pytest.fixture
def kit(tmp_path):
    with open_host(tmp_path / "host", write_problem(tmp_path / "lines"), HONEST) as host:
        yield runpy.run_path(str(host.submission / "kit.py"))


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([SECRET], SECRET),
        ([f"before {SECRET} after"], SECRET),
        (["nothing"], None),
        (["SECRET-"], None),
        (["SECRET-r\x02\x00'\x00"], None),
        ([SECRET[:-1]], None),
        (["SECRET-", SECRET], SECRET),
        ([f"SECRET-\n{SECRET}"], SECRET),
        ([], None),
    ],
    ids=["it", "within", "nothing", "mark", "bytecode", "too-short", "after-a-miss", "after-a-mark", "no-file"],
)
def test_the_kit_finds_whole_secrets_in_readable_files(kit, tmp_path, texts, found):
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
    paths = [tmp_path / str(number) for number in range(len(texts))]
    assert kit["readable"](tmp_path / "missing", tmp_path, *paths) == found


def test_it_does_not_find_itself(kit, tmp_path):
    own = tmp_path / "host/submission"
    compileall.compile_dir(own, quiet=2)
    files = [path for path in own.rglob("*") if path.is_file()]
    assert any(path.suffix == ".pyc" for path in files)
    assert kit["readable"](*files) is None


def test_a_mark_is_left_where_it_broke(kit, tmp_path):
    kit["broke"](KeyError("missing"))
    assert (tmp_path / "host/submission/broke.txt").read_text() == "KeyError('missing')"
