"""Replacement of a stored result by several writers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.evaluation.result_files.replace_result import finish_replacement, new_result
from slop_code.execution.sandbox import REPORTS_DIR
from tests.factories import result


def test_writers_of_one_folder_take_turns(tmp_path):
    def write(name):
        for _ in range(25):
            finish_replacement(tmp_path)
            with new_result(tmp_path) as new:
                result("+", problem_name=name).save(new / RESULT_FILE)
                (new / REPORTS_DIR / "pytest.log").write_text(name)
        return name

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, "1234")) == list("1234")
    stored = CorrectnessResults.load(tmp_path / RESULT_FILE)
    assert stored.problem_name == (tmp_path / REPORTS_DIR / "pytest.log").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [REPORTS_DIR, RESULT_FILE]
