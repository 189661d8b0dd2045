"""Evaluators that are killed while they open boxes: no process is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from tests.process_checks import ends

pytestmark = pytest.mark.e2e

START_S = 300.0
END_S = 20.0
OPEN_BOXES = """
import sys
from pathlib import Path

from slop_code.execution.bubblewrap import bwrap_binary
from slop_code.execution.bubblewrap.boxes_probe import boxes_probe
from slop_code.execution.environment import load_environment

environment, real, program = load_environment("local"), bwrap_binary.bwrap(), Path(sys.argv[1])
program.write_text(f'#!/bin/sh\\nexec {real} "$@"\\n')
program.chmod(0o755)
bwrap_binary.working_bwrap = lambda: str(program)
assert boxes_probe(environment).error is None
program.write_text(f"#!/bin/sh\\nsetsid sh -c 'echo $$ > {sys.argv[2]}; exec sleep 1000' & wait\\n")
boxes_probe(environment)
"""
"""Its last bwrap has started the first process of a box, and neither ends with the other, nor with the evaluator."""


def test_no_box_is_left_of_an_evaluator_that_is_killed_while_it_opens_boxes(tmp_path, need_bubblewrap):
    need_bubblewrap()
    tmp_path.chmod(0o755)
    started = tmp_path / "started"
    os.mkfifo(started)
    reader = os.open(started, os.O_RDONLY | os.O_NONBLOCK)
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    evaluator = subprocess.Popen([sys.executable, "-c", OPEN_BOXES, tmp_path / "bwrap", started], env=variables)
    ended = os.pidfd_open(evaluator.pid)
    try:
        ready = select.select([reader, ended], [], [], START_S)[0]
        assert reader in ready, "it has opened no box"
        box = int(os.read(reader, 100))
    finally:
        evaluator.kill()
        evaluator.wait()
        os.close(reader)
        os.close(ended)
    try:
        assert ends(box, END_S)
    finally:
        if not ends(box, 0):
            os.kill(box, signal.SIGKILL)
