"""Habits that make verdicts depend on time, or on what is out there."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slop_code.authoring.check.failure_text import in_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import aliases, called, full_name, nodes, strings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

SLEEPS = Rule(
    "fixed-sleep",
    Severity.WARNING,
    "A test sleeps for a fixed time",
    "Wait for what it is about, in a loop with an end: look, sleep for some hundredths of a second, look again.",
)
NETWORK = Rule(
    "uses-network",
    Severity.WARNING,
    "A test asks the network",
    "Serve what it needs on loopback, or keep it as a file: tests have no network while they run.",
)
RULES = (SLEEPS, NETWORK)

SLEEPERS = frozenset({"time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep"})
LONG = 1.0
HANDLERS = re.compile(r"do_[A-Z]+|handle\w*|on_\w+")
"""A server that a test itself plays may be slow on purpose."""

VERBS = ("get", "post", "put", "patch", "delete", "head", "options", "request", "stream")
ASKERS = frozenset({
    "urllib.request.urlopen", "urllib.request.urlretrieve", "urllib.request.Request", "http.client.HTTPConnection",
    "http.client.HTTPSConnection", "socket.create_connection", *(f"requests.{verb}" for verb in VERBS),
    *(f"httpx.{verb}" for verb in VERBS),
})  # fmt: skip
COMMANDS = frozenset({"curl", "wget", "git"})
LOOPBACK = re.compile(r"(?:.*\.)?localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|::1?|.*\.invalid|", re.IGNORECASE)
HOST = re.compile(r"(?=.*\.)[A-Za-z0-9.-]+")


def sleeping(reading: ProblemFiles) -> Iterator[Finding]:
    for source in reading.sources:
        for line, seconds in sleeps(source.tree):
            time = f" for {seconds:g} s" if seconds is not None else ""
            yield Finding(SLEEPS, Location(source.file, line), f"sleeps{time} instead of waiting for something")


def sleeps(tree: ast.Module) -> Iterator[tuple[int, float | None]]:
    """Outside of a loop, and any of a second or more; with the time where it is a number."""
    known = aliases(tree)
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, polling = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and HANDLERS.fullmatch(node.name):
            continue
        if isinstance(node, ast.Call) and full_name(node.func, known) in SLEEPERS:
            seconds = _seconds(node)
            if seconds != 0 and (not polling or (seconds is not None and seconds >= LONG)):
                yield node.lineno, seconds
        polling = polling or isinstance(node, ast.While | ast.For | ast.AsyncFor)
        waiting += [(inner, polling) for inner in ast.iter_child_nodes(node)]


def _seconds(call: ast.Call) -> float | None:
    value = call.args[0] if call.args else None
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return float(value.value) if abs(value.value) < 1e9 else None
    return None


def networking(reading: ProblemFiles) -> Iterator[Finding]:
    for source in reading.sources:
        for line, host in hosts(source.tree):
            yield Finding(NETWORK, Location(source.file, line), f"asks {in_line(host)}, which is not this machine")


def hosts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each host out there that stands in a call that connects."""
    known = aliases(tree)
    for node in nodes(tree):
        if not isinstance(node, ast.Call) or any(one.arg in ("proxies", "proxy", "transport") for one in node.keywords):
            continue
        name = full_name(node.func, known)
        asked = [*node.args, *(one.value for one in node.keywords if one.arg in ("url", "host", "address"))]
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
    """Of an address, of a pair of host and port, or, where `bare`, a name alone."""
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
        found = urlsplit(url)
        return (found.hostname or "") if found.scheme in ("http", "https", "ftp", "ws", "wss", "git") else ""
    except ValueError:
        return ""


def _commanded(argument: ast.expr) -> str:
    """`["git", "clone", "https://…"]`."""
    if not isinstance(argument, ast.List | ast.Tuple) or not argument.elts:
        return ""
    words = [next(strings(one), "") if isinstance(one, ast.Constant) else "" for one in argument.elts]
    if words[0] not in COMMANDS:
        return ""
    return next((host for word in words[1:] if "://" in word and (host := _host_of(word))), "")
