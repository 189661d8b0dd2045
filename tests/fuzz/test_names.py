"""Names that files, tests and markers can have: whatever they are, each is one thing, and what it is called."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import tarfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import strategies as st

from slop_code._safe_text import decoded_name
from slop_code.errors import InfrastructureError
from slop_code.evaluation.groups import GroupType, group_for, misspelt_markers
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.test_lookup import find_tests, one_test
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.selection import checkpoint_files, checkpoint_of, select
from slop_code.execution.assets import asset_environment, copy_assets
from slop_code.execution.submission import RESERVED, read_tree, summarize, tree_digest
from slop_code.execution.trees import archive
from slop_code.reporting.text import file_safe, one_line, printable, shell_word
from slop_code.runs.run_layout import natural_order
from tests.fuzz.odd_input import PIECES, TERMINAL, answered, damaged, fuzzed, odd_text

DATA = Path(__file__).parents[1] / "data" / "results"
RESULTS = CorrectnessResults.load(DATA / "stored" / "evaluation.json")

file_names = (
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=3).map(
            lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
        ),
        st.binary(min_size=1, max_size=255),
        st.sampled_from([b"-rf", b"\xff\xfe", b"a\nb", b" ", b"a" * 255, b"\xe2\x80\xae", b"%00", b"*", b"~", b"con"]),
    )
    .map(lambda name: name.replace(b"/", b"").replace(b"\0", b"")[:255])
    .filter(lambda name: name not in (b"", b".", b".."))
)
contents = st.binary(max_size=30)
trees = st.recursive(
    st.dictionaries(file_names, contents, max_size=4),
    lambda inner: st.dictionaries(file_names, inner | contents, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("names")


def write(folder: bytes, tree: dict[bytes, object]) -> None:
    os.mkdir(folder)
    for name, content in tree.items():
        if isinstance(content, dict):
            write(folder + b"/" + name, content)
        else:
            Path(os.fsdecode(folder + b"/" + name)).write_bytes(content)  # type: ignore[arg-type]
            os.utime(folder + b"/" + name, (0, 0))


def read(folder: bytes) -> dict[bytes, object]:
    found: dict[bytes, object] = {}
    for name in os.listdir(folder):
        path = folder + b"/" + name
        found[name] = read(path) if os.path.isdir(path) else Path(os.fsdecode(path)).read_bytes()
    return found


def fresh(folder: Path, name: str, tree: dict[bytes, object]) -> Path:
    shutil.rmtree(folder / name, ignore_errors=True)
    write(os.fsencode(folder / name), tree)
    return folder / name


@fuzzed(one=trees, other=trees)
def test_digests_are_equal_for_equal_trees_alone(
    folder: Path, one: dict[bytes, object], other: dict[bytes, object]
) -> None:
    """Equal for equal trees alone, the reserved names at the top left out."""
    first, second = fresh(folder, "one", one), fresh(folder, "other", other)
    bare = [
        {name: content for name, content in tree.items() if os.fsdecode(name) not in RESERVED} for tree in (one, other)
    ]
    assert (tree_digest(first) == tree_digest(second)) is (bare[0] == bare[1])
    assert read_tree(first).unreadable == 0


@fuzzed(tree=trees)
def test_an_unpacked_archive_has_the_same_tree(folder: Path, tree: dict[bytes, object]) -> None:
    source, target = fresh(folder, "packed", tree), fresh(folder, "unpacked", {})
    raw = b"".join([*archive.pack_tree(source, "there"), archive.pack_end()])
    target.rmdir()
    archive.unpack_tree(io.BytesIO(raw), target)
    assert read(os.fsencode(target)) == tree
    measured = summarize(source, 1 << 20)
    assert measured.size == sum(len(one) for one in leaves(tree))


def leaves(tree: dict[bytes, object]) -> list[bytes]:
    found: list[bytes] = []
    for content in tree.values():
        found += leaves(content) if isinstance(content, dict) else [content]  # type: ignore[list-item]
    return found


def reader(raw: bytes) -> archive.Read:
    left = memoryview(raw)

    def take(size: int) -> bytes:
        nonlocal left
        found, left = bytes(left[:size]), left[size:]
        return found

    return take


@fuzzed(tree=trees, data=st.data())
def test_a_damaged_archive_writes_nothing_outside_its_folder(
    folder: Path, tree: dict[bytes, object], data: st.DataObject
) -> None:
    """Files or an infrastructure failure, and nothing outside of the folder where they belong."""
    around = fresh(folder, "around", {b"target": {}})
    source = fresh(folder, "packed", tree)
    root, *parts = archive.pack_tree(source, "there")
    assert len(root) == tarfile.BLOCKSIZE
    raw = data.draw(damaged(b"".join([*parts, archive.pack_end()])))
    with pytest.raises((InfrastructureError, EOFError)):  # none has an exit status
        archive.unpack_reports(reader(raw), {"there": around / "target"}, 1 << 20)
    with contextlib.suppress(InfrastructureError, EOFError):
        archive.unpack_tree(io.BytesIO(raw), around / "new")
    assert set(os.listdir(around)) == {"target", "new"}
    assert len(leaves(read(os.fsencode(around)))) <= 2 * raw.count(b"ustar")


@fuzzed(tree=trees)
def test_copied_assets_have_the_same_tree(folder: Path, tree: dict[bytes, object]) -> None:
    source, target = fresh(folder, "asset", tree), folder / "assets"
    shutil.rmtree(target, ignore_errors=True)
    copy_assets({"whole": source}, target)
    assert read(os.fsencode(target / "whole")) == tree
    variables = asset_environment([os.fsdecode(name) for name in tree], "/assets/")
    assert all("=" not in name and "\0" not in name for name in variables)


@fuzzed(
    tree=st.dictionaries(
        file_names | st.sampled_from([b"test_a.py", b"test_a_b.py", b"test_b.py"]), contents, max_size=6
    )
)
def test_selected_files_belong_to_checkpoints_so_far(folder: Path, tree: dict[bytes, object]) -> None:
    tests = fresh(folder, "tests", {**tree, b"test_a.py": b""})
    names = ["a", "a_b", "b"]
    chosen = answered(lambda: select(tests, names, checkpoint_files(tests, names, "a_b", include_prior=True)))
    assert (chosen is None) is (not any(checkpoint_of(os.fsdecode(name), ["a", "a_b", "b"]) == "a_b" for name in tree))
    if chosen is None:
        return
    assert all(checkpoint_of(PurePosixPath(file).name, ["a", "a_b", "b"]) in ("a", "a_b") for file in chosen.run)
    assert not {"test_b.py"} & {str(file) for file in chosen.files}
    assert not set(chosen.unattributed) & set(chosen.run)


@fuzzed(
    home=st.sampled_from(["a", "b"]),
    markers=st.lists(st.sampled_from(["error", "regression", "functionality", "own", "other"]) | odd_text, max_size=5),
    custom=st.dictionaries(st.sampled_from(["own", "other", "error"]), st.sampled_from(list(GroupType))),
)
def test_the_group_follows_from_home_and_markers(home: str, markers: list[str], custom: dict[str, GroupType]) -> None:
    own = [custom[marker] for marker in markers if marker in custom]
    rules = [
        (home != "a", GroupType.REGRESSION),
        ("error" in markers, GroupType.ERROR),
        ("regression" in markers, GroupType.REGRESSION),
        (bool(own), own[0] if own else GroupType.CORE),
        ("functionality" in markers, GroupType.FUNCTIONALITY),
        (True, GroupType.CORE),
    ]
    assert group_for(home, markers, "a", custom) is next(group for holds, group in rules if holds)
    lines = misspelt_markers(Roster((RosterEntry("t", tuple(markers)),)), custom)
    assert all("\n" not in line and not TERMINAL.search(line) for line in lines)


@fuzzed(text=odd_text | st.sampled_from([test.nodeid for test in RESULTS.tests]) | st.text("tesh_ou:py.", max_size=6))
def test_a_text_names_one_test_or_is_a_usage_error(text: str) -> None:
    found = find_tests(RESULTS, text)
    one = answered(lambda: one_test(RESULTS, text, Path("x")))
    assert (one is not None) is (len(found) == 1)
    assert all(text in test.nodeid or text == test.id for test in found)


@fuzzed(text=odd_text)
def test_printed_texts_have_no_control_characters(text: str) -> None:
    for shown in (printable(text), file_safe(text), one_line(text)):
        assert not TERMINAL.search(shown)
    assert "\n" not in one_line(text * 50)
    assert len(one_line(text * 500)) < 600
    word = shell_word(text)
    assert not TERMINAL.search(word)
    if text.isprintable():
        assert shlex.split(word) == [text]


@fuzzed(name=file_names, others=st.lists(file_names, max_size=4))
def test_names_of_runs_have_one_natural_order(name: bytes, others: list[bytes]) -> None:
    text = decoded_name(os.fsdecode(name))
    text.encode()
    ordered = sorted((os.fsdecode(one) for one in others), key=natural_order)
    ordered.reverse()
    assert sorted(ordered, key=natural_order) == sorted(map(os.fsdecode, others), key=natural_order)


@fuzzed(stem=st.text("abc_", max_size=4), numbers=st.lists(st.integers(0, 10**19), max_size=4, unique=True))
def test_checkpoints_in_their_order(stem: str, numbers: list[int]) -> None:
    names = [f"{stem}{number}" for number in numbers if number < 10**18]
    assert sorted(names, key=natural_order) == [f"{stem}{number}" for number in sorted(numbers) if number < 10**18]
