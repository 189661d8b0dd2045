from __future__ import annotations

import os

import pytest

from slop_code.evaluation.problem.problem_contents import file_digest, file_digests
from slop_code.execution.trees import file_signatures, manifest
from slop_code.execution.trees.file_signatures import SignatureCache, signature_of
from slop_code.execution.trees.manifest import check_manifest, write_manifest

CONTENT, OTHER = "1234", "4321"


@pytest.fixture
def settled(monkeypatch):
    """Files that were written a moment ago count as old enough."""
    monkeypatch.setattr(file_signatures, "SETTLED_NS", -(10**18))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/file").write_text(CONTENT)
    (folder / "link").symlink_to("inner/file")
    write_manifest(folder)
    return folder


@pytest.fixture
def digests_read(monkeypatch):
    """The files that `check_manifest` has read."""
    names, read = [], manifest._digest

    def digest(path):
        names.append(path.name)
        return read(path)

    monkeypatch.setattr(manifest, "_digest", digest)
    return names


def put(cache, path, value="value"):
    cache.put("key", {str(path): signature_of(os.lstat(path))}, value)


def next_tick(folder):
    """The kernel's clock moves on, so that a change from now on has another time than one before."""
    clock = folder / "clock"
    clock.touch()
    first = clock.stat().st_ctime_ns
    while clock.stat().st_ctime_ns == first:
        clock.chmod(0o600)
    clock.unlink()


def write_with_its_times(path, text):
    """Same inode, same size, same modification time: only the change time tells."""
    times = os.stat(path)
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_folder_that_passed_is_not_read_again(folder, settled, digests_read):
    check_manifest(folder)
    assert digests_read == ["file"]
    check_manifest(folder)
    assert digests_read == ["file"]


def test_a_folder_that_changed_a_moment_ago_is_read_again(folder, digests_read):
    """It could change again without another time."""
    check_manifest(folder)
    check_manifest(folder)
    assert digests_read == ["file", "file"]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write_with_its_times(folder / "inner/file", OTHER),
        lambda folder: (folder / "inner/file").chmod(0o777),
        lambda folder: (folder / "inner/file").unlink(),
        lambda folder: (folder / "inner/new").touch(),
        lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("inner")),
        lambda folder: (folder / "inner").chmod(0o711),
        lambda folder: (folder / manifest.MANIFEST).write_text("{}"),
        lambda folder: (folder / manifest.MANIFEST).unlink(),
    ],
    ids=["content", "mode", "gone", "new", "link", "folder's mode", "manifest", "no manifest"],
)
def test_a_change_of_a_folder_that_passed_is_detected(tmp_path, folder, settled, change):
    check_manifest(folder)
    check_manifest(folder)
    next_tick(tmp_path)
    change(folder)
    with pytest.raises((ValueError, OSError)):
        check_manifest(folder)
    with pytest.raises((ValueError, OSError)):
        check_manifest(folder)


def test_a_damaged_file_with_its_size_and_time_is_detected_by_reading_only(tmp_path, folder, settled):
    """A check that does not read never stands for one that does."""
    next_tick(tmp_path)
    write_with_its_times(folder / "inner/file", OTHER)
    check_manifest(folder, reread=False)
    with pytest.raises(ValueError, match="file is damaged"):
        check_manifest(folder)


def test_bytecode_is_removed_from_a_folder_that_passed(tmp_path, folder, settled):
    check_manifest(folder)
    next_tick(tmp_path)
    late = folder / "inner/__pycache__/late.pyc"
    late.parent.mkdir()
    late.touch()
    check_manifest(folder)
    assert not late.exists()


def test_a_digest_follows_the_content(tmp_path, settled):
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_text(CONTENT)
    other.write_text(OTHER)
    link = tmp_path / "link"
    link.symlink_to(file)
    first = file_digest(link)
    assert file_digest(link) == first
    next_tick(tmp_path)
    write_with_its_times(file, OTHER)
    assert file_digest(link) == file_digest(other) != first
    next_tick(tmp_path)
    file.write_text(CONTENT)
    assert file_digest(link) == first
    link.unlink()
    link.symlink_to(other)
    assert file_digest(link) == file_digest(other)
    next_tick(tmp_path)
    other.chmod(0o755)
    assert file_digest(link)[0] == "x"


def test_a_file_that_is_gone_has_no_value(tmp_path, settled):
    cache, file = SignatureCache[str](), tmp_path / "file"
    file.touch()
    put(cache, file)
    assert cache.get("key") == "value"
    file.unlink()
    assert cache.get("key") is None


def test_a_later_value_replaces_an_earlier_one(tmp_path, settled):
    cache, file = SignatureCache[str](), tmp_path / "file"
    file.touch()
    put(cache, file, "early")
    put(cache, file, "late")
    assert cache.get("key") == "late"


def test_the_values_used_longest_ago_are_dropped(tmp_path, settled):
    cache = SignatureCache[str](max_signatures=2)
    for name in ("a", "b"):
        (tmp_path / name).touch()
        cache.put(name, {str(tmp_path / name): signature_of(os.lstat(tmp_path / name))}, name)
    assert cache.get("a") == "a"
    put(cache, tmp_path / "a", "c")
    assert [cache.get(name) for name in ("a", "b", "key")] == ["a", None, "c"]


def test_the_digests_of_a_set_of_files_follow_each_of_them(settled, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(CONTENT)
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert file_digests(names) == file_digests(names) == [file_digest(name) for name in names]
    next_tick(tmp_path)
    (tmp_path / "b").write_text(OTHER)
    changed = file_digests(names)
    assert changed == [file_digest(name) for name in names]
    assert changed[0] != changed[1]
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        file_digests(names)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_text("one")
    return path


def test_an_unchanged_file_is_loaded_once(file, settled):
    cache = SignatureCache()
    values = [cache.load(file, lambda: [file.read_text()]) for _ in range(3)]
    assert values[0] == ["one"]
    assert values[0] is values[1] is values[2]


def replace(file, text):
    file.with_name("new").write_text(text)
    file.with_name("new").rename(file)


@pytest.mark.parametrize("change", [lambda file, text: file.write_text(text), replace, write_with_its_times])
def test_a_changed_file_is_loaded_again(tmp_path, file, settled, change):
    cache = SignatureCache()
    assert cache.load(file, file.read_text) == "one"
    next_tick(tmp_path)
    change(file, "two")
    assert cache.load(file, file.read_text) == "two"


def test_a_file_that_is_gone_is_not_taken_from_memory(file, settled):
    cache = SignatureCache()
    cache.load(file, file.read_text)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        cache.load(file, file.read_text)


def test_a_file_that_changes_while_it_is_loaded_is_loaded_again(tmp_path, file, settled):
    cache = SignatureCache()

    def read():
        text = file.read_text()
        next_tick(tmp_path)
        file.write_text("two")
        return text

    assert cache.load(file, read) == "one"
    assert cache.load(file, file.read_text) == "two"


def test_a_file_that_was_just_written_is_loaded_again(file, monkeypatch):
    """The next change may leave the same time."""
    monkeypatch.setattr(file_signatures, "SETTLED_NS", 10**15)  # however busy the machine is
    cache = SignatureCache()
    os.utime(file, ns=(10**18, 10**18))  # the time of the last change of its attributes is still now
    assert cache.load(file, object) is not cache.load(file, object)
