"""Rules about fixed sleeps, and about the network."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import aliases, called, full_name, nodes, strings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

SLEEPS = Rule.warning(
    "fixed-sleep",
    "A test sleeps for a fixed time",
    "Wait for the event in a bounded loop that checks, sleeps for some hundredths of a second, and checks again.",
)
NETWORK = Rule.warning(
    "uses-network",
    "A test uses the network",
    "Serve the data on loopback, or store it as a file: tests have no network while they run.",
)
SLEEPERS = frozenset({"time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep"})
MIN_LONG_SLEEP = 1.0
HANDLERS = re.compile(r"do_[A-Z]+|handle\w*|on_\w+")
"""Handlers of a server inside a test may be slow on purpose."""

VERBS = ("get", "post", "put", "patch", "delete", "head", "options", "request", "stream")
ASKERS = frozenset({
    "urllib.request.urlopen", "urllib.request.urlretrieve", "urllib.request.Request", "http.client.HTTPConnection",
    "http.client.HTTPSConnection", "socket.create_connection", *(f"requests.{verb}" for verb in VERBS),
    *(f"httpx.{verb}" for verb in VERBS),
})  # fmt: skip
REPLACED = frozenset({"proxies", "proxy", "transport"})
"""Arguments that replace the connection."""

COMMANDS = frozenset({"curl", "wget", "git"})
LOOPBACK = re.compile(r"(?:.*\.)?localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|::1?|.*\.invalid|", re.IGNORECASE)
HOST = re.compile(r"(?=.*\.)[A-Za-z0-9.-]+")


def sleeping(files: ProblemFiles) -> Iterator[Finding]:
    for source in files.sources:
        for line, seconds in sleeps(source.tree):
            time = f" for {seconds:g} s" if seconds is not None else ""
            yield Finding(SLEEPS, Location(source.file, line), f"sleeps{time} instead of waiting for an event")


def sleeps(tree: ast.Module) -> Iterator[tuple[int, float | None]]:
    """Line and seconds of each sleep outside of a loop, and of each sleep of a second or more."""
    known = aliases(tree)
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, polling = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and HANDLERS.fullmatch(node.name):
            continue
        if isinstance(node, ast.Call) and full_name(node.func, known) in SLEEPERS:
            seconds = _seconds(node)
            if seconds != 0 and (not polling or (seconds is not None and seconds >= MIN_LONG_SLEEP)):
                yield node.lineno, seconds
        polling = polling or isinstance(node, ast.While | ast.For | ast.AsyncFor)
        waiting += [(inner, polling) for inner in ast.iter_child_nodes(node)]


def _seconds(call: ast.Call) -> float | None:
    value = call.args[0] if call.args else None
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return float(value.value) if abs(value.value) < 1e9 else None
    return None


def networking(files: ProblemFiles) -> Iterator[Finding]:
    for source in files.sources:
        for line, host in hosts(source.tree):
            message = f"connects to {single_line(host)}, which is not this machine"
            yield Finding(NETWORK, Location(source.file, line), message)


def hosts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each remote host in a call that connects."""
    known = aliases(tree)
    for node in nodes(tree):
        if not isinstance(node, ast.Call) or any(keyword.arg in REPLACED for keyword in node.keywords):
            continue
        name = full_name(node.func, known)
        asked = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("url", "host", "address"))]
        for argument in asked:
            if name in ASKERS:
                host = _host(argument, bare=name.startswith("http.client."))
            elif called(node) in ("connect", "connect_ex"):
                host = _host(argument, bare=False) if isinstance(argument, ast.Tuple) else ""
            elif name.startswith("subprocess."):
                host = _commanded(argument)
            else:
                host = ""
            if host and not LOOPBACK.fullmatch(host):
                yield node.lineno, host


def _host(argument: ast.expr, *, bare: bool) -> str:
    """The host of a URL or of a pair of host and port; with `bare`, also a plain host name."""
    if isinstance(argument, ast.Tuple):
        first = argument.elts[0] if len(argument.elts) == 2 else None
        text = first.value if isinstance(first, ast.Constant) else None
        return text if isinstance(text, str) and HOST.fullmatch(text) else ""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0] if argument.values else argument
        if isinstance(argument, ast.Constant) and "/" not in str(argument.value).partition("://")[2]:
            return ""
    text = argument.value if isinstance(argument, ast.Constant) else None
    if not isinstance(text, str):
        return ""
    if "://" in text:
        return _host_of(text)
    return text.partition(":")[0] if bare and HOST.fullmatch(text.partition(":")[0]) else ""


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        return (parts.hostname or "") if parts.scheme in ("http", "https", "ftp", "ws", "wss", "git") else ""
    except ValueError:
        return ""


def _commanded(argument: ast.expr) -> str:
    """`["git", "clone", "https://…"]`."""
    if not isinstance(argument, ast.List | ast.Tuple) or not argument.elts:
        return ""
    words = [next(strings(item), "") if isinstance(item, ast.Constant) else "" for item in argument.elts]
    if words[0] not in COMMANDS:
        return ""
    return next((host for word in words[1:] if "://" in word and (host := _host_of(word))), "")
