"""`slop-code env`: the environments that ship with the package."""

from __future__ import annotations

import typer

from slop_code.execution.spec import shipped_environments

env_app = typer.Typer(help="Environments.", no_args_is_help=True)


@env_app.callback()
def environments() -> None:
    """Environments that ship with slop-code."""


@env_app.command("ls")
def ls() -> None:
    """List the environments that can be given to -e by name."""
    for name, description in shipped_environments().items():
        typer.echo(f"{name:24} {description}")
