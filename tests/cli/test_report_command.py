"""`slop-code report --open`, with a browser that only writes down what it is to open."""

import os
import stat
import sys

import pytest

from tests.factories import cases
from tests.reporting.html_runs import store

SCREEN = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


@pytest.fixture
def here(tmp_path, monkeypatch):
    store(tmp_path / "run", [cases("+-")])
    monkeypatch.chdir(tmp_path)
    for name in SCREEN:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.e2e
@pytest.mark.parametrize("status", [0, 1])
def test_the_browser_of_the_variable_opens_the_file(here, slop_code, monkeypatch, status):
    """Names with spaces and signs are part of its address."""
    program = here / "browser"
    program.write_text(f"#!{sys.executable}\nimport sys\nopen('opened', 'w').write(sys.argv[1])\nsys.exit({status})\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    monkeypatch.setattr("webbrowser._tryorder", None)
    monkeypatch.setattr("webbrowser._browsers", {})
    assert slop_code("report", "run")[0] == 0
    assert not (here / "opened").exists()
    code, out, err = slop_code("report", "run", "-o", "the report#1.html", "--open")
    assert (code, out.startswith("written: the report#1.html")) == (0, True)
    assert (here / "opened").read_text() == (here / "the report#1.html").as_uri()
    assert ("no browser could be started" in err) == bool(status)


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS always has a screen")
def test_without_a_screen_the_address_is_printed(here, slop_code):
    code, out, err = slop_code("report", "run", "--open")
    assert (code, out.startswith("written: report.html")) == (0, True)
    assert f"there is no screen here, so no browser was started; open {(here / 'report.html').as_uri()} in one" in err
