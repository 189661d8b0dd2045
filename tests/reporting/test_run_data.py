"""Data of the report page."""

import gc
import subprocess
import weakref
from pathlib import Path

import pytest

from slop_code.evaluation.policy import PassPolicy, parse_policy
from slop_code.evaluation.report import CorrectnessResults
from slop_code.reporting.html.page_texts import (
    HEAD,
    LEFT_OUT,
    MAX_NAME_LENGTH,
    TAIL,
    TextPool,
    UniqueNames,
    bounded,
    name_of,
    shell_word,
    shortened,
)
from slop_code.reporting.html.run_data import changes, milliseconds, report_data
from slop_code.runs.checkpoint_lines import write_lines
from slop_code.runs.read_results import read_runs
from slop_code.runs.run_layout import LINES_FILE
from tests.factories import case, result
from tests.reporting.html_runs import store, unpacked

ALL = [PassPolicy.ALL_CASES]


def read(*folders, policies=ALL, **options):
    data, parts = report_data(read_runs(folders), policies, **options)
    return data, {name: unpacked(part) for name, part in parts.items()}


def sheet(folder, **options):
    return read(folder, **options)[0]["runs"][0]["problems"][0]


@pytest.mark.parametrize(
    ("statuses", "verdicts", "expected"),
    [
        ("ppp", "+++", "n.."),
        ("pfp", "+++", "nbr"),
        ("pep", "+++", "nbr"),
        ("psp", "+++", "nbr"),
        ("fff", "+++", "n.."),
        ("fes", "+++", "n.."),
        ("fpf", "+++", "nrb"),
        ("..p", "+++", "..n"),
        ("p.f", "+++", "n.u"),  # where a test did not run at both, nothing is compared
        ("p.p", "+++", "n.u"),
        ("p..", "+++", "n.."),
        ("pff", "+-+", "n.b"),  # what has no verdict is passed over, whatever its tests did
        ("pfp", "+-+", "n.."),
        ("fp", "-+", ".u"),  # it was there before
        ("...", "+++", "..."),
        ("", "", ""),
    ],
)
def test_changes_of_a_test_follow_from_its_statuses(statuses, verdicts, expected):
    assert changes(statuses, [mark == "+" for mark in verdicts], 0) == expected


@pytest.mark.parametrize(
    ("verdicts", "home", "expected"),
    [
        ("+-+", 2, "..n"),  # what has no verdict was before its time
        ("+-+", 1, "..u"),  # it may have been there
        ("+-+", 0, "..u"),
        ("-++", 1, "..n"),
        ("-++", 0, "..u"),
        ("+++", 0, "..n"),  # it came late, and was seen not to be there before
        ("+++", -1, "..u"),  # it comes from before all of these
    ],
)
def test_a_test_is_new_only_where_it_cannot_have_been_before(verdicts, home, expected):
    assert changes("..p", [mark == "+" for mark in verdicts], home) == expected


def test_the_home_of_a_test_is_exported(tmp_path):
    later = {"checkpoint": "checkpoint_3", "file_path": "test_checkpoint_3.py"}
    run = store(tmp_path / "run", [[case("a")], "killed", [case("a"), case("c", **later), case("d", checkpoint="x")]])
    assert [(test["home"], test["changes"]) for test in sheet(run)["tests"]] == [(0, "n.."), (2, "..n"), (-1, "..u")]


def test_tests_keep_the_order_of_their_first_checkpoint(tmp_path):
    run = store(tmp_path / "run", [
        [case("b"), case("a")],
        [case("c"), case("a", "failed"), case("b")],
        [case("d"), case("c"), case("a")],
    ])  # fmt: skip
    tests = sheet(run)["tests"]
    assert [(test["name"], test["statuses"], test["changes"]) for test in tests] == [
        ("test_checkpoint_1.py::b", "pp.", "n.."),
        ("test_checkpoint_1.py::a", "pfp", "nbr"),
        ("test_checkpoint_1.py::c", ".pp", ".n."),
        ("test_checkpoint_1.py::d", "..p", "..n"),
    ]


def test_the_same_id_in_two_files_is_two_tests(tmp_path):
    run = store(tmp_path / "run", [[case("a"), case("a", "failed", file_path="test_checkpoint_2.py")]])
    assert [test["statuses"] for test in sheet(run)["tests"]] == ["p", "f"]


def test_breaks_are_as_many_as_the_line_counts(tmp_path):
    run = store(tmp_path / "run", [
        [case("a"), case("b"), case("c", "failed")],
        "killed",
        [case("a", "error"), case("b", "skipped"), case("c"), case("d", "failed")],
    ])  # fmt: skip
    shown = sheet(run)
    last = shown["checkpoints"][2]
    assert (last["introduced"], last["repaired"], last["since"]) == (2, 1, "checkpoint_1")
    assert [test["changes"] for test in shown["tests"]] == ["n.b", "n.b", "n.r", "..u"]


def test_groups_go_with_the_checkpoint(tmp_path):
    run = store(tmp_path / "run", [[case("a", group_type="Error")], [case("a", group_type="Regression")], "killed"])
    assert sheet(run)["tests"][0]["groups"] == "23."


def test_a_checkpoint_without_a_verdict_has_a_reason_and_passes_nothing(tmp_path):
    run = store(tmp_path / "run", [[case("a")], "the box\x1b[2J broke"])
    (run / "words/checkpoint_3").mkdir()
    (run / "words/checkpoint_3/evaluation.json").write_text("{")
    _, infra, damaged = sheet(run, policies=[*PassPolicy])["checkpoints"]
    assert (infra["state"], infra["reason"], infra["verdicts"]) == (
        "infrastructure_failure", "the box\\x1b[2J broke", "0000000",
    )  # fmt: skip
    assert (damaged["state"], damaged["verdicts"]) == ("not_evaluated", "0000000")
    assert "evaluate the snapshot again" in damaged["reason"]


def test_a_checkpoint_that_was_not_looked_at_again_keeps_its_verdict_and_has_the_reason(tmp_path):
    run = store(tmp_path / "run", [[case("a")]])
    [entry] = read_runs(run)[0].entries()
    write_lines(run / LINES_FILE, [entry.line.model_copy(update={"not_looked_at_again": "no such problem"})])
    [kept] = sheet(run)["checkpoints"]
    assert (kept["state"], kept["not_looked_at_again"]) == ("evaluated", "no such problem")
    assert set(kept["verdicts"]) == {"1"}


def test_verdicts_are_found_for_each_policy(tmp_path):
    run = store(tmp_path / "run", [[case("a"), case("b", "failed", group_type="Error")], [case("a")]])
    policies = [parse_policy("error >= 0.5"), parse_policy("core == 1"), *PassPolicy]
    data, _ = read(run, policies=policies)
    assert data["policies"] == ["error >= 0.5", "core == 1", *(policy.value for policy in PassPolicy)]
    entries = [*read_runs([run])[0].entries()]
    expected = ["".join(str(int(entry.line.passes(policy))) for policy in policies) for entry in entries]
    assert [checkpoint["verdicts"] for checkpoint in data["runs"][0]["problems"][0]["checkpoints"]] == expected
    assert expected[0] == "011101111"


def test_figures_are_whole_numbers(tmp_path):
    shown = sheet(store(tmp_path / "run", [[case("a"), case("b", "failed", group_type="Error")]]))["checkpoints"][0]
    assert (shown["passed"], shown["total"]) == ([1, 0, 0, 0], [1, 0, 1, 0])
    assert (shown["ms"], shown["phases"]) == (1500, {"tests": 250})


@pytest.mark.e2e
def test_a_rate_is_100_percent_only_for_all(tmp_path):
    cases = [case(f"{number}", "failed" if number == 0 else "passed") for number in range(2001)]
    few = [
        case(f"{number}", "passed" if number == 2001 else "failed", group_type="Error") for number in range(2001, 4002)
    ]
    shown = sheet(store(tmp_path / "run", [[*cases, *few], "killed"]))["checkpoints"]
    assert [checkpoint["shares"] for checkpoint in shown] == [["99.9%", None, "0.1%", None], [None] * 4]


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0, 0), (0.2504, 250), (1e15, 10**18), (1e308, 10**18), (-1.0, 0)], ids=str
)
def test_durations_have_an_end(seconds, expected):
    assert milliseconds(seconds) == expected


def test_equal_names_get_a_number(tmp_path):
    alike = ["a\nb", r"a\nb", r"a\nb (test 2)"]
    tests = sheet(store(tmp_path / "run", [[case(name) for name in alike]]))["tests"]
    assert [test["name"].partition("::")[2] for test in tests] == [r"a\nb", r"a\nb (test 2)", r"a\nb (test 2) (test 3)"]
    assert [test["shell_name"] for test in tests] == [shell_word(f"test_checkpoint_1.py::{name}") for name in alike]


def test_no_two_names_are_equal():
    names = UniqueNames()
    given = ["a\nb", r"a\nb (test 2) (test 3)", r"a\nb (test 3)", r"a\nb"]
    shown = [names.add(name, number) for name, number in zip(given, (0, 1, 2, 2), strict=True)]
    assert len({name for name, _ in shown}) == 4


def test_runs_and_problems_are_apart(tmp_path):
    for name in ("one", "two"):
        store(tmp_path / name, [[case("a")]], "words")
        store(tmp_path / name, [[case("b")], [case("b")]], "larder")
    data, parts = read(tmp_path / "one", tmp_path / "two")
    assert [(run["name"], [problem["name"] for problem in run["problems"]]) for run in data["runs"]] == [
        ("one", ["larder", "words"]), ("two", ["larder", "words"]),
    ]  # fmt: skip
    assert list(parts) == ["0/0/0", "0/0/1", "0/1/0", "1/0/0", "1/0/1", "1/1/0"]


def test_a_test_has_its_row_where_that_is_not_the_next_one(tmp_path):
    run = store(tmp_path / "run", [[case(name) for name in "abcd"], [case(name) for name in "bcdae"]])
    _, parts = read(run)
    assert [test[2:] for test in parts["0/0/0"]["tests"]] == [[], [], [], []]
    assert [test[2:] for test in parts["0/0/1"]["tests"]] == [[1], [], [], [0], [4]]


def test_a_part_stores_equal_texts_once(tmp_path):
    said = {"failure_message": "E   no", "calls": ["main.py a", "main.py 'b c'"], "output": "E   no"}
    run = store(tmp_path / "run", [[case("a", "failed", markers=["x", "y"], **said), case("b")]])
    _, parts = read(run)
    assert parts["0/0/0"] == {
        "tests": [[1, 0], [1, 1]],
        "causes": [[2, [0]]],
        "explained": [],
        "text_numbers": [[0, 1, 0, None, 2, None], None],
        "markers": [["x", "y"], []],
        "texts": ["E   no", "main.py a\nmain.py 'b c'", "no"],
    }


def test_parts_are_bounded_and_mark_left_out_texts(tmp_path):
    noise = ["".join(chr(33 + (index * index * seed) % 90) for index in range(3000)) for seed in (7, 11)]
    run = store(tmp_path / "run", [[case("a", "failed", failure_message=text)] for text in noise])
    small = len(report_data(read_runs([run]), ALL)[1]["0/0/0"]) + 10
    data, parts = read(run, limit=small)
    assert parts["0/0/0"]["texts"][0] == noise[0]
    [[cause, of]] = parts["0/0/1"].pop("causes")
    assert parts["0/0/1"].pop("explained") == []
    assert (cause[:100], of) == (noise[1][:100], [0])
    assert parts["0/0/1"] == {
        "tests": [[1, 0]],
        "text_numbers": [[LEFT_OUT, None, None, None, LEFT_OUT, None]],
        "markers": [[]],
        "texts": [],
    }
    assert data["runs"][0]["problems"][0]["tests"][0]["statuses"] == "ff"


@pytest.mark.parametrize(
    ("limit", "kept"), [(10**6, 3000), (3000, 1000), (1000, 250), (0, None)], ids=["whole", "cut", "short", "none"]
)
def test_texts_are_cut_before_they_are_left_out(tmp_path, limit, kept):
    noise = "".join(chr(33 + (index * index * 7 + index // 90) % 90) for index in range(3000))
    run = store(tmp_path / "run", [[case("a", "failed", failure_message=noise)]])
    texts = read(run, limit=limit)[1]["0/0/0"]["texts"][:1]
    assert [len("".join(part for part in text if isinstance(part, str))) for text in texts] == ([kept] if kept else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12345", "12345"),
        ("123456", ["12", 1, "456"]),
        (["1234", 10, "5678"], ["12", 13, "678"]),
        (["1", 10, "2"], ["1", 10, "2"]),
    ],
    ids=range(4),
)
def test_a_text_is_shortened_once_more(text, expected):
    assert shortened(text, 2, 3) == expected


def test_texts_of_one_checkpoint_have_an_end():
    texts = TextPool(limit=10)
    assert [texts.add(text) for text in ("12345678", "123", "12345678", None, "", "1")] == [
        0,
        LEFT_OUT,
        0,
        None,
        None,
        1,
    ]


def test_a_long_text_keeps_its_ends():
    text = "a" * HEAD + "b" * 7 + "c" * TAIL
    assert bounded(text) == ["a" * HEAD, 7, "c" * TAIL]
    assert bounded(text[7:]) == text[7:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n\tb", "a\n\tb"),
        ("\x1b[2J\0", "\\x1b[2J\\x00"),
        ("\u202ex\u2028", "\\u202ex\\u2028"),
        ("</script>", "</script>"),
        ("\ud800", "\\ud800"),
    ],
    ids=range(5),
)
def test_invisible_characters_become_escapes(text, expected):
    assert bounded(text) == expected
    assert name_of(text) == expected.replace("\n", "\\n").replace("\t", "\\t")


@pytest.mark.e2e
@pytest.mark.parametrize(
    "text", ["a", "a b", "it's", "$(x) `y` \\n", "[a]-\u202e\x1b[2J'\\", "é\u2028\U000e0001", "a\nb"], ids=range(7)
)
def test_a_shell_reads_a_word_back(text):
    word = shell_word(text)
    assert word.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/bin"}
    )
    assert done.stdout.decode() == text


def test_the_path_of_a_result_is_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = store(Path("-my run"), [[case("a[x y]")]])
    shown = sheet(run)
    assert shown["checkpoints"][0]["path"] == "'./-my run/words/checkpoint_1'"
    assert shown["tests"][0]["shell_name"] == "'test_checkpoint_1.py::a[x y]'"
    assert sheet(tmp_path / "-my run")["checkpoints"][0]["path"] == f"'{tmp_path}/-my run/words/checkpoint_1'"


def test_names_have_an_end_and_stay_apart(tmp_path):
    long = "x" * 2 * MAX_NAME_LENGTH
    tests = sheet(store(tmp_path / "run", [[case(f"{long}a"), case(f"{long}b")]]))["tests"]
    assert tests[0]["name"] != tests[1]["name"]
    assert all(len(test["name"]) < MAX_NAME_LENGTH + 60 and test["shell_name"] is None for test in tests)


def test_warnings_have_an_end(tmp_path):
    stored = result([case("a")], warnings=[f"{number} " + "x" * 5000 for number in range(30)])
    stored.save(tmp_path / "run/words/checkpoint_1/evaluation.json")
    shown = sheet(tmp_path / "run")["checkpoints"][0]["warnings"]
    assert len(shown) == 21
    assert shown[-1] == "... and 10 more"
    assert max(map(len, shown)) < 1100


def test_results_do_not_gather_in_memory(tmp_path, monkeypatch):
    """When one is read, none but the one before it is still there."""
    run = store(tmp_path / "run", [[case("a", failure_message="x" * 1000)] for _ in range(5)])
    load, read_so_far, alive = CorrectnessResults.load, [], []
    gc.freeze()  # what was there before is not looked at again and again

    def watched(path):
        gc.collect()
        alive.append(sum(result() is not None for result in read_so_far))
        result = load(path)
        read_so_far.append(weakref.ref(result))
        return result

    monkeypatch.setattr(CorrectnessResults, "load", watched)
    report_data(read_runs([run]), ALL)
    assert len(alive) >= 5
    assert max(alive) <= 1
