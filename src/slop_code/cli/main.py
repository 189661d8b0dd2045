"""`slop-code`: commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import sys
from typing import Annotated

import click
import typer

from slop_code import __version__
from slop_code.cli.cache import cache_app
from slop_code.cli.doctor import doctor
from slop_code.cli.environments import env_app
from slop_code.cli.eval_snapshot import eval_snapshot
from slop_code.cli.exits import Exit
from slop_code.errors import InfrastructureError, SlopCodeError

app = typer.Typer(
    name="slop-code",
    help="Evaluate code that an agent wrote in checkpoints: pytest verdicts that the code cannot forge.",
    epilog="Exit status: 0 passed, 1 not passed, 2 wrong use or configuration, 3 infrastructure failure, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)
app.command("eval-snapshot")(eval_snapshot)
app.command("doctor")(doctor)
app.add_typer(env_app, name="env")
app.add_typer(cache_app, name="cache")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"slop-code {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    try:
        sys.exit(app(standalone_mode=False) or Exit.PASSED)
    except click.exceptions.Abort:
        sys.exit(Exit.INTERRUPTED)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(Exit.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except InfrastructureError as error:
        typer.echo(f"slop-code: {error}", err=True)
        sys.exit(Exit.INFRASTRUCTURE)
    except SlopCodeError as error:
        typer.echo(f"slop-code: {error}", err=True)
        sys.exit(Exit.USAGE)
