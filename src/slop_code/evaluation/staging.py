"""Staging: the tests folder of a checkpoint, copied and collected once for the same content."""

from __future__ import annotations

import functools
import json
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from slop_code._io import digest_of, keep_ends
from slop_code._version import __version__
from slop_code.errors import InfrastructureError
from slop_code.evaluation import test_code
from slop_code.evaluation.command import (
    FIXTURES,
    INI,
    judge_sources,
)
from slop_code.evaluation.evidence import NO_TESTS, USAGE_ERROR, PytestExit
from slop_code.evaluation.groups import QUARANTINED
from slop_code.evaluation.infrastructure import collection_details, collection_failure
from slop_code.evaluation.problem.problem_contents import Contents, file_digests, selected_inputs
from slop_code.evaluation.problem.quarantine import read_quarantine
from slop_code.evaluation.reports.stream import read_stream
from slop_code.evaluation.result_files.evidence_files import EXIT, ROSTER, STREAM
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.selection import (
    Selection,
    checkpoint_of,
    files_in,
    folders_of_tests,
)
from slop_code.evaluation.test_code.find_test_code import find_test_code
from slop_code.evaluation.test_code.test_inputs import code_digests
from slop_code.execution.assets import asset_environment, copy_assets
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import LOG, TESTS_DIR, JudgeRequest
from slop_code.execution.session import Session
from slop_code.execution.trees.manifest import check_manifest, write_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.reports.stream import Stream
    from slop_code.evaluation.test_code.test_inputs import TestInputs
    from slop_code.execution.sandbox import BoxLayout

ASSETS = "assets"
LOG_LIMIT = 16 << 20
PERMANENT_EXITS = (0, 1, 2, NO_TESTS)
"""Exit codes with which pytest says what is wrong with the tests. uvx ends with 1 or 2 for errors of its own."""

HASH_SEEDS = 1 << 32
SETTINGS_VARIABLE = "SLOP_CODE_JUDGE"
TEST_CODE, ASSUMED_CODE = "test_code.json", "assumed_code.json"
TEST_FOLDERS = "test_folders.json"
CODE_DIGESTS = "code_digests.json"


class CollectionError(InfrastructureError):
    """The tests of a checkpoint cannot be collected."""

    def __init__(self, reason: str, exit_code: int | None, reports: Path) -> None:
        super().__init__(reason, exit_code)
        started = (reports / STREAM).is_file()
        self.permanent = exit_code == USAGE_ERROR or (started and exit_code in PERMANENT_EXITS)
        """Trying again changes nothing: no submission takes part, and pytest ended by itself."""

        keep_ends(reports / LOG, LOG_LIMIT)
        present = [reports / name for name in (STREAM, LOG) if (reports / name).is_file()]
        ended = PytestExit(pair=1, exit_code=exit_code, session_timeout=None, error=reason)
        self.files = {path.name: path.read_bytes() for path in present}
        """Everything that the collection left, by the names of the files."""
        self.files[EXIT] = (ended.model_dump_json() + "\n").encode()


@dataclass(frozen=True, slots=True)
class JudgeSelection:
    """The tests that a judge is to run, and in which order."""

    only: Sequence[str] | None = None
    """The node ids, or None for all."""

    seed: int | None = None
    """Shuffles the tests, and seeds Python's hashes; None does neither."""

    quarantined: Sequence[str] = ()
    """The node ids of quarantined tests."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Folders that every evaluation of a checkpoint mounts as they are."""

    folder: Path
    roster: Roster
    digest: str
    unattributed: tuple[str, ...]
    inputs: TestInputs

    @property
    def tests(self) -> Path:
        return self.folder / "tests"

    @property
    def plugin(self) -> Path:
        return self.folder / "judge"


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """Inputs of staging; a `PytestRunner` makes them with its own methods, which may be overridden."""

    selection: Selection
    ini: str
    command: Sequence[str]
    """The command that collects the tests, without `--collect-only`."""

    copy: Callable[[Path], object]
    """Copies the tests to `.evaluation_tests` of a folder."""

    copied: str = ""
    """The digest of the files that an overridden `copy` makes; empty if it is not overridden."""


def copy_tests(problem: ProblemConfig, selection: Selection, ini: str, destination: Path) -> None:
    """Copies the selected tests, their helpers and data, the assets and the ini."""
    for relative in selection.files:
        target = destination / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(selection.root / relative, target)
    copy_assets(problem.assets, destination / ASSETS)
    (destination / INI).write_text(ini, encoding="utf-8")


def copy_shown(problem: ProblemConfig, tests: Path, destination: Path) -> None:
    """Copies what the subject sees from the start: the assets, and the files that the problem declares `visible`."""
    destination.mkdir(parents=True)
    copy_assets(problem.assets, destination / ASSETS)
    for pattern in problem.visible:
        for path in sorted(tests.glob(pattern)):
            target = destination / path.relative_to(tests)
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)


def stage(context: EvaluationContext, plan: StagingPlan) -> Staged:
    """The staged tests, collected once without any subject; every later evaluation accounts for that roster."""
    problem, checkpoint = context.problem, context.checkpoint
    inputs = selected_inputs(problem, checkpoint, Contents.of(problem), plan.selection, plan.ini)
    digest = digest_of([inputs.tests_digest, plan.copied]) if plan.copied else inputs.tests_digest
    sources = judge_sources()

    def build(folder: Path) -> None:
        context.progress(ProgressEvent(ProgressKind.COLLECT_TESTS, problem=problem.name, checkpoint=checkpoint.name))
        plan.copy(folder)
        (folder / TESTS_DIR).rename(folder / "tests")
        copy_shown(problem, folder / "tests", folder / "shown")
        folders = folders_of_tests(files_in(folder / "tests"), problem.checkpoints)
        (folder / TEST_FOLDERS).write_text(json.dumps(sorted(map(str, folders))))
        (folder / "judge" / FIXTURES).mkdir(parents=True)
        for name, source in sources.items():
            shutil.copyfile(source, folder / "judge" / name)
        stream = _collect(context, plan.command, folder)
        (folder / ROSTER).write_text(_roster(problem, stream.collected).to_json())
        _write_test_code(folder, stream)
        (folder / CODE_DIGESTS).write_text(json.dumps(code_digests(folder / "tests", plan.selection.files)))
        write_manifest(folder)

    def load(folder: Path) -> Staged:
        check_manifest(folder)
        roster = Roster.from_json((folder / ROSTER).read_text())
        copied = file_digests(f"{folder}/judge/{name}" for name in sources)
        if [digest[1:] for digest in copied] != [digest[1:] for digest in judge_digests()]:  # their modes may differ
            raise ValueError("not our plugin")
        code = json.loads((folder / CODE_DIGESTS).read_text())
        return Staged(folder, roster, digest, plan.selection.unattributed, inputs.model_copy(update={"code": code}))

    key = _staging_key(context, plan.command, digest, inputs.config_digest)
    return context.cache.load_or_build("tests", key, build, load)


def _staging_key(context: EvaluationContext, command: Sequence[str], tests_digest: str, config_digest: str) -> str:
    versions, variables = dict(context.tools.versions), context.environment.environment.env
    content = [tests_digest, config_digest, list(command), versions, variables]
    return digest_of(
        [*content, *context.sandbox.identity(), __version__, *judge_digests(), *file_digests(_rule_sources())]
    )


@functools.cache
def _rule_sources() -> tuple[str, ...]:
    """The modules that decide which files are test code."""
    modules = sorted(Path(str(test_code.__file__)).parent.glob("*.py"))
    return (*map(str, modules), str(Path(__file__).with_name("selection.py")))


def _write_test_code(folder: Path, stream: Stream) -> None:
    shown = {path.relative_to(folder / "shown").as_posix() for path in (folder / "shown").rglob("*")}
    code = find_test_code(folder / "tests", stream.loaded or (), stream.import_roots, shown)
    (folder / TEST_CODE).write_text(json.dumps(sorted(code.files)))
    (folder / ASSUMED_CODE).write_text(json.dumps(sorted(code.assumed)))


def judge_digests() -> list[str]:
    """Those of `judge_sources`, in their order."""
    return file_digests(map(str, judge_sources().values()))


def _collect(context: EvaluationContext, command: Sequence[str], folder: Path) -> Stream:
    with Session.open(context.sandbox, None) as session:
        argv = [*command[:-1], "--collect-only", command[-1]]
        timeout = context.environment.timeouts.collection
        request = judge_request(session, context, folder, argv, timeout)
        done = session.judge(request).done
        stream = read_stream(request.reports / STREAM)
        late = f"collecting the tests did not end within the {timeout:g} s of timeouts.collection"
        reason = late if done.exit_code is None else _collection_failure(context, done.exit_code, stream)
        if reason is not None:
            errors = [] if done.exit_code is None else stream.collection_errors
            details = collection_details(errors) or done.output
            raise CollectionError(f"{reason}\n{details}".strip(), done.exit_code, request.reports)
    return stream


def _roster(problem: ProblemConfig, collected: Sequence[RosterEntry]) -> Roster:
    quarantine = read_quarantine(problem)
    return Roster(tuple(_quarantined(entry) if quarantine.covers(entry.nodeid) else entry for entry in collected))


def _collection_failure(context: EvaluationContext, exit_code: int, stream: Stream) -> str | None:
    problem, checkpoint = context.problem, context.checkpoint
    if reason := collection_failure(exit_code, stream.collection_errors):
        return reason
    names, files = list(problem.checkpoints), {entry.nodeid.partition("::")[0] for entry in stream.collected}
    if all(checkpoint_of(PurePosixPath(file).name, names) != checkpoint.name for file in files):
        return f"no test of {checkpoint.name} itself was collected; is tests/test_{checkpoint.name}.py empty?"
    return "the judge did not say which files it loaded" if stream.loaded is None else None


def _quarantined(entry: RosterEntry) -> RosterEntry:
    return RosterEntry(entry.nodeid, tuple(dict.fromkeys((QUARANTINED, *entry.markers))))


def judge_request(
    session: Session,
    context: EvaluationContext,
    staged: Path,
    argv: Sequence[str],
    timeout: float,
    selection: JudgeSelection | None = None,
) -> JudgeRequest:
    """`staged` is the folder of the staged tests. Creates the folder of the reports."""
    reports, plugin = reports_of(session), staged / "judge"
    reports.mkdir()
    return JudgeRequest(
        argv=argv,
        environment=_judge_environment(session, context, plugin, selection or JudgeSelection()),
        tests=staged / "tests",
        shown=staged / "shown",
        reports=reports,
        tools=context.tools.entry,
        files={
            "requirements.txt": context.tools.constraints,
            "plugin": plugin,
            "settings.json": session.folder / "settings.json",
        },
        timeout=timeout,
        entrypoint=context.environment.entry(context.problem.entry_file),
        test_code=_stored_paths(staged / TEST_CODE),
        assumed_code=frozenset(_stored_paths(staged / ASSUMED_CODE)),
    )


def _stored_paths(file: Path) -> list[str]:
    """Empty if there is no such file, as that of the test code while tests are collected without a submission."""
    paths: list[str] = json.loads(file.read_text()) if file.exists() else []
    return paths


def reports_of(session: Session) -> Path:
    return session.folder / "reports"


def variables_for(problem: ProblemConfig, checkpoint: CheckpointConfig, tests: str) -> dict[str, str]:
    assets = asset_environment(problem.static_assets, f"{tests}/{ASSETS}")
    return {**checkpoint.env, **assets, "SCBENCH_CHECKPOINT": checkpoint.name}


def _judge_environment(
    session: Session, context: EvaluationContext, plugin: Path, selection: JudgeSelection
) -> dict[str, str]:
    """The judge's own variables; its plugin replaces them with those that tests and submission may see."""
    problem, checkpoint = context.problem, context.checkpoint
    layout = session.layout
    hash_seed = {} if selection.seed is None else {"PYTHONHASHSEED": str(selection.seed % HASH_SEEDS)}
    variables = session.environment({**variables_for(problem, checkpoint, layout.tests), **hash_seed})
    path = session.folder / "settings.json"
    stored = {"test_code": TEST_CODE, "test_folders": TEST_FOLDERS}
    paths = {name: _stored_paths(plugin.parent / file) for name, file in stored.items()}
    path.write_text(json.dumps(_settings(layout, context, selection, variables) | paths))
    # The judge's own process gets no variable that could make it load a file of the submission.
    return {
        **{name: variables[name] for name in ("PATH", "HOME", "LANG", "TZ")},
        SETTINGS_VARIABLE: layout.judge_path("settings.json", path),
        "PYTHONPATH": layout.judge_path("plugin", plugin),
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": "0",
        "UV_CACHE_DIR": layout.judge_path("uv-cache", context.cache.uv),
        "UV_TOOL_DIR": f"{layout.reports}/.tools",
        "UV_NO_ENV_FILE": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }


def _settings(
    layout: BoxLayout, context: EvaluationContext, selection: JudgeSelection, variables: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "stream": f"{layout.reports}/{STREAM}",
        "environment": variables,
        "tmpdir": layout.tmp,
        "tests": layout.tests,
        "guard": [layout.workspace, layout.tmp],
        "in_process": context.problem.in_process,
        "launcher": layout.launcher,
        "command": context.environment.entry(context.problem.entry_file)[:-1][:1],
        "gate": layout.gate,
        "limits": context.environment.limits.model_dump(mode="json", exclude={"cpus"}),
        "cpus": layout.cpus,
        "only": selection.only,
        "seed": selection.seed,
        "quarantined": list(selection.quarantined),
    }
