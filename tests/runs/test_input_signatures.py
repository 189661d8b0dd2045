import os
import shutil

import pytest

from slop_code.runs import input_signatures
from slop_code.runs.input_signatures import InputSignatures
from slop_code.runs.jobs.plan import make_plan
from slop_code.runs.result_index import ResultIndex


@pytest.fixture
def settled(monkeypatch):
    """Files that a test has just written count as old."""
    monkeypatch.setattr(input_signatures, "SETTLED_NS", -(10**12))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "snapshot"
    (folder / "package").mkdir(parents=True)
    (folder / "main.py").write_text("one")
    (folder / "package" / "inner.py").write_text("two")
    return folder


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def computed(signatures, folder, key="", **options):
    """Whether the digest was computed anew."""
    calls = []
    signatures.digest(key, [folder], lambda: calls.append(1) or "digest", **options)
    return bool(calls)


def saved(run, folder, **options):
    signatures = InputSignatures.load(run)
    assert computed(signatures, folder, **options)
    signatures.save()
    return InputSignatures.load(run)


def replace_file(folder):
    (folder / "new").write_text("one")
    (folder / "new").rename(folder / "main.py")


def keep_times(folder):
    before = os.stat(folder / "main.py")
    (folder / "main.py").write_text("ONE")
    os.utime(folder / "main.py", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    "content": lambda folder: (folder / "package/inner.py").write_text("three"),
    "content of the same size, with the times set back": keep_times,
    "another file of the same content": replace_file,
    "a new file": lambda folder: (folder / "package/more.py").write_text(""),
    "a removed file": lambda folder: (folder / "main.py").unlink(),
    "a new name": lambda folder: (folder / "main.py").rename(folder / "other.py"),
    "a mode": lambda folder: (folder / "main.py").chmod(0o700),
    "a link in the place of a file": lambda folder: (
        (folder / "main.py").unlink(),
        (folder / "main.py").symlink_to("package/inner.py"),
    ),
    "a folder in the place of a file": lambda folder: ((folder / "main.py").unlink(), (folder / "main.py").mkdir()),
}


@pytest.mark.usefixtures("settled")
def test_an_unchanged_folder_is_not_read_again(run, folder):
    signatures = saved(run, folder)
    assert not computed(signatures, folder)
    assert computed(signatures, folder, key="other settings")


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_folder_is_read_again(run, folder, change):
    signatures = saved(run, folder, links=True)
    change(folder)
    assert computed(signatures, folder, links=True)


def test_a_folder_that_changed_a_moment_ago_is_read_again(run, folder):
    assert computed(saved(run, folder), folder)


@pytest.mark.usefixtures("settled")
def test_a_folder_that_changes_while_it_is_read_is_read_again(run, folder):
    signatures = InputSignatures.load(run)
    assert signatures.digest("", [folder], lambda: str((folder / "main.py").write_text("later"))) == "5"
    assert computed(signatures, folder)


@pytest.mark.usefixtures("settled")
def test_links_count_only_where_their_targets_do_not_matter(run, folder):
    (folder / "link").symlink_to("main.py")
    assert not computed(saved(run, folder, links=True), folder, links=True)
    assert computed(saved(run, folder), folder)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", [b"", b"\0", b"x", "é".encode()], ids=["empty", "NUL", "short", "cut"])
def test_a_damaged_file_is_ignored(run, folder, damage):
    saved(run, folder)
    file = run / ".slop-code" / input_signatures.SIGNATURES_FILE
    file.write_bytes(file.read_bytes()[:-1] + damage if damage else b"")
    assert computed(InputSignatures.load(run), folder)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    ("owner", "mode"), [(12345, 0o600), (None, 0o602), (None, 0o620)], ids=["owner", "others", "group"]
)
def test_a_file_that_others_may_write_is_ignored(run, folder, owner, mode):
    saved(run, folder)
    file = run / ".slop-code" / input_signatures.SIGNATURES_FILE
    assert not computed(InputSignatures.load(run), folder)
    file.chmod(mode)
    if owner is not None:
        if os.geteuid():
            pytest.skip("only root can give a file to another user")
        os.chown(file, owner, owner)
    assert computed(InputSignatures.load(run), folder)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    "entry",
    [
        '{"name": ["a", {"b": ["c", "d"]}]}',
        '{"\\u0000name": ["a"]}',
        '{"\\u0000name": [1, 2]}',
        '{"\\u0000name": ["a", {"b": 5}]}',
        '{"\\u0000name": ["a", {"b": ["c"]}]}',
        "[]",
    ],
)
def test_an_entry_of_another_shape_is_ignored(run, folder, entry):
    saved(run, folder)
    file = run / ".slop-code" / input_signatures.SIGNATURES_FILE
    file.write_bytes(input_signatures._header(entry.encode()) + b"\n" + entry.encode())
    signatures = InputSignatures.load(run)
    assert computed(signatures, folder)
    signatures.save()


@pytest.mark.usefixtures("settled")
def test_a_file_of_another_version_is_ignored(run, folder, monkeypatch):
    saved(run, folder)
    monkeypatch.setattr(input_signatures, "FORMAT", input_signatures.FORMAT + 1)
    assert computed(InputSignatures.load(run), folder)


@pytest.mark.usefixtures("settled")
def test_what_is_gone_is_forgotten(run, folder, tmp_path):
    signatures = saved(run, folder)
    shutil.rmtree(folder)
    (tmp_path / "other").mkdir()
    assert computed(signatures, tmp_path / "other")
    signatures.save()
    text = (run / ".slop-code" / input_signatures.SIGNATURES_FILE).read_text()
    assert str(tmp_path / "other") in text
    assert str(folder) not in text


@pytest.mark.usefixtures("settled")
def test_a_plan_opens_no_file_of_snapshots_and_tests_that_did_not_change(world, monkeypatch):
    world.problem()
    folder = world.run()
    [run] = world.discover()
    world.finish_all(run.submissions)

    def plan():
        indexes = {run.name: ResultIndex.load(run.folder)}
        made = make_plan([run], world.result_cache, indexes)
        indexes[run.name].save()
        return [submission.checkpoint.name for submission, _ in made.up_to_date]

    names = [f"checkpoint_{number}" for number in (1, 2, 3)]
    assert plan() == names
    monkeypatch.setattr("slop_code.runs.result_cache_key.tree_digest", None)
    monkeypatch.setattr("slop_code.runs.result_cache_key.checkpoint_inputs", None)
    assert plan() == names
    monkeypatch.undo()
    (folder / "words/checkpoint_2/snapshot/main.py").write_text("changed")
    (world.problems / "words/tests/test_checkpoint_3.py").write_text("# changed")
    assert plan() == ["checkpoint_1"]


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    "known",
    [None, "text", [], ["one"], [1, "two"], ["one", 2], ["one", {}], ["one", {"a": ["b", "c"]}], ["one", ["b"]]],
)
def test_entries_of_another_shape_are_ignored(run, folder, known):
    signatures = InputSignatures(run)
    assert computed(signatures, folder)
    [name] = signatures._known
    signatures._known[name] = known
    signatures.save()
    assert computed(InputSignatures.load(run), folder)
    assert InputSignatures.load(run)._known == {}
