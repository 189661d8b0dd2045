"""Order of the files of a diff."""

import pytest

from slop_code.quality.snapshot_diff import FileChange
from slop_code.reporting.html.relevant_files import entry_file, relevant_first
from tests.factories import case, result

FILES = [
    "README.md", "aaa.py", "data/units.txt", "larder/__init__.py", "larder/parser.py", "larder/units.py", "main.py",
    "src/core/tools.py", "tests/test_units.py",
]  # fmt: skip
COMMAND = {"command": ["pytest", "--entrypoint=slop-run main.py"]}


def ordered(*texts, **fields):
    tests = [case(str(number), "failed", failure_message=text, **fields) for number, text in enumerate(texts)]
    changes = [FileChange(path, "changed") for path in FILES]
    return [change.path for change in relevant_first(changes, result(tests, provenance=COMMAND))]


def test_the_entry_file_and_the_implementation_come_before_the_rest():
    assert ordered("E   no") == [
        "main.py", "aaa.py", "larder/__init__.py", "larder/parser.py", "larder/units.py", "src/core/tools.py",
        "README.md", "data/units.txt", "tests/test_units.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('E   File "/workspace/larder/units.py", line 3, in f', ["larder/units.py"]),
        ("E   units.py:3: error", ["larder/units.py"]),
        ("E   larder.parser.ParseError: no", ["larder/__init__.py", "larder/parser.py"]),
        ("E   ModuleNotFoundError: No module named 'aaa'", ["aaa.py"]),
        ("E   cannot import name 'x' from 'core.tools' (unknown)", ["src/core/tools.py"]),
        ("E   open('/workspace/data/units.txt')", ["data/units.txt"]),
        ("E   --units, parser, aaa and main.py", []),
        ("E   other/units.txt.bak", []),
    ],
    ids=range(8),
)
def test_files_that_a_failing_test_names_come_first(text, first):
    assert ordered(text)[: len(first) + 1] == [*first, "main.py"]


@pytest.mark.parametrize("field", [{"output": "larder/units.py"}, {"calls": ["python main.py larder/units.py"]}])
def test_outputs_and_calls_count(field):
    assert ordered("E   no", **field)[0] == "larder/units.py"


def test_passed_tests_do_not_count():
    changes = [FileChange(path, "changed") for path in ("a.py", "b.py")]
    tests = [case("a", output="b.py"), case("b", "failed")]
    assert relevant_first(changes, result(tests))[0].path == "a.py"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["--entrypoint=slop-run main.py"], "main.py"),
        (["--entrypoint=slop-run 'my main.py'"], "my main.py"),
        (["--entrypoint=slop-run 'main.py"], None),
        (["--entrypoint="], None),
        ([], None),
    ],
    ids=range(5),
)
def test_the_entry_file_is_that_of_the_command(command, expected):
    assert entry_file(result(provenance={"command": command})) == expected


@pytest.mark.e2e
@pytest.mark.parametrize("text", ["a.b", "a/", "import a.", "/" * 99, "x.py ", "\0"], ids=range(6))
def test_hostile_text_takes_linear_time(text):
    """A search whose time grows faster would not end within a minute."""
    hostile = text * (3_000_000 // len(text))
    assert ordered(hostile, hostile)[0] == "main.py"


@pytest.mark.parametrize("path", ["src", ".py", "__init__.py", "src/__init__.py", "a\nb.py", "x" * 5000], ids=range(6))
def test_any_path_has_a_rank(path):
    assert relevant_first([FileChange(path, "added")], result([case("a", "failed", output=path)]))
