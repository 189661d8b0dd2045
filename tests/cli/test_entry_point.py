"""The entry point, before a command is there to run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slop_code.cli.exit_codes import Exit

INTERRUPTED_IMPORT = """
import sys
class Impatient:
    def find_spec(self, name, path, target=None):
        if name == "slop_code.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Impatient())
from slop_code.__main__ import main
main()
"""


@pytest.mark.e2e
def test_interrupted_while_it_is_being_imported():
    argv = [sys.executable, "-c", INTERRUPTED_IMPORT, "problems", "ls"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.INTERRUPTED, "", "slop-code: interrupted\n")


EXIT_FUNCTION = """
import atexit, os, sys
from slop_code.__main__ import main
atexit.register(os.rmdir, sys.argv.pop())
main()
"""


@pytest.mark.e2e
@pytest.mark.parametrize(("argument", "status"), [("--version", Exit.PASSED), ("--unknown", Exit.USAGE)])
def test_exit_functions_run_and_keep_the_exit_status(tmp_path, argument, status):
    folder = tmp_path / "left"
    folder.mkdir()
    argv = [sys.executable, "-c", EXIT_FUNCTION, argument, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode == status
    assert not folder.exists()
