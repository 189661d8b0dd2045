"""`slop-code eval-snapshot`: one snapshot, one checkpoint."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from slop_code.cli.exits import exit_for
from slop_code.cli.find import PROBLEMS_VARIABLE, find_problem
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.spec import load_environment
from slop_code.reporting.terminal import show


def eval_snapshot(
    snapshot: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with the submission's files.", show_default=False)],
    problem: Annotated[str, typer.Option("-p", "--problem", help="Name or path of the problem.", show_default=False)],
    checkpoint: Annotated[str, typer.Option("-c", "--checkpoint", help="Number or name of the checkpoint.", show_default=False)],
    environment: Annotated[str, typer.Option("-e", "--environment", help="Name or path of the environment.")] = "local",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for evaluation.json and the raw reports; without it nothing is kept.", show_default=False),
    ] = None,
    pass_policy: Annotated[PassPolicy, typer.Option("--pass-policy", help="What counts as passed.")] = PassPolicy.ALL_CASES,
    keyword: Annotated[
        str | None, typer.Option("-k", help="Run only the tests that match, as pytest's -k.", show_default=False)
    ] = None,
    pytest_arg: Annotated[
        list[str] | None, typer.Option("--pytest-arg", help="One more argument for pytest; repeatable.", show_default=False)
    ] = None,
    problems_dir: Annotated[
        Path | None, typer.Option("--problems-dir", envvar=PROBLEMS_VARIABLE, help="Where problems given by name are.", show_default="problems")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print evaluation.json instead of a table.")] = False,
    print_command: Annotated[
        bool, typer.Option("--print-command", help="Print the pytest command and exit without running it.")
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show every step and every test.")] = False,
) -> int:
    """Evaluate one snapshot against one checkpoint of a problem."""
    config = find_problem(problem, problems_dir)
    runner = PytestRunner(
        config,
        config.checkpoint(checkpoint),
        load_environment(environment),
        snapshot,
        output_dir=output,
        progress=lambda step: _tell(step, verbose=verbose, quiet=as_json),
    )
    arguments = [*(["-k", keyword] if keyword else []), *(pytest_arg or [])]
    if print_command:
        typer.echo(shlex.join(runner._build_pytest_command(pytest_args=arguments)))
        return 0
    results = runner.run(arguments)
    if output is not None:
        results.save(output / "evaluation.json")
    if as_json:
        typer.echo(results.model_dump_json(indent=2))
    else:
        show(results, pass_policy, Console(highlight=False), every=verbose)
        if output is not None:
            typer.echo(f"written: {output / 'evaluation.json'}")
    if verbose and not as_json:
        typer.echo("  ".join(f"{name} {seconds:.2f} s" for name, seconds in results.phases.items()))
    return exit_for(results, pass_policy)


def _tell(step: str, *, verbose: bool, quiet: bool) -> None:
    """Steps go to standard error: always on a terminal, elsewhere when asked for."""
    if verbose or (sys.stderr.isatty() and not quiet) or step.startswith(("warming", "set-up")):
        typer.echo(f"· {step}", err=True)
