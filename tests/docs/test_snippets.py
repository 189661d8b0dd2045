"""The documentation is true: commands run and print what is shown, files load, tables name every key there is.

A comment directly above a block says what it is for: `<!-- snippet: file PATH -->` writes it to a file of the
reader's folder, `<!-- snippet: not run, WHY -->` leaves it out. A page that writes an environment of type docker is
run where Docker is, with the tests' own image in the place of the reader's.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
import yaml

from slop_code.cli.command_parser import VERBOSE_HELP
from slop_code.cli.main import parser
from slop_code.comparison import records as comparison
from slop_code.evaluation.config import AssetConfig, CheckpointConfig, MarkerConfig, ProblemConfig
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult
from slop_code.execution.environment import (
    CommandsSpec,
    DockerSpec,
    EnvironmentSpec,
    Limits,
    LocalSpec,
    SetupSpec,
    SnapshotSpec,
    VariablesSpec,
    parse_size,
)
from slop_code.reporting.exporters import BUILT_IN
from slop_code.reporting.exporters.export_rows import COLUMNS
from slop_code.runs import (
    CheckpointFacts,
    Retries,
    Shard,
    StoredCheckpoint,
    Submission,
    SubmissionOutcome,
    evaluate_run,
    samples,
    summary,
)
from slop_code.runs import checkpoint_lines as lines
from slop_code.runs import job_records as records
from tests.marks import in_proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
READ_FIRST = {"README.md", "tutorial.md"}
"""Pages whose commands `make test` runs; `make proof` runs those of all."""

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
BLOCK = re.compile(r"^(?:<!-- snippet: (?P<use>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
LANGUAGES = {"bash", "console", "python", "yaml", "text"}
MARK = "@@ snippet"
MOST_NOT_RUN = 6
IMAGE = "larder-python:1"


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    use: str

    @property
    def file(self) -> str | None:
        return self.use.removeprefix("file ") if self.use.startswith("file ") else None

    @property
    def is_run(self) -> bool:
        return not self.use.startswith("not run, ")

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a page, and what it has to print; None: anything, as long as it succeeds."""

    where: str
    command: str
    output: str | None


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match["language"], match["text"], match["use"] or "")
        for match in BLOCK.finditer(text)
    ]


def steps(page: Path, staged: Path) -> Iterator[Step]:
    """All that a reader does on this page, in its order."""
    for number, block in enumerate(blocks(page)):
        if not block.is_run:
            continue
        copy = staged / f"{number}.py"
        copy.write_text(block.text, encoding="utf-8")
        if block.file:
            folder = shlex.quote(str(Path(block.file).parent))
            yield Step(str(block), f"mkdir -p {folder} && cp {copy} {shlex.quote(block.file)}", None)
        elif block.language == "bash":
            yield Step(str(block), f"set -e\n{block.text}\nset +e", None)
        elif block.language == "python":
            yield Step(str(block), f"{shlex.quote(sys.executable)} {copy}", None)
        elif block.language == "console":
            yield from console_steps(block)


def console_steps(block: Block) -> Iterator[Step]:
    _, *parts = re.split(r"^\$ ", block.text, flags=re.M)
    for part in parts:
        command, _, output = part.partition("\n")
        yield Step(f"{block} $ {command}", command, output)


def script(todo: list[Step]) -> str:
    """One shell for the page, as the reader has; `$?` of a command is there for the next one."""
    lines = ["status=0"]
    for number, step in enumerate(todo):
        lines += [f"(exit $status)\n{step.command}", "status=$?", f"printf '\\n{MARK} {number} %s\\n' $status"]
    return "\n".join(lines) + "\n"


def normal(output: str) -> str:
    """Without steps that say what is made for the first time, addresses and durations."""
    kept = [line.rstrip() for line in output.splitlines() if not line.startswith("·")]
    text = re.sub(r"0x[0-9a-f]{6,}", "0x0", "\n".join(kept).strip())
    return re.sub(r"\d+\.\d+ ?(s|ms)\b", r"0.0\1", text) + "\n"


def matches(shown: str, found: str) -> bool:
    return doctest.OutputChecker().check_output(normal(shown), normal(found), doctest.ELLIPSIS)


def run_script(text: str, home: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    unwanted = ("SCBENCH_PROBLEMS_DIR", "PYTHON", "PYTEST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "PWD": str(home)}


def needs_docker(page: Path) -> bool:
    return any(block.file and block.text.startswith("type: docker\n") for block in blocks(page))


@contextlib.contextmanager
def readers_image() -> Iterator[None]:
    """The image with Python that a page takes for granted, under the name it has there."""
    subprocess.run(["docker", "tag", os.environ["SLOP_CODE_TEST_IMAGE"], IMAGE], check=True)
    try:
        yield
    finally:
        subprocess.run(["docker", "rmi", "--no-prune", IMAGE], stdout=subprocess.DEVNULL, check=True)


def reference(page: str, heading: str) -> str:
    """The text of one section, without those below it."""
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    sections = re.split(r"^#+ (.*)$", text, flags=re.M)
    return dict(zip(sections[1::2], sections[2::2], strict=True))[heading]


def rows(section: str) -> dict[str, list[str]]:
    """The cells of each row of its tables, by each name in backquotes in the first one."""
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {name: row for row in cells for name in re.findall(r"`([^`]+)`", row[0])}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_every_block_is_of_a_known_kind(page: Path) -> None:
    found = blocks(page)
    assert len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), flags=re.M)) == 2 * len(found)
    for block in found:
        assert block.language in LANGUAGES, str(block)
        assert not block.use or block.file or not block.is_run, f"{block}: {block.use}"


def test_few_blocks_are_not_run() -> None:
    assert len([block for page in PAGES for block in blocks(page) if not block.is_run]) <= MOST_NOT_RUN


def has_commands(page: Path) -> bool:
    return any(block.language != "text" for block in blocks(page))


@pytest.mark.e2e
@pytest.mark.parametrize(
    "page",
    [page if page.name in READ_FIRST else in_proof(page)[0] for page in PAGES if has_commands(page)],
    ids=name_of,
)
def test_commands(page: Path, tmp_path: Path, need_docker: Callable[[], None]) -> None:
    if needs_docker(page):
        need_docker()
    staged, home = tmp_path / "blocks", tmp_path / "home"
    staged.mkdir()
    home.mkdir()
    shutil.copytree(ROOT / "examples", home / "examples", ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    todo = list(steps(page, staged))
    with readers_image() if needs_docker(page) else contextlib.nullcontext():
        printed = run_script(script(todo), home)
    output, *rest = re.split(rf"^{MARK} (\d+) (\d+)\n", printed, flags=re.M)
    outputs = [output, *rest[2::3]]
    assert [int(number) for number in rest[0::3]] == list(range(len(todo))), printed
    for step, found, status in zip(todo, outputs, rest[1::3], strict=False):
        if step.output is None:
            assert status == "0", f"{step.where}: status {status}\n{found}"
        else:
            assert matches(step.output, found), f"{step.where}\nshown:\n{step.output}\nfound:\n{found}"


@pytest.mark.parametrize(
    "block", [block for page in PAGES for block in blocks(page) if block.language == "yaml"], ids=str
)
def test_files_load(block: Block, tmp_path: Path) -> None:
    data = yaml.safe_load(block.text)
    file = tmp_path / "config.yaml"
    file.write_text(block.text, encoding="utf-8")
    if block.file and {"apiVersion", "jobs"} & set(data):  # for Kubernetes, for a CI service
        return
    if "type" in data:
        assert EnvironmentSpec.from_yaml(file).warnings == ()
        return
    for asset in data.get("static_assets", {}).values():
        (tmp_path / asset["path"]).mkdir(parents=True)
    assert ProblemConfig.from_yaml(tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("page", "heading", "model"),
    [
        ("configuration.md", "Problem", ProblemConfig),
        ("configuration.md", "Checkpoint", CheckpointConfig),
        ("configuration.md", "Marker", MarkerConfig),
        ("configuration.md", "Asset", AssetConfig),
        ("environment.md", "Environment file", EnvironmentSpec),
        ("environment.md", "environment", VariablesSpec),
        ("environment.md", "setup", SetupSpec),
        ("environment.md", "commands", CommandsSpec),
        ("environment.md", "limits", Limits),
        ("environment.md", "local", LocalSpec),
        ("environment.md", "snapshot", SnapshotSpec),
        ("environment.md", "docker", DockerSpec),
    ],
)
def test_every_key_is_explained(page: str, heading: str, model: type[BaseModel]) -> None:
    table = rows(reference(page, heading))
    assert set(table) == set(model.model_fields)
    required = {name for name, cells in table.items() if cells[2] == "required"}
    assert required == {name for name, field in model.model_fields.items() if field.is_required()}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("evaluation.json", CorrectnessResults),
        ("Test", TestResult),
        ("Provenance", Provenance),
        ("Digests", Digests),
    ],
)
def test_every_field_is_explained(heading: str, model: type[BaseModel]) -> None:
    fields = {*model.model_fields, *model.model_computed_fields}
    assert set(rows(reference("results.md", heading))) == fields


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("checkpoint_results.jsonl", lines.CheckpointLine),
        ("Regressions", lines.Regressions),
        ("summary.json", summary.RunSummary),
        ("Failure", summary.LabelledReason),
        ("Totals", summary.Totals),
        ("Checkpoints", summary.Checkpoints),
        ("Passed", summary.Passed),
        ("Pass rate", summary.GroupRate),
        ("Changes", summary.Changes),
        ("Durations", summary.Durations),
        ("Problem", summary.ProblemSummary),
        ("Checkpoint of a problem", summary.CheckpointSummary),
        ("Share of runs", summary.Share),
        ("Samples", samples.Samples),
        ("Policy", samples.PolicySamples),
        ("Estimate", samples.Estimate),
        ("Interval", samples.Interval),
    ],
)
def test_every_field_of_a_run_is_explained(heading: str, model: type[BaseModel]) -> None:
    assert set(rows(reference("runs.md", heading))) == set(model.model_fields)


def test_every_format_and_column_is_explained() -> None:
    words = {str: "text", list: "list of text", int: "whole number", float: "number", bool: "true or false"}
    table = rows(reference("exports.md", "Columns"))
    shown = [(name, cells[1].removesuffix(" or empty")) for name, cells in table.items()]
    assert shown == [(name, words[kind]) for name, kind in COLUMNS.items()]
    assert list(rows(reference("exports.md", "Formats"))) == list(BUILT_IN)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Document", comparison.Comparison),
        ("Side", comparison.SideRuns),
        ("Pair", comparison.Pair),
        ("Checkpoint", comparison.CheckpointChange),
        ("Verdicts", comparison.Verdicts),
        ("Test", comparison.TestChange),
        ("Without a verdict", comparison.NoVerdict),
        ("Significance", comparison.Significance),
        ("Difference", comparison.Difference),
    ],
)
def test_every_field_of_a_comparison_is_explained(heading: str, model: type[BaseModel]) -> None:
    assert set(rows(reference("comparison.md", heading))) == set(model.model_fields)


def test_every_change_is_explained() -> None:
    assert set(rows(reference("comparison.md", "Changes"))) == set(get_args(comparison.Change))


def test_every_state_is_explained() -> None:
    assert set(rows(reference("runs.md", "States"))) == set(get_args(lines.VerdictState))


@pytest.mark.parametrize("described", [evaluate_run, Submission, Retries, Shard], ids=lambda one: one.__name__)
def test_every_parameter_is_explained(described: Callable[..., object]) -> None:
    found = {name: one.default for name, one in inspect.signature(described).parameters.items()}
    shown = {name: cells[1].strip("`") for name, cells in rows(reference("python.md", described.__name__)).items()}
    assert list(shown.items()) == [(name, default_of(value)) for name, value in found.items()]


def default_of(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return "silent" if callable(value) else repr(value)


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("SubmissionOutcome", list(inspect.signature(SubmissionOutcome).parameters)),
        ("Source", get_args(records.OutcomeSource)),
        ("StoredCheckpoint", list(inspect.signature(StoredCheckpoint).parameters)),
        ("CheckpointFacts", list(CheckpointFacts.model_fields)),
    ],
)
def test_every_value_is_explained(heading: str, names: Sequence[str]) -> None:
    assert sorted(rows(reference("python.md", heading))) == sorted(names)


def test_every_policy_is_explained() -> None:
    assert list(rows(reference("results.md", "Policies"))) == list(PassPolicy)


@pytest.mark.parametrize("name", ["memory", "disk", "output", "processes", "cpus"])
def test_limits_have_the_default_that_is_shown(name: str) -> None:
    shown = rows(reference("environment.md", "limits"))[name][2].strip("`")
    assert parse_size(shown) == getattr(Limits(), name)


def commands(root: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command that does something itself."""
    choices = [action.choices for action in root._actions if isinstance(action, argparse._SubParsersAction)]
    if not choices:
        yield root
    for inner in choices:
        for command in inner.values():
            yield from commands(command)


@pytest.mark.parametrize("command", dict.fromkeys(commands(parser())), ids=lambda command: command.prog)
def test_every_option_is_explained(command: argparse.ArgumentParser) -> None:
    actions = [action for action in command._actions if action.dest != "help" and action.help != VERBOSE_HELP]
    options = {name for action in actions for name in action.option_strings or [str(action.metavar)]}
    assert set(rows(reference("cli.md", command.prog))) == options


def test_every_variable_is_explained() -> None:
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".c")]
    named = {name for path in sources for name in re.findall(r"SCBENCH_[A-Z_]+", path.read_text(encoding="utf-8"))}
    shown = {*rows(reference("environment.md", "Read by slop-code"))}
    shown |= {*rows(reference("environment.md", "Set for tests and submission"))}
    prefixes = {name for name in named if "SCBENCH_ASSET_{NAME}".startswith(name)}
    assert named - prefixes == {name for name in shown if name.startswith("SCBENCH_")} - {"SCBENCH_ASSET_{NAME}"}
    assert prefixes <= {"SCBENCH_ASSET", "SCBENCH_ASSET_"}


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
