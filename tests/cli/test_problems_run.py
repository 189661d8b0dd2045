"""Mistakes that `slop-code problems run` reports before anything is run."""

import pytest

from slop_code.cli.main import run


@pytest.fixture
def problem(make_problem, monkeypatch):
    made = make_problem({"test_checkpoint_1.py": "def test(): pass"}).path
    monkeypatch.chdir(made)
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    return made


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pdb", "--parallel", "2"], "--pdb cannot be used with --parallel"),
        (["--parallel", "2", "-k", "x"], "--parallel cannot be used with -k or --pytest-arg"),
        (["--parallel", "2", "--pytest-arg=-x"], "--parallel cannot be used with -k or --pytest-arg"),
        (["--parallel", "0"], "expected a whole number from 1 to 1000"),
        (["elsewhere"], "no problem 'elsewhere' in problems"),
        (["-c", "7"], "no checkpoint '7'"),
        ([], "solutions/checkpoint_1: no such folder; write the reference there, or give --solution"),
        (["--solution", "tests/none"], "tests/none: no such folder"),
        (["-e", "nowhere.yaml"], "nowhere.yaml"),
    ],
    ids=["parallel", "keyword", "argument", "number", "problem", "checkpoint", "reference", "solution", "environment"],
)
def test_wrong_options_are_usage_errors(problem, capsys, arguments, words):
    assert run(["problems", "run", *arguments]) == 2
    said = capsys.readouterr()
    assert (words in said.err, said.out) == (True, "")


def test_tests_that_cannot_be_collected_have_a_next_step(problem, capsys, cache, need_bubblewrap):
    need_bubblewrap()
    (problem / "solutions/checkpoint_1").mkdir(parents=True)
    (problem / "solutions/checkpoint_1/main.py").touch()
    (problem / "tests/test_checkpoint_1.py").write_text("import no_such_module\n")
    assert run(["problems", "run"]) == 3
    assert capsys.readouterr().out.splitlines()[1:] == [
        "reason: collection failed: test_checkpoint_1.py:1: ModuleNotFoundError: No module named 'no_such_module'",
        "    .evaluation_tests/test_checkpoint_1.py:1: in <module>",
        "        import no_such_module",
        "    E   ModuleNotFoundError: No module named 'no_such_module'",
        "INFRASTRUCTURE FAILURE: no verdict",
        "next: slop-code problems check . --step layout",
    ]
