"""Mutants that are made of a text, and the choice of those that are tried."""

from __future__ import annotations

import ast
import itertools
import os
import random
import warnings
from pathlib import Path

import pytest

from slop_code.authoring.check.strength.mutant import Edit, Mutant, MutantBudget, parse_budget, spread
from slop_code.authoring.check.strength.python_edits import compiles, python_edits
from slop_code.authoring.check.strength.python_solution import (
    copy_solution,
    mutants_of,
    new_lines,
    overwrite,
    python_files,
)
from slop_code.errors import InfrastructureError, UsageError

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "slop_code").rglob("*.py"))


def changed(text: str, edits: list[Edit]) -> list[str]:
    """What each makes of the line, or lines, that it changes."""
    lines = set(text.splitlines())
    mutated = [edit.apply(text).splitlines() for edit in edits]
    return [" / ".join(line.strip() for line in one if line not in lines) for one in mutated]


@pytest.mark.parametrize(
    ("text", "mutants"),
    [
        ("x = a < b", ["x = None", "x = a <= b"]),
        ("x = (a) == (  # why ==\n  b)", ["x = None", "x = (a) != (  # why =="]),
        ("f(a not in b, c is d)", ["pass", "f(a in b, c is d)", "f(a not in b, c is not d)"]),
        ("f(a and b or not c)", ["pass", "f(a or b or not c)", "f(a and b and not c)", "f(a and b or c)"]),
        ("f(a + b * -c)", ["pass", "f(a - b * -c)", "f(a + b / -c)", "f(a + b * c)"]),
        ("total += 1", ["pass", "total -= 1", "total += 0", "total += 2"]),
        ("del a[0]", ["pass", "del a[1]"]),
        ("f(True, 1.5, 'é')",
         ["pass", "f(False, 1.5, 'é')", "f(True, 0.5, 'é')", "f(True, 2.5, 'é')", "f(True, 1.5, '~é')"]),
        ("f('é', b'x')", ["pass", "f('~é', b'x')", "f('é', b'~x')"]),
        ("f(f'{a + 1}é', é == b)", ["pass", "f(f'~{a + 1}é', é == b)", "f(f'{a + 1}é', é != b)"]),
        ("if ready:\n    a.b = c", ["if not (ready):", "pass"]),
        ("while a > b: f()", ["while a >= b: f()", "while a > b: pass"]),
        ("for x in xs:\n    if x: break\n    continue",
         ["for x in ():", "if not (x): break", "if x: continue", "break"]),
        ("def f(a=1):\n    'Why.'\n    b = a\n    return b",
         ["def f(a=0):", "def f(a=2):", "return", "b = None", "return None"]),
        ("def f(): raise E", ["def f(): pass"]),
        ("async def f():\n    await g()\n    yield 1", ["return", "yield 0", "yield 2"]),
        ("match x:\n    case 'a': f()", ["case '~a': f()", "case 'a': pass"]),
    ],
)  # fmt: skip
def test_mutants_of_python_compile(text, mutants):
    edits = python_edits(text)
    assert changed(text, edits) == mutants
    assert all(compiles(edit.apply(text)) for edit in edits)


@pytest.mark.parametrize(
    "text",
    [
        '"""Says 1 + 1."""',
        "import a.b\nfrom c import d",
        "def f(a: int | None) -> dict[str, 1]: ...",
        "x: int | None",
        "Pair = tuple[int, 'Pair'] | None",
        "__all__ = ['a', 'b']",
        "if __name__ == '__main__':\n    main(1)",
        "if TYPE_CHECKING:\n    A = 1",
        "logger.info('read %d', 1 + 1)",
        "@cached(1)\ndef f(): pass",
        "assert a == 1",
        "x = 1 +",
        "x = " + "-" * 100_000 + "1",
        "\0",
    ],
)
def test_code_without_behaviour_has_no_mutants(text):
    assert python_edits(text) == []


def test_help_texts_are_left_alone():
    text = "parser.add_argument('--all', help='all of it', required=True)"
    assert changed(text, python_edits(text)) == [
        "pass",
        "parser.add_argument('~--all', help='all of it', required=True)",
        "parser.add_argument('--all', help='all of it', required=False)",
    ]


@pytest.mark.e2e
def test_every_mutant_of_real_code_is_another_program_by_few_lines():
    chance = random.Random(seed := int(os.environ.get("SLOP_CODE_TEST_SEED", random.randrange(10**6))))
    print(f"SLOP_CODE_TEST_SEED={seed}")
    for path in chance.sample(SOURCES, 8):
        text = path.read_text(encoding="utf-8")
        before = ast.dump(ast.parse(text))
        edits = python_edits(text)
        for edit in chance.sample(edits, min(6, len(edits))):
            mutant = Mutant(path.name, text, edit)
            assert compiles(mutant.mutated), mutant.diff
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert ast.dump(ast.parse(mutant.mutated)) != before, mutant.diff
            body = mutant.diff.splitlines()[2:]
            assert 1 <= sum(line.startswith(("+", "-")) for line in body) <= 6, mutant.diff


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("", "a\nb", {1, 2}),
        ("a\nb\nc", "a\nb\nc", set()),
        ("a\nb\nc", "a\nx\nc\nd", {2, 4}),
        ("a\nb\nc", "b\nc", set()),
    ],
)
def test_only_lines_that_are_new_are_listed(old, new, lines):
    assert new_lines(old, new) == lines


def test_only_new_lines_of_python_files_are_changed(tmp_path):
    files = {
        "1/main.py": "a = b\n",
        "2/main.py": "a = b\nc = 5\n",
        "2/lib/new.py": "f(7)\n",
        "2/lib/new.js": "f(7)\n",
        "2/tool": "x == y\n",
        "2/run": "#!/usr/bin/env python3\nf(1)\n",
        "2/data.json": "[1]\n",
        "2/.hidden.py": "a = 1\n",
        "2/venv/x.py": "f(1)\n",
        "2/large.py": "f(1)\n" * 100_000,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "2/binary.py").write_bytes(b"\xff\0")
    (tmp_path / "2/link.py").symlink_to("lib/new.py")
    assert list(python_files(tmp_path / "2")) == ["main.py", "run", "lib/new.py"]
    mutants = mutants_of(tmp_path / "2", tmp_path / "1")
    assert {(mutant.file, mutant.line) for mutant in mutants} == {("main.py", 2), ("run", 2), ("lib/new.py", 1)}
    assert {mutant.line for mutant in mutants_of(tmp_path / "2") if mutant.file == "main.py"} == {1, 2}


def test_names_and_diffs_are_safe_to_show():
    mutant = Mutant("a\x1b[31m.sh", "\x1b]0;x\x07 && y\n", Edit(7, 9, "||", "boolean"))
    assert mutant.name == "a\\x1b[31m.sh:1 boolean"
    assert "\x1b" not in mutant.diff
    assert "+\\x1b]0;x\\x07 || y" in mutant.diff
    assert len(Mutant("a.sh", "x" * 10**6, Edit(0, 1, "y", "line")).diff) <= 2000


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("20", MutantBudget(mutants=20)),
        (" 1 ", MutantBudget(mutants=1)),
        ("90s", MutantBudget(seconds=90)),
        ("1.5m", MutantBudget(seconds=90)),
        ("2h", MutantBudget(seconds=7200)),
    ],
)
def test_a_budget_is_a_number_or_a_time(text, budget):
    assert parse_budget(text) == parse_budget(str(budget)) == budget


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1.5", "5 mutants", "1d", "s", "٣", "1e3", "nan", "x" * 10_000])
def test_a_wrong_budget_is_a_usage_error(text):
    with pytest.raises(UsageError, match=r"--budget: .* expected a number of mutants") as caught:
        parse_budget(text)
    assert len(str(caught.value)) < 400


def some_mutants() -> list[Mutant]:
    large = "".join(f"if a{number} < {number}: f(a{number} + 1, 'x')\n" for number in range(30))
    small = "print(not a)\n"
    return [
        Mutant(name, text, edit) for name, text in (("large.py", large), ("s.py", small)) for edit in python_edits(text)
    ]


@pytest.mark.e2e
def test_the_choice_is_the_same_every_time_and_another_with_another_seed():
    first = list(spread(some_mutants(), 1))
    assert first == list(spread(some_mutants(), 1))
    assert first[:10] != list(spread(some_mutants(), 2))[:10]
    assert len(first) == len(some_mutants()) == len({(one.file, one.edit) for one in first})


def test_the_first_few_are_spread_over_lines_kinds_and_files():
    chosen = list(itertools.islice(spread(some_mutants(), 1), 12))
    assert len({(one.file, one.line) for one in chosen}) == 12
    assert {one.edit.kind for one in chosen} >= {"comparison", "number", "arithmetic", "text", "statement"}
    assert {one.file for one in chosen} == {"large.py", "s.py"}


def test_what_cannot_be_copied_says_so(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InfrastructureError, match=r"cannot be copied: .*pipe"):
        copy_solution(tmp_path, tmp_path.with_name("copy"))


def test_a_file_that_is_read_only_is_overwritten_and_stays_executable(tmp_path):
    path = tmp_path / "main.sh"
    path.write_text("exit 1\n", encoding="utf-8")
    path.chmod(0o555)
    overwrite(path, "exit 2\n")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o111) == ("exit 2\n", 0o111)
