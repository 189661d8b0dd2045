"""Example of a training loop: its command line. The e2e tests of whole runs let it score submissions."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/score_many.py"


@pytest.mark.parametrize("option", ["--count", "--workers"])
@pytest.mark.parametrize("value", ["0", "-1", "two", "²"])
def test_a_count_below_one_is_refused(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), f"{option}={value}"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert end.value.code == 2
    assert f"{option}: {value}: expected a number from 1" in capsys.readouterr().err
