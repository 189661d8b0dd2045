"""Set-up of submissions, once per content: the commands of the environment, or the Python requirements."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code._version import __version__
from slop_code.execution.dependencies.find_dependencies import Dependencies, python_dependencies
from slop_code.execution.installation.setup_failure import (
    PROBE_S,
    REQUIREMENTS,
    RESOLVED,
    SetupStep,
    SetupStepError,
    StepKind,
    damaged_environment,
    is_worth_repeating,
    setup_error,
)
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import PATH, PreparedSubject, SetupJob
from slop_code.execution.submission import tree_digest
from slop_code.execution.trees.manifest import check_sample_manifest, write_sample_manifest
from slop_code.execution.uv import network_variables, uv_identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.execution.process import ProcessResult
    from slop_code.execution.sandbox import Sandbox, SetupBox

LAYERS = "layers"
"""Cache entries with the workspace, as set-up commands left it."""

SUBJECTS = "subjects"


@dataclass(frozen=True, slots=True)
class SetupPlan:
    kind: str
    """Kind of its cache entry."""

    content: str
    """The part of the submission that the steps depend on."""

    steps: Sequence[SetupStep]
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Texts of files that the steps use, by the words that stand for their paths."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the submission that the steps read, where they need no others."""


def prepare_subject(
    sandbox: Sandbox, submission: Path, hidden: Sequence[Path], entry_file: str | None = None
) -> PreparedSubject:
    """Run the environment's set-up commands, or install what a Python submission requires; once per content.

    Raises SubmissionSetupError where the submission is at fault, SlowSetupError where it is unless the machine was
    busy, and InfrastructureError for any other failure.
    """
    plan = _plan(sandbox, submission, entry_file)
    if not plan.steps:
        return PreparedSubject()
    setup = SubjectSetup(sandbox, submission, hidden, plan)
    try:
        entry = setup.load_or_build()
    except SetupStepError as first:
        # The failed box is gone, with all that it wrote: a disk that it filled has room again.
        if not is_worth_repeating(first):
            raise setup_error(sandbox.spec, first, setup) from first
        try:
            entry = setup.load_or_build()
        except SetupStepError as second:
            raise setup_error(sandbox.spec, second, setup) from second
    return PreparedSubject(entry, plan.kind == LAYERS, _test_environment(sandbox, entry, plan.kind))


def _plan(sandbox: Sandbox, submission: Path, entry_file: str | None) -> SetupPlan:
    spec, python = sandbox.spec, sandbox.subject_python()
    is_python = spec.interpreter() is not None
    if commands := [*spec.setup.commands, *spec.setup.eval_commands]:
        steps = python_steps(python, Dependencies()) if is_python else []
        shell = spec.local.shell or "/bin/sh"
        steps += [
            SetupStep([shell, "-c", command], StepKind.COMMAND, first=number == 0)
            for number, command in enumerate(commands)
        ]
        return SetupPlan(LAYERS, tree_digest(submission), steps)
    if not is_python:
        return SetupPlan(SUBJECTS, "", [])
    needed = python_dependencies(submission, entry_file)
    inputs = {} if needed.requirements is None else {REQUIREMENTS: needed.requirements}
    if needed.preferred_lock is not None:
        inputs[RESOLVED] = needed.preferred_lock.preferences
    if needed.plain:
        content = digest_of([needed.text, inputs])
    elif needed.source:
        content = tree_digest(submission)
    else:
        content = ""
    return SetupPlan(SUBJECTS, content, python_steps(python, needed), inputs, needed.files)


def python_steps(python: str, dependencies: Dependencies) -> list[SetupStep]:
    venv = ["uv", "venv", "--quiet", "--no-config", "--relocatable", "--allow-existing", "--python", python]
    install = ["uv", "pip", "install", "--no-config", "--compile-bytecode", "--link-mode=copy"]
    steps = [SetupStep([*venv, "{env}"], StepKind.TOOL)]
    source = dependencies.source
    if source is None:
        return steps
    if dependencies.export:
        export = ["uv", "export", "--quiet", "--no-config", "--frozen", "--offline", "--no-emit-project", "--no-dev"]
        export += ["--python", "{env}/bin/python", "--output-file", "{tmp}/exported.txt"]
        steps.append(SetupStep(export, StepKind.OWN_CODE))
        source = "{tmp}/exported.txt"
    elif dependencies.requirements is not None:
        source = REQUIREMENTS
    kind = StepKind.PACKAGES if dependencies.plain else StepKind.OWN_CODE
    # A pyproject.toml next to a requirements file is ignored.
    is_list = dependencies.source == "requirements.txt" or dependencies.requirements is not None
    no_sources = ["--no-sources"] if is_list else []
    if dependencies.preferred_lock is not None:
        # uv prefers the versions that it finds in its output file.
        resolve = ["uv", "pip", "compile", "--quiet", "--no-config", "--python", "{env}/bin/python"]
        steps.append(SetupStep([*resolve, *no_sources, "--output-file", RESOLVED, source], kind))
        source = RESOLVED
    if dependencies.locked:
        install.append("--no-deps")
    return [*steps, SetupStep([*install, *no_sources, "--python", "{env}/bin/python", "-r", source], kind)]


@dataclass(frozen=True, slots=True)
class SubjectSetup:
    sandbox: Sandbox
    submission: Path
    hidden: Sequence[Path]
    plan: SetupPlan

    def load_or_build(self) -> Path:
        """The cache entry; raises SetupStepError for a step that fails."""
        sandbox, steps = self.sandbox, [step.argv for step in self.plan.steps]
        fixed = [sandbox.spec.environment.env, [__version__, *sandbox.subject_identity(), *uv_identity()]]
        key = digest_of([self.plan.content, steps, *fixed])

        def build(scratch: Path) -> None:
            try:
                with self._open_box(self._job(self.submission, scratch)) as (setup_box, paths):
                    self._run_steps(setup_box, [step.with_paths(paths) for step in self.plan.steps])
                sandbox.check_subject(scratch)
            except ValueError as damage:
                raise damaged_environment(sandbox.spec, self.plan.steps, damage) from damage
            write_sample_manifest(scratch)

        def load(entry: Path) -> Path:
            check_sample_manifest(entry)
            sandbox.check_subject(entry)
            return entry

        return sandbox.cache.load_or_build(self.plan.kind, key, build, load)

    def run_without_submission(self, argv: Sequence[str]) -> ProcessResult:
        with self._open_probe({}) as (setup_box, paths):
            return setup_box.run(SetupStep(argv, StepKind.TOOL).with_paths(paths).argv, PROBE_S)

    def resolve_again(self) -> SetupStepError | None:
        *others, install = self.plan.steps
        resolve = replace(install, argv=[*install.argv, "--dry-run"])
        with self._open_probe(self.plan.files) as (setup_box, paths):
            try:
                self._run_steps(setup_box, [step.with_paths(paths) for step in (*others, resolve)])
            except SetupStepError as error:
                return error
        return None

    @contextlib.contextmanager
    def _open_probe(self, files: Mapping[str, str]) -> Iterator[tuple[SetupBox, Mapping[str, str]]]:
        with self.sandbox.cache.session_folder() as folder:
            workspace, scratch = folder / "workspace", folder / "scratch"
            for path in (workspace, scratch):
                path.mkdir()
            for name, text in files.items():
                (workspace / name).write_text(text, encoding="utf-8")
            with self._open_box(replace(self._job(workspace, scratch), discard=True)) as box:
                yield box

    @contextlib.contextmanager
    def _open_box(self, job: SetupJob) -> Iterator[tuple[SetupBox, Mapping[str, str]]]:
        """The box, and the paths that words of its commands stand for."""
        sandbox = self.sandbox
        paths = {"{env}": sandbox.subject_env(job.scratch), "{tmp}": sandbox.layout(job.scratch).tmp}
        paths["{python}"] = sandbox.subject_python()
        with sandbox.setup_box(job) as setup_box:
            for word, text in self.plan.inputs.items():
                paths[word] = setup_box.put(f"{word.strip('{}')}.txt", text)
            yield setup_box, paths

    def _job(self, submission: Path, scratch: Path) -> SetupJob:
        return SetupJob(
            submission=submission,
            environment=_setup_environment(self.sandbox, scratch),
            scratch=scratch,
            keep_workspace=self.plan.kind == LAYERS,
            hidden=self.hidden,
        )

    def _run_steps(self, setup_box: SetupBox, steps: Sequence[SetupStep]) -> None:
        timeout = self.sandbox.spec.setup.timeout
        deadline = time.monotonic() + timeout
        for step in steps:
            self.sandbox.progress(ProgressEvent(ProgressKind.RUN_SETUP_COMMAND, step.shown))
            done = setup_box.run(step.argv, max(0.0, deadline - time.monotonic()))
            if done.exit_code != 0:
                raise SetupStepError(step, done, timeout, self.sandbox.disk)


def _setup_environment(sandbox: Sandbox, scratch: Path) -> dict[str, str]:
    layout, given, env = sandbox.layout(scratch), sandbox.variables(), sandbox.subject_env(scratch)
    path = f"{layout.tools}:{given.get('PATH') or PATH}"
    own = {"PATH": path, "UV_PYTHON": sandbox.subject_python()}
    if sandbox.spec.interpreter() is not None:
        # uv and pip prefer these variables to VIRTUAL_ENV: the host's interpreter has packages of its own.
        python = f"{env}/bin/python"
        own = {"PATH": f"{env}/bin:{path}", "UV_PYTHON": python, "PIP_PYTHON": python, "PIP_REQUIRE_VIRTUALENV": "1"}
    return {
        **given,
        **own,
        "HOME": layout.home,
        "LANG": "C.UTF-8",
        "UV_CACHE_DIR": f"{layout.tmp}/uv",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "VIRTUAL_ENV": env,
        **network_variables(),
        **sandbox.spec.environment.env,
    }


def _test_environment(sandbox: Sandbox, entry: Path, kind: str) -> dict[str, str]:
    """Variables that keep uv offline, and on the submission's own environment, while the tests run."""
    offline = {"UV_OFFLINE": "1", "UV_NO_SYNC": "1", "UV_PYTHON_DOWNLOADS": "never"}
    if sandbox.spec.interpreter() is None:
        return {**offline, "UV_PYTHON": sandbox.subject_python()}
    env = sandbox.subject_env(entry)
    # Set-up commands may have made the `.venv` that `uv run` takes by itself.
    project = {"UV_PROJECT_ENVIRONMENT": env} if kind == SUBJECTS else {}
    return {**offline, **project, "UV_PYTHON": f"{env}/bin/python"}
