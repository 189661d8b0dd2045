"""Every part of the benchmarks at its smallest size; figures are for `make bench`, and nothing here looks at them."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import PARTS, letters, measured
from benchmarks.machine import machine
from benchmarks.measuring import BenchError, in_turns, ours, run
from benchmarks.setting import Bench
from benchmarks.table import BEGIN, END, Part, Row, document, figure, load, markdown, rows, terminal, with_table

PAGE = Path(__file__).parents[2] / "docs/performance.md"
PART = Part(
    "a",
    "a part",
    (
        Row("bare", "s", (2.0, 4.0, 3.0)),
        Row("ours | all", "s", (4.5, 3.5, 9.0), "bare"),
        Row("memory", "MiB", (123.4,)),
    ),
    ("docker: not here",),
)
FACTS = {"cores": 2, "Docker": None, "Python": "3.12.1"}


@pytest.fixture(scope="module")
def bench(cache, need_bubblewrap, tmp_path_factory):
    need_bubblewrap()
    return Bench(tmp_path_factory.mktemp("bench"), "least", {"bubblewrap": {"type": "local"}})


@pytest.mark.long
@pytest.mark.parametrize("letter", PARTS)
def test_every_part_runs(letter, bench):
    part = measured(letter, bench)
    assert part.letter == letter
    assert part.rows
    assert all(value >= 0 for row in part.rows for value in row.samples)
    assert {row.against for row in part.rows} <= {None, *(row.what for row in part.rows)}
    for shown in (terminal(part), markdown([part], {})):
        assert all(row.what in shown for row in part.rows)


@pytest.mark.e2e
def test_the_machine_is_told():
    found = json.loads(json.dumps(machine()))
    assert {"processor", "cores", "memory", "kernel", "load before", "uv", "pytest", "slop-code", "commit"} <= set(
        found
    )
    assert found["cores"] >= 1


def test_measurements_load_from_their_json(tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps(document([PART], FACTS)))
    assert load(tmp_path / "bench.json") == [PART]
    saved = json.loads((tmp_path / "bench.json").read_text())
    assert saved["machine"] == FACTS
    assert [(row["median"], row["ratio"]) for row in saved["parts"][0]["rows"]] == [
        (3, None),
        (4.5, 1.5),
        (123.4, None),
    ]


def test_the_markdown_table_has_a_row_for_each_measurement():
    lines = markdown([PART], FACTS).splitlines()
    assert lines[0] == "Machine: cores 2; Python 3.12.1."
    assert lines[4:] == [
        "| **(a) a part** | | | | | |",
        "| bare | 3 s | 2 | 4 |  |  |",
        "| ours \\| all | 4.5 s | 3.5 | 9 | 1.50 | bare |",
        "| memory | 123 MiB | 123 | 123 |  |  |",
        "| *docker: not here* | | | | | |",
    ]
    assert terminal(PART).splitlines()[2:] == [
        "  bare             3 s    2    4",
        "  ours | all     4.5 s  3.5    9   1.50  bare",
        "  memory       123 MiB  123  123",
        "  docker: not here",
    ]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.01234, "0.0123"), (1.0, "1"), (12.345, "12.3"), (99.99, "100"), (1234.5, "1234"), (0, "0")]
)
def test_figures_have_few_digits(value, shown):
    assert figure(value) == shown


def test_the_one_that_others_are_compared_with_has_no_ratio():
    found = rows({"bare": [1.0], "ours": [2.0]}, against="bare")
    assert [row.against for row in found] == [None, "bare"]
    assert {row.against for row in rows({"ours": [2.0]}, against="bare")} == {None}


def test_a_page_keeps_all_but_the_table():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_table(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="needs the lines"):
        with_table(f"before {END} {BEGIN}", "new")


def test_each_round_begins_with_another_action():
    done = []
    actions = {name: lambda name=name: done.append(name) for name in "abc"}
    found = in_turns(actions, 2, warm=1)
    assert "".join(done) == "abcbcacab"
    assert {name: len(times) for name, times in found.items()} == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize(("text", "found"), [("a", ["a"]), ("c,a", ["c", "a"]), ("b, g", ["b", "g"])])
def test_parts_by_their_letters(text, found):
    assert letters(text) == found


@pytest.mark.parametrize("text", ["", "z", "a,,b", "ab"])
def test_an_unknown_part_is_a_usage_error(text):
    with pytest.raises(argparse.ArgumentTypeError, match="no part"):
        letters(text)


def test_what_fails_has_no_figure():
    with pytest.raises(BenchError, match="exited with 1"):
        run(["false"])


@pytest.mark.e2e
def test_a_command_that_fails_has_no_figure(tmp_path):
    with pytest.raises(BenchError, match="slop-code eval exited with 2"):
        ours("eval", tmp_path / "nowhere")


def test_the_page_shows_every_part_or_says_that_it_is_not_measured():
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition(BEGIN)[2].partition(END)[0]
    shown = re.findall(r"^\| \*\*\((\w)\) .*\*\* \|", table, re.M)
    missing = re.findall(r"^- part \((\w)\)", page.partition("Not measured yet:")[2].partition("\n\n##")[0], re.M)
    assert sorted([*shown, *missing]) == sorted(PARTS)
    assert table.startswith("\nMachine: date ")
    assert len(re.findall(r"^\| .* (?:s|ms|MiB|MB) \|", table, re.M)) > 5 * len(shown)
