"""`slop-code serve`: a reward service over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.shared_options import (
    add_executor,
    add_json,
    add_problems_dir,
    add_retries,
    add_workers,
    whole_number,
)
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from slop_code.bridges.service.server import ServerStart
    from slop_code.cli.shared_options import Commands

TOKEN_VARIABLE = "SCBENCH_SERVICE_TOKEN"


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        help="evaluate over HTTP: a reward service for trainers",
        description="Serve evaluations over HTTP. Needs the extra 'serve': pip install 'slop-code[serve]'. "
        "SIGTERM, SIGHUP and Ctrl-C let accepted requests end; a second one cancels them.",
        epilog="Exit status: 0 ended by a signal, 2 wrong use, 3 the state folder or the cache cannot be used.",
        examples=[
            "slop-code serve --problems-dir problems",
            "slop-code serve --host 0.0.0.0 --state state --problems-dir problems --allow /data/submissions",
        ],
    )
    _add_address(parser)
    _add_bounds(parser)
    option = parser.add_argument
    option(
        "-e",
        "--environment",
        action="append",
        default=[],
        metavar="ENV",
        help="an environment that requests may name, the first is the default; repeatable "
        "(default: the problem's own, else local, and no other)",
    )
    option(
        "--allow",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="requests may name submissions by their paths below this folder; repeatable",
    )
    add_executor(parser)
    option("--state", type=Path, metavar="DIR", help="folder of the durable jobs and of the token "
           "(default: service in the cache)")  # fmt: skip
    add_json(parser, "print the addresses and the file of the token as JSON when it listens")
    add_workers(parser)
    add_retries(parser)
    add_problems_dir(parser)
    parser.set_defaults(run=run)


def _add_address(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    option("--port", type=whole_number(0, 65535), default=8080, help="0: any that is free (default: 8080)")
    option("--socket", type=Path, metavar="PATH", help="listen on this Unix socket, too, for this user alone")
    option("--no-tcp", action="store_true", help="listen on the Unix socket alone")
    token = parser.add_mutually_exclusive_group().add_argument
    token("--token-file", type=Path, metavar="FILE", help="file with the token that every request has to bring "
          f"(default: ${TOKEN_VARIABLE}, else token in the folder of --state, made at the first start)")  # fmt: skip
    token("--no-token", action="store_true", help="answer without a token; only on loopback and the Unix socket. "
          "Set-up of a hostile submission can then ask for the results of tests")  # fmt: skip


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("--queue", type=whole_number(1, 1_000_000), default=1000, metavar="N",
           help="evaluations that wait or run; more are answered with status 429 (default: 1000)")  # fmt: skip
    option("--max-request", type=_size, default=32 << 20, metavar="SIZE", help="largest body (default: 32M)")
    option("--drain", type=whole_number(0, 86400), default=600, metavar="SECONDS",
           help="time for accepted requests to end after SIGTERM (default: 600)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    try:
        from slop_code.bridges.service import server
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("fastapi", "prometheus_client", "starlette", "uvicorn"):
            raise
        raise UsageError(f"no package {missing.name!r}: install it with pip install 'slop-code[serve]'") from None
    from slop_code.bridges.service.request_bounds import RequestLimits
    from slop_code.bridges.service.server_inputs import QueueSettings
    from slop_code.execution.cache import Cache
    from slop_code.runs.jobs.run_control import Retries

    cache = Cache.default()
    state = arguments.state or cache.root / "service"
    queue = QueueSettings(
        workers=arguments.num_workers,
        executor=arguments.executor,
        address=arguments.ray_address,
        retries=Retries(times=arguments.retries),
        environments=tuple(arguments.environment),
        problems_dir=arguments.problems_dir and _folder("--problems-dir", arguments.problems_dir),
        allowed=tuple(_folder("--allow", path) for path in arguments.allow),
        hidden=(state.absolute(),),
        max_jobs=arguments.queue,
    )
    token, token_file = _token(arguments, state)
    settings = server.ServerSettings(
        queue=queue,
        state=state,
        host=arguments.host,
        port=None if arguments.no_tcp else arguments.port,
        unix_socket=arguments.socket,
        limits=RequestLimits(
            max_bytes=arguments.max_request,
            token=token,
            hosts=server.HOST_NAMES if arguments.host in server.LOOPBACK else None,
        ),
        token_file=token_file,
        drain_s=arguments.drain,
    )
    _raise_descriptor_limit()
    asyncio.run(server.serve(settings, cache, _print_json if arguments.json else _print_addresses))
    return Exit.PASSED


def _raise_descriptor_limit() -> None:
    """Each waiting request has a socket and a lock file: 1024 descriptors, a common limit, are too few."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # more than the system has for a process
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _size(text: str) -> int:
    from slop_code.execution.environment import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {error}") from None


def _print_json(start: ServerStart) -> None:
    print(json.dumps(asdict(start)), flush=True)


def _print_addresses(start: ServerStart) -> None:
    parts = [f"listening on {' and '.join(start.addresses)}"]
    if start.token_file:
        parts.append(f"token in {start.token_file}")
    parts.append(
        f"{start.problems} problems" if start.problems else "no problems: give their folder with --problems-dir"
    )
    if start.resumed:
        parts.append(f"{start.resumed} durable jobs are resumed")
    if start.damaged:
        parts.append(f"{start.damaged} durable jobs cannot be read and were set aside, as *.damaged")
    print(f"slop-code: {'; '.join(parts)}", file=sys.stderr, flush=True)


def _folder(option: str, path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"{option} {path}: no such folder; create it, or give another one")
    return path


def _token(arguments: argparse.Namespace, state: Path) -> tuple[str | None, Path | None]:
    """The token and its file. It is no option: other users of the machine can read command lines."""
    from slop_code.bridges.service.access_token import checked_token, read_token, stored_token_file

    if arguments.no_token:
        return None, None
    if arguments.token_file is None and (given := os.environ.get(TOKEN_VARIABLE)):
        return checked_token(given, f"${TOKEN_VARIABLE}"), None
    file = arguments.token_file or stored_token_file(state)
    return read_token(file), file
