"""A full disk: every result is whole, the rest has a reason, and the next run completes it."""

from __future__ import annotations

import re
import shutil

import pytest

from slop_code.evaluation import CorrectnessResults

RESULT = "sums/*/evaluation.json"
ROOM_KB = 120
"""For three results or so."""


@pytest.fixture
def privately(start, unshared, tmp_path):
    """Evaluate behind a script that may mount things: nobody but it sees them, and they end with it."""

    def run(cache, script, *arguments):
        """In the script, "$@" is `slop-code eval` with the arguments."""
        file = tmp_path / "script"
        file.write_text(f"set -e\n{script}")
        evaluator = start(cache, *arguments, before=(*unshared, "sh", str(file)))
        return evaluator.end(), evaluator.said

    return run


@pytest.mark.long
def test_a_run_goes_on_after_its_full_disk_has_room_again(sums, fresh_cache, privately, tmp_path):
    """Nine submissions on a disk that has no room for all of their results, and then has."""
    runs = [sums.run(f"disk/{number}") for number in range(3)]
    disk = runs[0].parent
    shutil.move(disk, tmp_path / "moved")
    disk.mkdir()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    script = f"""
    mount -t tmpfs -o size=8m none {disk}
    cp -r {tmp_path}/moved/. {disk}
    free=$(df --output=avail {disk} | tail -1)
    head -c $(( (free - {ROOM_KB}) * 1024 )) /dev/zero > {disk}/filler
    set +e
    "$@"
    echo "status $?"
    cp -a {disk}/. {tmp_path}/first
    rm {disk}/filler
    "$@"
    echo "status $?"
    cp -a {disk}/. {tmp_path}/second
    """
    _, said = privately(fresh_cache("cache"), script, *runs, "-j", 2)
    full, again = re.split(r"(?<=status 3)\n", said, maxsplit=1)
    message = re.search(rf"slop-code: ({disk}/\S+)/evaluation.json: No space left on device; (.*)", full)
    assert message, full
    assert message[2] == "every result written before is whole: make room and start again"
    assert "Traceback" not in said
    before = {
        path.relative_to(tmp_path / "first"): path.read_bytes() for path in (tmp_path / "first").glob(f"*/{RESULT}")
    }
    assert 0 < len(before) < 9
    assert all(CorrectnessResults.load(tmp_path / "first" / name) for name in before)

    assert again.endswith("status 0\n"), again
    assert f"{9 - len(before)} to evaluate, {len(before)} up to date" in again
    after = {path.relative_to(tmp_path / "second"): path for path in (tmp_path / "second").glob(f"*/{RESULT}")}
    assert len(after) == 9
    assert {name: after[name].read_bytes() for name in before} == before
    # What was done and found no room lay in the store.
    assert "(cached)" in again


@pytest.mark.long
@pytest.mark.parametrize(
    ("part", "status", "words"),
    [("sessions", 3, "No space left on device"), ("results", 0, "9 passed")],
)
def test_a_full_cache_is_an_infrastructure_failure_only_where_it_is_needed(
    sums, fresh_cache, privately, part, status, words
):
    """Nothing can be stored: the run goes on. Nothing can be evaluated: that is no verdict about anyone."""
    runs = [sums.run(str(number)) for number in range(3 if status == 0 else 1)]
    cache = fresh_cache("cache")
    folder = cache.root / part
    folder.mkdir(exist_ok=True)
    script = f"""
    mount -t tmpfs -o size=64k none {folder}
    head -c 65536 /dev/zero > {folder}/.filler || true
    exec "$@"
    """
    found, said = privately(cache, script, *runs, "-j", 2, "--retries", 0)
    assert (found, words in said) == (status, True), said
    assert "Traceback" not in said
    assert len([path for run in runs for path in run.glob(RESULT)]) == (9 if status == 0 else 0)
