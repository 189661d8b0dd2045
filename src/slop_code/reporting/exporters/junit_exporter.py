"""JUnit XML, for Jenkins, GitLab and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO
from xml.etree import ElementTree

from slop_code.reporting.failures.headline import headline
from slop_code.reporting.resource_text import limit_lines
from slop_code.reporting.text import file_safe, has_verdict, no_verdict_text, rates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from xml.etree.ElementTree import Element

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import TestResult
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import StoredCheckpoint

TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}
CHECKPOINT = "(checkpoint)"
"""Name of the test case that has the reason why there is no verdict."""


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:
    out.write(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="slop-code">\n')
    for entry in entries:
        element = suite(entry, policy)
        ElementTree.indent(element, level=1)
        out.write(f"  {ElementTree.tostring(element, encoding='unicode')}\n".encode())
    out.write(b"</testsuites>\n")


def suite(entry: StoredCheckpoint, policy: Policy) -> Element:
    tests = entry.results.tests if entry.results else []
    cases = [case(test, entry.line) for test in tests]
    if not has_verdict(entry.line):
        cases.append(_failed_checkpoint(entry.line))
    element = ElementTree.Element("testsuite", name=file_safe(entry.line.label), tests=str(len(cases)))
    for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(word, str(sum(case.find(tag) is not None for case in cases)))
    element.set("time", _seconds(sum(test.duration_ms for test in tests)))
    properties = ElementTree.SubElement(element, "properties")
    for name, value in facts(entry, policy):
        ElementTree.SubElement(properties, "property", name=name, value=file_safe(value))
    element.extend(cases)
    return element


def case(test: TestResult, line: CheckpointLine) -> Element:
    module, name = split_id(test)
    element = ElementTree.Element("testcase", name=name, classname=f"{_package(line)}.{module}")
    element.set("group", test.group_type)
    element.set("time", _seconds(test.duration_ms))
    if not has_verdict(line):
        message = file_safe(f"{test.status}, but {no_verdict_text(line)}")
        _add_result(element, "skipped", line.state, message, described(test))
    elif test.quarantined and test.status != "passed":
        _add_result(
            element,
            "skipped",
            "quarantined",
            file_safe(f"{test.status}, but quarantined: no effect on the verdict"),
            described(test),
        )
    elif test.status != "passed":
        message = headline(test.failure_message or test.status)
        _add_result(element, TAGS[test.status], test.status, message, described(test))
    if test.output:
        ElementTree.SubElement(element, "system-out").text = file_safe(test.output)
    return element


def described(test: TestResult) -> str:
    """The whole message, followed by the limits that struck and the commands that the test ran."""
    ran = [f"ran: {call}" for call in test.calls]
    return file_safe("\n".join([test.failure_message or "", *limit_lines(test), *ran]).strip("\n"))


def split_id(test: TestResult) -> tuple[str, str]:
    """`("tests.a.TestB", "test_c[x::y]")`: module and class, and the name with its parameters."""
    head, bracket, parameters = test.id.partition("[")
    *classes, name = head.split("::")
    module = [test.file_path.removesuffix(".py").replace("/", "."), *classes]
    return file_safe(".".join(module)), file_safe(name + bracket + parameters)


def _failed_checkpoint(line: CheckpointLine) -> Element:
    element = ElementTree.Element("testcase", name=CHECKPOINT, classname=_package(line), time="0.000")
    _add_result(element, "error", line.state, headline(no_verdict_text(line)), file_safe(line.reason or ""))
    return element


def _add_result(element: Element, tag: str, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(element, tag, type=kind, message=message).text = text


def facts(entry: StoredCheckpoint, policy: Policy) -> Iterator[tuple[str, str]]:
    """Properties of the checkpoint."""
    line = entry.line
    yield from (("run", line.run), ("problem", line.problem), ("checkpoint", line.checkpoint))
    yield from (("order", str(line.order)), ("state", line.state))
    yield from [("reason", line.reason)] if line.reason else []
    yield from (("policy", policy), ("passed", str(line.passes(policy)).lower()))
    yield from ((f"{policy}_rate", f"{rate:.6g}") for policy, rate in rates_of(line).items() if rate is not None)
    if line.agent and line.agent.cost is not None:
        yield "agent_cost", f"{line.agent.cost:.6g}"
    if line.regressions:
        yield "regressions_introduced", str(line.regressions.introduced)
        yield "regressions_repaired", str(line.regressions.repaired)
    if entry.results:
        source = entry.results.provenance
        yield from ((f"{name}_digest", digest) for name, digest in source.digests.model_dump().items() if digest)
        versions = (("evaluation_version", source.evaluation_version), ("slop_code", source.slop_code))
        yield from ((name, version) for name, version in versions if version)


def _package(line: CheckpointLine) -> str:
    """Readers identify a test by class and name alone, so the class name includes run, problem and checkpoint."""
    return file_safe(".".join((line.run, line.problem, line.checkpoint)))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"
