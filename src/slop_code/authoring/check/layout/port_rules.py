"""Rules about fixed ports that no specification names."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import called, nodes, strings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

FIXED = Rule.warning(
    "fixed-port",
    "A test uses a fixed port",
    "Bind port 0, or use the fixture `server`, and pass the number on: a fixed port may be taken.",
)
HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "::"})
ADDRESSED = frozenset({"bind", "connect", "connect_ex", "create_connection", "create_server", "open_connection"})
SERVERS = frozenset(
    {"HTTPServer", "ThreadingHTTPServer", "TCPServer", "ThreadingTCPServer", "UDPServer", "make_server"}
)
ASKING = frozenset({
    "urlopen", "Request", "get", "post", "put", "patch", "delete", "head", "options", "request", "websocket", "connect",
    "Client", "AsyncClient", "Session", "HTTPConnection",
})  # fmt: skip
STARTING = frozenset({"Popen", "run", "check_call", "check_output", "call"})
PORT_NAME = re.compile(r"(?:\w*_)?port", re.IGNORECASE)
ADDRESS_NAME = re.compile(r"(?:\w*_)?(?:addr|address|url|uri|base|base_url|endpoint|server|host|origin)", re.IGNORECASE)
URL = re.compile(r"(?:https?://|wss?://|tcp://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):([1-9]\d{1,4})(?:/.*)?")


def fixed_ports(files: ProblemFiles) -> Iterator[Finding]:
    """Ports that a specification names do not count."""
    for source in files.sources:
        seen: set[int] = set()
        for line, port in ports(source.tree):
            if line not in seen and not re.search(rf"(?<!\d){port}(?!\d)", files.specs):
                seen.add(line)
                message = f"port {port} is fixed, and no specification names it"
                yield Finding(FIXED, Location(source.file, line), message)


def ports(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Line and number of each port that is assigned, or passed to a server, a client or a command."""
    for node in nodes(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            yield from _bound(names, node.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _defaults(node.args)
        elif isinstance(node, ast.Call):
            yield from _passed(node)


def _bound(names: list[str], value: ast.expr) -> Iterator[tuple[int, int]]:
    if any(PORT_NAME.fullmatch(name) for name in names):
        yield from _number(value)
    elif any(ADDRESS_NAME.fullmatch(name) for name in names):
        yield from _address(value, HOSTS)
        yield from _in_url(value)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[int, int]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    last = positional[len(positional) - len(arguments.defaults) :]
    for name, value in [
        *zip(last, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]:
        if value is not None and PORT_NAME.fullmatch(name.arg):
            yield from _number(value)


def _passed(call: ast.Call) -> Iterator[tuple[int, int]]:
    name = called(call)
    for keyword in call.keywords:
        if keyword.arg and PORT_NAME.fullmatch(keyword.arg):
            yield from _number(keyword.value)
        elif keyword.arg in ("base_url", "url") and name in ASKING:
            yield from _in_url(keyword.value)
    for argument in call.args:
        if name in ADDRESSED | SERVERS:
            yield from _address(argument, None)
        if name in ASKING:
            yield from _in_url(argument)
        if name in STARTING:
            yield from _in_command(argument)


def _number(value: ast.expr) -> Iterator[tuple[int, int]]:
    if isinstance(value, ast.Constant) and type(value.value) is int and 0 < value.value < 1 << 16:
        yield value.lineno, value.value


def _address(value: ast.expr, hosts: frozenset[str] | None) -> Iterator[tuple[int, int]]:
    """A pair of host and port; with `hosts`, only these hosts count."""
    if isinstance(value, ast.Tuple) and len(value.elts) == 2:
        host, port = value.elts
        if hosts is None or (isinstance(host, ast.Constant) and host.value in hosts):
            yield from _number(port)


def _in_url(value: ast.expr) -> Iterator[tuple[int, int]]:
    for node in [value, *(value.values if isinstance(value, ast.JoinedStr) else ())]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (match := URL.fullmatch(node.value)):
            yield node.lineno, int(match.group(1))


def _in_command(value: ast.expr) -> Iterator[tuple[int, int]]:
    """`[*argv, "--port", "8080"]`, an argument of subprocess."""
    if not isinstance(value, ast.List | ast.Tuple):
        return
    for before, word in zip(value.elts, value.elts[1:], strict=False):
        is_option = isinstance(before, ast.Constant) and before.value in ("--port", "-p")
        text = next(strings(word), "") if isinstance(word, ast.Constant) else ""
        if is_option and re.fullmatch(r"[1-9]\d{1,4}", text):
            yield word.lineno, int(text)
