"""Damaged files of the result cache and of runs: each is treated as missing, never as another one."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from hypothesis import strategies as st

from slop_code.evaluation.parallel.parallel_proof import PROOFS, ParallelProofs, is_proven, proof_digest, read_proofs
from slop_code.evaluation.parallel.test_durations import load_durations
from slop_code.execution.cache import DURATIONS, Cache
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.folders.run_lock import STATE_DIR
from slop_code.runs.result_archive import pack_result, read_archived_results, unpack_result
from slop_code.runs.result_cache import ResultCache, limit_from
from slop_code.runs.result_index import INDEX_FILE, ResultIndex, with_digest
from tests.factories import problem as problem_with
from tests.fuzz.odd_input import answered, as_json, damaged, edited, fuzzed, odd_text

DATA = Path(__file__).parents[1] / "data" / "results"
ARCHIVE = pack_result(DATA / "stored")
KEY = "ab" * 32


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


WHOLE = files(DATA / "stored")


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    """Well packed, of whatever is in an archive: odd names, links, the same twice."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as stream:
        with tarfile.open(fileobj=stream, mode="w|", format=draw(st.sampled_from([0, 1, 2]))) as tar:
            for name in draw(st.permutations(sorted(WHOLE))) + draw(st.lists(names, max_size=2)):
                kind = draw(
                    st.sampled_from([tarfile.REGTYPE] * 8 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
                )
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "/etc/passwd"
                member.size = len(WHOLE.get(name, b"x")) if kind == tarfile.REGTYPE else 0
                tar.addfile(member, io.BytesIO(WHOLE.get(name, b"x")))
    return packed.getvalue()


names = st.one_of(
    st.sampled_from(["evaluation.json", ".scbench/a", ".scbench/a/b", ".scbench/a/b/c", "../x", "/x", ".scbench/../x"]),
    odd_text.map(lambda text: ".scbench/" + text.encode("utf-8", "replace").decode()[:50]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@fuzzed(
    raw=damaged(ARCHIVE) | damaged(gzip.decompress(ARCHIVE)).map(gzip.compress) | archives() | st.binary(max_size=60)
)
def test_a_damaged_archive_changes_nothing(folder: Path, raw: bytes) -> None:
    """One that does not hold changes nothing, one that does brings what is in it, and nothing leaves the folder."""
    target = folder / "around" / "delivered"
    shutil.rmtree(folder / "around", ignore_errors=True)
    shutil.copytree(DATA / "stored", target)
    before = files(folder)

    def deliver() -> bool:
        unpack_result(raw, target)
        return True

    if not answered(deliver):
        assert files(folder) == before
        return
    assert all(Path(name).parts[:2] == ("around", "delivered") for name in files(folder).keys() - before.keys())
    again = folder / "again"
    shutil.rmtree(again, ignore_errors=True)
    unpack_result(pack_result(target), again)
    assert files(again) == files(target)
    answered(lambda: read_archived_results(raw))


@fuzzed(data=st.data())
def test_a_damaged_cache_entry_is_never_returned(folder: Path, data: st.DataObject) -> None:
    store = ResultCache(Cache(folder / "cache"), limit=1 << 30)
    store.put(KEY, ARCHIVE)
    path = store.root / KEY[:2] / KEY
    raw = data.draw(damaged(path.read_bytes()) | st.just(path.read_bytes()))
    path.write_bytes(raw)
    found = store.get(KEY)
    assert found in (None, ARCHIVE)
    assert store.has(KEY) is (found is not None)


DURATIONS_FILE = json.dumps({"test_a.py::test_1": 0.25, "test_a.py::test_2": 3}).encode()
PROOFS_FILE = ParallelProofs(checkpoints={"checkpoint_1": KEY}).model_dump_json().encode()


@fuzzed(raw=damaged(DURATIONS_FILE) | edited(json.loads(DURATIONS_FILE)).map(as_json) | st.binary(max_size=60))
def test_durations_are_numbers_whatever_the_file_holds(folder: Path, raw: bytes) -> None:
    cache = Cache(folder / "cache")
    (cache.root / DURATIONS).mkdir(parents=True, exist_ok=True)
    (cache.root / DURATIONS / KEY).write_bytes(raw)
    found = load_durations(cache, KEY)
    assert all(isinstance(name, str) and 0 <= seconds <= 1e9 for name, seconds in found.items())


@fuzzed(raw=damaged(PROOFS_FILE) | edited(json.loads(PROOFS_FILE)).map(as_json) | st.binary(max_size=60))
def test_only_an_intact_proof_proves_something(folder: Path, raw: bytes) -> None:
    problem = problem_with().at(folder)
    (folder / PROOFS).write_bytes(raw)
    found = read_proofs(problem).checkpoints
    assert all(isinstance(name, str) and isinstance(digest, str) for name, digest in found.items())
    assert is_proven(problem, "checkpoint_1", "tests", "config") is (
        found.get("checkpoint_1") == proof_digest("tests", "config", problem.unit)
    )


@fuzzed(text=odd_text, seconds=st.floats() | st.integers())
def test_times_that_something_took(folder: Path, text: str, seconds: float) -> None:
    store = ResultCache(Cache(folder / "cache"), limit=1 << 30)
    store.save_duration(text, float(min(max(seconds, -1e300), 1e300)))
    known = store.expected_duration(text)
    assert known is None or known >= 0
    store._duration_path("other").write_text(text[:100], "utf-8", "surrogatepass")
    known = store.expected_duration("other")
    assert known is None or known >= 0


@fuzzed(text=odd_text | st.sampled_from(["0", " 0 ", "1G", "-1", "1e3", "١G"]))
def test_limit_of_the_store(text: str) -> None:
    limit = answered(lambda: limit_from({"SCBENCH_RESULTS_LIMIT": text}))
    assert limit is None or 0 <= limit < 1 << 63


@pytest.fixture(scope="module")
def indexed(folder: Path) -> tuple[Path, bytes]:
    run = folder / "run"
    for number in (1, 2):
        shutil.copytree(DATA / "stored", run / "words" / f"checkpoint_{number}")
    index = ResultIndex.load(run)
    for path in sorted(run.glob("words/*/evaluation.json")):
        index.facts(path)
    index.save()
    return run, (run / STATE_DIR / INDEX_FILE).read_bytes()


def forged(line: bytes) -> st.SearchStrategy[bytes]:
    """By somebody who knows how lines get their digests."""
    return edited(json.loads(line.partition(b" ")[2])).map(
        lambda one: with_digest(as_json(one).decode() + "\n").encode()
    )


def test_a_damaged_index_never_changes_the_facts(indexed: tuple[Path, bytes]) -> None:
    run, whole = indexed
    first = whole.splitlines()[0]
    paths = sorted(run.glob("words/*/evaluation.json"))
    truth = [ResultIndex(None, {}).facts(path) for path in paths]

    @fuzzed(raw=damaged(whole), lines=st.lists(forged(first), max_size=2))
    def examples(raw: bytes, lines: list[bytes]) -> None:
        (run / STATE_DIR / INDEX_FILE).write_bytes(raw)
        index = ResultIndex.load(run)
        assert [index.facts(path) for path in paths] == truth
        (run / STATE_DIR / INDEX_FILE).write_bytes(raw + b"\n" + b"".join(lines))
        index = ResultIndex.load(run)
        assert all(isinstance(index.facts(path), CheckpointFacts) for path in paths)
        index.save()

    examples()
