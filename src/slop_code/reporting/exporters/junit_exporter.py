"""JUnit XML, as Jenkins, GitLab and others read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO
from xml.etree import ElementTree

from slop_code.reporting.headline import headline
from slop_code.reporting.text import file_safe, has_verdict, no_verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from xml.etree.ElementTree import Element

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import TestResult
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import StoredCheckpoint

TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}
CHECKPOINT = "(checkpoint)"
"""What the case is called that says why there is no verdict."""


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:
    out.write(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="slop-code">\n')
    for entry in entries:
        drawn = suite(entry, policy)
        ElementTree.indent(drawn, level=1)
        out.write(f"  {ElementTree.tostring(drawn, encoding='unicode')}\n".encode())
    out.write(b"</testsuites>\n")


def suite(entry: StoredCheckpoint, policy: Policy) -> Element:
    tests = entry.results.tests if entry.results else []
    cases = [case(test, entry.line) for test in tests]
    if not has_verdict(entry.line):
        cases.append(_failed_checkpoint(entry.line))
    drawn = ElementTree.Element("testsuite", name=file_safe(entry.line.label), tests=str(len(cases)))
    for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        drawn.set(word, str(sum(one.find(tag) is not None for one in cases)))
    drawn.set("time", _seconds(sum(test.duration_ms for test in tests)))
    properties = ElementTree.SubElement(drawn, "properties")
    for name, value in facts(entry, policy):
        ElementTree.SubElement(properties, "property", name=name, value=file_safe(value))
    drawn.extend(cases)
    return drawn


def case(test: TestResult, line: CheckpointLine) -> Element:
    place, name = split_id(test)
    drawn = ElementTree.Element("testcase", name=name, classname=f"{_package(line)}.{place}")
    drawn.set("group", test.group_type)
    drawn.set("time", _seconds(test.duration_ms))
    if not has_verdict(line):
        message = file_safe(f"{test.status}, but {no_verdict_text(line)}")
        _say(drawn, "skipped", line.state, message, described(test))
    elif test.quarantined and test.status != "passed":
        _say(
            drawn,
            "skipped",
            "quarantined",
            file_safe(f"{test.status}, but quarantined: it decides nothing"),
            described(test),
        )
    elif test.status != "passed":
        message = headline(test.failure_message or test.status)
        _say(drawn, TAGS[test.status], test.status, message, described(test))
    if test.output:
        ElementTree.SubElement(drawn, "system-out").text = file_safe(test.output)
    return drawn


def described(test: TestResult) -> str:
    """The whole message, and below it what the test ran."""
    ran = [f"ran: {call}" for call in test.calls]
    return file_safe("\n".join([test.failure_message or "", *ran]).strip("\n"))


def split_id(test: TestResult) -> tuple[str, str]:
    """`("tests.a.TestB", "test_c[x::y]")`: where the test stands, and its name with its parameters."""
    head, bracket, parameters = test.id.partition("[")
    *classes, name = head.split("::")
    place = [test.file_path.removesuffix(".py").replace("/", "."), *classes]
    return file_safe(".".join(place)), file_safe(name + bracket + parameters)


def _failed_checkpoint(line: CheckpointLine) -> Element:
    drawn = ElementTree.Element("testcase", name=CHECKPOINT, classname=_package(line), time="0.000")
    _say(drawn, "error", line.state, headline(no_verdict_text(line)), file_safe(line.reason or ""))
    return drawn


def _say(drawn: Element, tag: str, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(drawn, tag, type=kind, message=message).text = text


def facts(entry: StoredCheckpoint, policy: Policy) -> Iterator[tuple[str, str]]:
    """What is known of the whole checkpoint."""
    line = entry.line
    yield from (("run", line.run), ("problem", line.problem), ("checkpoint", line.checkpoint))
    yield from (("order", str(line.order)), ("state", line.state))
    yield from [("reason", line.reason)] if line.reason else []
    yield from (("policy", policy), ("passed", str(line.passes(policy)).lower()))
    if line.regressions:
        yield "regressions_introduced", str(line.regressions.introduced)
        yield "regressions_repaired", str(line.regressions.repaired)
    if entry.results:
        made = entry.results.provenance
        yield from ((f"{name}_digest", digest) for name, digest in made.digests.model_dump().items() if digest)
        yield from (("evaluation_version", made.evaluation_version), ("slop_code", made.slop_code))


def _package(line: CheckpointLine) -> str:
    """Readers know a test by its class and name alone, whatever the suite: both differ from those of another run."""
    return file_safe(".".join((line.run, line.problem, line.checkpoint)))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"
