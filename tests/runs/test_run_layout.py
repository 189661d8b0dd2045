"""Layout of a run folder."""

from slop_code.evaluation.result_files.origin import Origin
from slop_code.runs.run_layout import SNAPSHOT, stored_snapshot


def test_the_snapshot_of_a_mirrored_result_is_that_of_the_run(tmp_path):
    result, run = tmp_path / "out/words/checkpoint_1", tmp_path / "run/words/checkpoint_1"
    for folder in (result, run / SNAPSHOT):
        folder.mkdir(parents=True)
    assert stored_snapshot(result) == result / SNAPSHOT
    Origin(snapshot=str(run / SNAPSHOT)).keep(result)
    assert stored_snapshot(result) == run / SNAPSHOT
    (result / SNAPSHOT).mkdir()
    assert stored_snapshot(result) == result / SNAPSHOT
