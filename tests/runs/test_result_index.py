import json
import os
import subprocess
import sys

import pytest

from slop_code._io import read_bounded
from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.checkpoint_lines import CheckpointFacts, Regressions
from slop_code.runs.result_index import ResultIndex, with_digest
from tests.factories import result

OPENED = """
import json, os, sys
from pathlib import Path

from slop_code.runs.result_index import ResultIndex, with_digest

folder, opened = Path(sys.argv[1]), []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
paths = [folder / "words" / f"checkpoint_{number}" / "evaluation.json" for number in (1, 2, 3, 4)]
for _ in range(2):
    opened.clear()
    index = ResultIndex.load(folder)
    states = [index.facts(path).state for path in paths]
    found = [index.regressions(later, earlier, "x").introduced for earlier, later in zip(paths, paths[1:])]
    index.save()
    mine = [os.path.relpath(name, folder) for name in opened if name.startswith(str(folder))]
    print(json.dumps([states, found, mine]))
"""


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def first(run):
    path = run / "words/checkpoint_1/evaluation.json"
    result("++-").save(path)
    return path


@pytest.fixture
def second(run):
    path = run / "words/checkpoint_2/evaluation.json"
    result("-+++").save(path)
    return path


CHANGED = Regressions(since="checkpoint_1", introduced=1, repaired=1)


@pytest.fixture
def saved(run, first, second):
    """Where everything is known; the lines of its file."""
    index = ResultIndex.load(run)
    assert index.facts(first) == CheckpointFacts.of(CorrectnessResults.load(first))
    assert index.facts(second).total_counts["Core"] == 4
    assert index.regressions(second, first, "checkpoint_1") == CHANGED
    index.save()
    return run / ".slop-code/index"


def test_an_index_without_a_file_reads_the_results(saved):
    entries = [json.loads(line.partition(" ")[2]) for line in saved.read_text().splitlines()]
    assert [entry["path"] for entry in entries] == [f"words/checkpoint_{n}/evaluation.json" for n in (1, 2)]
    assert entries[0]["compared"] is None
    assert entries[1]["compared"]["regressions"]["introduced"] == 1
    assert entries[1]["compared"]["earlier"] == entries[0]["stamp"]
    assert [path.name for path in saved.parent.iterdir()] == ["index"]


@pytest.mark.e2e
def test_indexed_results_are_not_opened(run, first, second):
    """The first time each result is opened once, which shows that this test would see it."""
    result("---").save(run / "words/checkpoint_3/evaluation.json")
    result("-+").save(run / "words/checkpoint_4/evaluation.json")
    argv = [sys.executable, "-c", OPENED, str(run)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    cold, warm = (json.loads(line) for line in done.stdout.splitlines())
    assert cold[:2] == warm[:2] == [["evaluated"] * 4, [1, 2, 0]]
    read = [name for name in cold[2] if name.endswith("evaluation.json")]
    assert read == [f"words/checkpoint_{number}/evaluation.json" for number in (1, 2, 3, 4)]
    assert warm[2] == [".slop-code/index", ".slop-code/inputs"]


def test_a_result_that_was_replaced_is_read_again(run, first, second, saved):
    result("-++").save(first)
    index = ResultIndex.load(run)
    assert index.facts(first).pass_counts["Core"] == 2
    assert index.regressions(second, first, "checkpoint_1") == Regressions(
        since="checkpoint_1", introduced=0, repaired=0
    )
    index.save()
    assert ResultIndex.load(run).regressions(second, first, "checkpoint_1").introduced == 0


def test_a_result_that_is_replaced_between_two_questions_is_read_again(run, first, second):
    index = ResultIndex.load(run)
    assert index.regressions(second, first, "checkpoint_1") == CHANGED
    result("---").save(first)
    assert index.regressions(second, first, "checkpoint_1").repaired == 2
    result("---").save(second)
    assert index.regressions(second, first, "checkpoint_1").repaired == 0
    assert index.facts(second).pass_counts["Core"] == 0


def rewritten(saved, old, new):
    """Changed and with a new digest, as only we do it."""
    lines = [line.partition(" ")[2].replace(old, new) for line in saved.read_text().splitlines()]
    saved.write_text("".join(with_digest(f"{line}\n") for line in lines))


def test_entries_of_another_version_are_ignored(run, first, saved):
    rewritten(saved, '"duration":1.5', '"duration":7.0')
    assert ResultIndex.load(run).facts(first).duration == 7.0
    rewritten(saved, '"made_by":"', '"made_by":"older ')
    assert ResultIndex.load(run).facts(first).duration == 1.5


def test_an_edited_line_is_ignored(run, first, saved):
    saved.write_text(saved.read_text().replace('"duration":1.5', '"duration":7.0'))
    assert ResultIndex.load(run).facts(first).duration == 1.5


def test_the_same_size_and_time_are_not_enough(run, first, saved):
    known = os.stat(first)
    changed = first.read_bytes().replace(b'"passed",\n      "duration', b'"failed",\n      "duration')
    first.write_bytes(changed)
    while os.stat(first).st_ctime_ns == known.st_ctime_ns or os.stat(first).st_mtime_ns != known.st_mtime_ns:
        os.utime(first, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert (os.stat(first).st_size, os.stat(first).st_mtime_ns) == (known.st_size, known.st_mtime_ns)
    assert ResultIndex.load(run).facts(first).state == "not_evaluated"


def test_regressions_are_counted_from_the_file_that_is_asked_for(run, first, second, saved):
    other = run / "words/checkpoint_0/evaluation.json"
    result("+++").save(other)
    index = ResultIndex.load(run)
    assert index.regressions(second, other, "checkpoint_0") == Regressions(
        since="checkpoint_0", introduced=1, repaired=0
    )
    assert index.regressions(second, first, "checkpoint_1") == CHANGED
    assert index.regressions(second, first, "start").since == "start"


def test_a_missing_result_has_no_facts(run, first):
    index = ResultIndex.load(run)
    assert index.facts(run / "words/checkpoint_9/evaluation.json") is None
    assert index.facts(first / "evaluation.json") is None
    assert index.regressions(first, run / "gone.json", "gone") is None
    index.save()


@pytest.mark.parametrize("damage", ["cut", "empty", "folder", "link", "loop", "pipe"])
def test_a_damaged_result_has_no_verdict_and_a_reason(run, first, second, damage):
    if damage == "cut":
        first.write_bytes(first.read_bytes()[:100])
    elif damage == "empty":
        first.write_bytes(b"")
    else:
        first.unlink()
        {
            "folder": first.mkdir,
            "link": lambda: first.symlink_to(second),
            "loop": lambda: first.symlink_to(first),
            "pipe": lambda: os.mkfifo(first),
        }[damage]()
    index = ResultIndex.load(run)
    facts = index.facts(first)
    assert facts.state == "not_evaluated"
    assert facts.reason.startswith(f"{first}: ")
    assert index.facts(second).state == "evaluated"
    assert index.regressions(second, first, "checkpoint_1") is None
    index.save()
    kept = (run / ".slop-code/index").read_text()
    assert "checkpoint_1/evaluation.json" not in kept
    assert "checkpoint_2/evaluation.json" in kept


def test_a_result_that_becomes_damaged_leaves_the_index(run, first, second, saved):
    first.write_bytes(b"{}")
    index = ResultIndex.load(run)
    assert index.facts(first).state == "not_evaluated"
    index.save()
    assert [json.loads(line.partition(" ")[2])["path"] for line in saved.read_text().splitlines()] == [
        "words/checkpoint_2/evaluation.json"
    ]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:0],
        lambda raw: b"\xff\xfe\n" + raw,
        lambda raw: raw[: len(raw) // 3],
        lambda raw: raw.replace(b'"Core":', b'"Bore":'),
        lambda raw: raw.replace(b'"state":"evaluated"', b'"state":"evaluated","more":1'),
        lambda raw: b"[" * 100_000 + raw,
        lambda raw: raw.replace(b'"attempts":', b'"attempts":' + b"9" * 5000),
    ],
)
def test_a_damaged_index_is_no_error(run, first, second, saved, damage):
    saved.write_bytes(damage(saved.read_bytes()))
    index = ResultIndex.load(run)
    assert index.facts(first) == CheckpointFacts.of(CorrectnessResults.load(first))
    assert index.regressions(second, first, "checkpoint_1") == CHANGED
    index.save()
    assert ResultIndex.load(run).regressions(second, first, "checkpoint_1") == CHANGED


def test_what_was_not_asked_for_is_kept_while_it_is_there(run, first, second, saved):
    third = run / "words/checkpoint_3/evaluation.json"
    result("+").save(third)
    index = ResultIndex.load(run)
    index.facts(third)
    first.unlink()
    index.save()
    paths = [json.loads(line.partition(" ")[2])["path"] for line in saved.read_text().splitlines()]
    assert paths == [f"words/checkpoint_{number}/evaluation.json" for number in (2, 3)]


def test_without_a_folder_nothing_is_written(tmp_path):
    path = tmp_path / "evaluation.json"
    result("+").save(path)
    index = ResultIndex.load(None)
    assert index.facts(path).state == "evaluated"
    index.save()
    assert [entry.name for entry in tmp_path.iterdir()] == ["evaluation.json"]


@pytest.mark.parametrize(("moment", "found"), [("call", 1), ("return", 3)])
def test_a_result_that_is_replaced_while_it_is_read(run, first, tmp_path, moment, found):
    """What was read is never remembered as the content of another file."""
    other = tmp_path / "other.json"
    result("+").save(other)

    def swap(frame, event, argument):
        if event == moment and frame.f_code is read_bounded.__code__ and other.exists():
            os.replace(other, first)

    index = ResultIndex.load(run)
    sys.setprofile(swap)
    try:
        count = index.facts(first).total_counts["Core"]
    finally:
        sys.setprofile(None)
    assert (count, other.exists()) == (found, False)
    index.save()
    assert not (run / ".slop-code").exists()
    assert index.facts(first).total_counts["Core"] == 1
    index.save()
    assert ResultIndex.load(run).facts(first).total_counts["Core"] == 1


def test_nothing_is_written_through_a_link(run, first, tmp_path):
    (tmp_path / "victim").mkdir()
    (run / ".slop-code").symlink_to(tmp_path / "victim")
    index = ResultIndex.load(run)
    assert index.facts(first).state == "evaluated"
    index.save()
    assert not [*(tmp_path / "victim").iterdir()]
