"""`slop-code export` over results that were made by hand."""

import gc
import io
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from slop_code.cli.main import run
from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.exporters import BUILT_IN, exporter
from slop_code.runs.read_results import read_runs
from tests.command import SLOP_CODE
from tests.plugin_packages import install_package

FORMATS = [pytest.param(name, marks=[pytest.mark.e2e] if name == "parquet" else []) for name in BUILT_IN]
"""What writes Parquet takes long to load."""
STORED = Path(__file__).parents[1] / "data" / "results" / "stored" / "evaluation.json"


@pytest.fixture
def slop_code(capsysbinary):
    """Its status, what it printed, and what it complained of; in this process."""

    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        printed = capsysbinary.readouterr()
        assert b"Traceback" not in printed.err
        return status, printed.out, printed.err.decode()

    return call


@pytest.fixture
def stored(tmp_path):
    """`stored("monday", 3)`: a run of so many checkpoints, all with the same result."""

    def make(name="monday", count=1):
        document = json.loads(STORED.read_text(encoding="utf-8"))
        document["provenance"]["checkpoints"] = []
        for number in range(1, count + 1):
            document["checkpoint_name"] = f"checkpoint_{number}"
            folder = tmp_path / name / "words" / f"checkpoint_{number}"
            folder.mkdir(parents=True)
            (folder / "evaluation.json").write_text(json.dumps(document), encoding="utf-8")
        return tmp_path / name

    return make


@pytest.mark.parametrize("name", FORMATS)
def test_to_a_file_and_to_standard_output(name, stored, slop_code, tmp_path):
    folder, file = stored(count=2), tmp_path / "made" / "results"
    assert slop_code("export", folder, "--format", name, "-o", file) == (0, f"written: {file}\n".encode(), "")
    status, printed, complaint = slop_code("export", folder, "--format", name)
    assert (status, complaint) == (0, "")
    assert printed == file.read_bytes() != b""
    assert [path.name for path in file.parent.iterdir()] == ["results"]


def test_several_runs_and_a_policy(stored, slop_code):
    status, printed, _ = slop_code(
        "export", stored("monday"), stored("tuesday"), "--format", "markdown", "--pass-policy", "any"
    )
    assert status == 0
    assert printed.startswith(b"**PASSED** (`any`): 2 of 2 checkpoints passed")
    assert b"`tuesday/words/checkpoint_1`" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["RUN", "--format", "pdf"],
            "no format 'pdf' in this installation; there are junit, ctrf, csv,",
        ),
        (["RUN/nowhere", "--format", "csv"], "there is no such folder"),
        (["RUN/words/checkpoint_1/.scbench", "--format", "csv"], "give the folder of an evaluated run"),
        (["RUN", "--format", "csv", "-o", "RUN"], "a folder; give the name of a file"),
        (["RUN", "--format", "csv", "-o", "RUN/words/checkpoint_1/snapshot/x.csv"], "lies in a snapshot"),
        (["RUN"], "--format"),
    ],
)
def test_wrong_options_are_usage_errors(arguments, said, stored, slop_code):
    folder = stored()
    (folder / "words/checkpoint_1/.scbench").mkdir()
    status, printed, complaint = slop_code("export", *[text.replace("RUN", str(folder)) for text in arguments])
    assert (status, printed) == (2, b"")
    assert said in complaint


def test_a_damaged_result_is_a_checkpoint_without_a_verdict(stored, slop_code):
    folder = stored(count=2)
    (folder / "words/checkpoint_1/evaluation.json").write_text("{")
    status, printed, complaint = slop_code("export", folder, "--format", "csv")
    rows = [line.split(b",") for line in printed.splitlines() if line.startswith(b"monday")]
    assert status == 3
    assert complaint.startswith(f"· unreadable result: {folder / 'words/checkpoint_1/evaluation.json'}: ")
    assert [row[4] for row in rows][:2] == [b"not_evaluated", b"evaluated"]


def test_a_file_is_whole_or_not_there(stored, slop_code, tmp_path, bring):
    """A package brings a format that fails half-way."""
    bring("out.write(b'half'); raise OSError(28, 'No space left on device')")
    file = tmp_path / "results"
    file.write_text("before")
    status, _, complaint = slop_code("export", stored(), "--format", "lines", "-o", file)
    assert (status, complaint) == (
        3,
        f"slop-code: {file}: No space left on device; the disk is full: free space there\n",
    )
    assert file.read_text() == "before"
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_output_without_permission_is_named_as_it_was_given(stored, slop_code, monkeypatch, tmp_path):
    """Rights do not bind who runs as root, so that the system's refusal is put in."""
    file, opened = tmp_path / "results.csv", os.open

    def refuse(path, *arguments):
        if "results.csv" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments)

    folder = stored()
    monkeypatch.setattr(os, "open", refuse)
    assert slop_code("export", folder, "--format", "csv", "-o", file) == (
        3,
        b"",
        f"slop-code: {file}: Permission denied; give this user access to it\n",
    )


@pytest.fixture
def bring(tmp_path, monkeypatch):
    """Install a package with an exporter called `lines`, for this process."""

    def install(body):
        source = f"def export(entries, out, policy):\n    {body}\n"
        site = install_package(tmp_path / "site", "slop_code.exporters", "lines = other_package:export", source)
        monkeypatch.delitem(sys.modules, "other_package", raising=False)
        monkeypatch.syspath_prepend(site)

    return install


def test_another_package_brings_a_format(stored, slop_code, tmp_path, bring):
    line = "f'{entry.line.label} {entry.line.passes(policy)}\\n'.encode()"
    bring(f"assert iter(entries) is entries; out.writelines({line} for entry in entries)")
    assert slop_code("export", stored(count=2), "--format", "lines", "--pass-policy", "any")[:2] == (
        0,
        b"monday/words/checkpoint_1 True\nmonday/words/checkpoint_2 True\n",
    )
    assert slop_code("export", tmp_path, "--format", "nope")[2].endswith("markdown, inspect, scb, lines\n")


@pytest.mark.e2e
def test_an_installed_package_brings_a_format_to_the_command(stored, tmp_path):
    source = """
        def export(entries, out, policy):
            out.writelines(f"{entry.line.label}\\n".encode() for entry in entries)
    """
    site = install_package(tmp_path / "site", "slop_code.exporters", "lines = other_package:export", source)
    argv = [SLOP_CODE, "export", stored(), "--format", "lines"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "monday/words/checkpoint_1\n", "")


@pytest.mark.parametrize("name", FORMATS)
def test_exporters_keep_at_most_two_results_in_memory(name, stored):
    """While one is read, the one before is still at hand; none before that."""
    made, most = [], 0
    gc.freeze()  # what was there before is not looked at again and again

    def watched():
        nonlocal most
        for entry in read_runs([stored(count=5)])[0].entries():
            made.append(weakref.ref(entry.results))
            gc.collect()
            most = max(most, sum(one() is not None for one in made))
            yield entry

    exporter(name)(watched(), io.BytesIO(), PassPolicy.ANY)
    assert len(made) == 5
    assert most <= 2


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["csv", "parquet", "junit"])
def test_a_closed_pipe_ends_the_export_without_an_error_message(name, stored):
    argv = [SLOP_CODE, "export", stored(count=30), "--format", name]
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(argv, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stderr.read() == b""
    assert process.returncode == 141
