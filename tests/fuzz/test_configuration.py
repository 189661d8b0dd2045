"""Files that people write, with any content: a configuration or a named mistake."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.quarantine import QUARANTINE_FILE, read_quarantine
from slop_code.execution.environment import EnvironmentSpec, parse_size
from tests.fuzz.odd_input import answered, as_json, damaged, edited, fuzzed, numbers, odd_text, odd_values

DATA = Path(__file__).parents[1] / "data" / "config"
PROBLEM = (DATA / "problem" / "config.yaml").read_bytes()
ENVIRONMENT = (DATA / "docker-python3.12-uv.yaml").read_bytes()
FULL_PROBLEM = {
    **yaml.safe_load(PROBLEM),
    "env": {"A": "b", "N": 1},
    "timeout": 2.5,
    "session_timeout": 100,
    "test_dependencies": ["requests>=2"],
    "in_process": False,
    "parallel": 2,
    "parallel_by": "test",
    "visible": ["data/**/*.json"],
}
FULL_ENVIRONMENT = {
    **yaml.safe_load(ENVIRONMENT),
    "limits": {"memory": "1G", "cpus": 1, "processes": 100, "disk": "200M", "output": 32 << 20},
    "isolation": "strict",
    "network": "none",
}
CONTENT = {"schema_version": 1, "tests": [{"test": "test_a.py::test_b", "reason": "now and then"}]}
YAML_PIECES = [
    "&a", "*a", "*b", "<<:", "<<: *a", "!!python/object:os.system {}", "!!python/name:os.system", "!!int", "!!bool",
    "!!float", "!!null", "!!binary", "!!timestamp", "!!omap", "!!set", "!!pairs", "!!str", "!!map", "!!seq", "!!merge",
    "!x", "!", "? ", ": ", "- ", "| ", "> ", "---\n", "...\n", "%YAML 9.9\n", "%TAG ! x\n", "{", "}", "[", "]", ",",
    "#", "'", '"', "\\ud800", '"\\ud800"', '"\\0"', "0x" + "f" * 5000, "1" * 5000, "0b1", "017", "1_0", "1:2:3", ".inf",
    ".nan", "~", "yes", "2024-01-01", "=", "\t", "\x85", "\u2028", "\ufeff",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("fuzz") / "problem"
    shutil.copytree(DATA / "problem", target)
    (target / "tests").mkdir()
    return target


@st.composite
def yaml_text(draw: st.DrawFn, base: bytes) -> bytes:
    lines = base.decode().splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(lines) - 1))
        column = draw(st.integers(0, len(lines[number])))
        piece = draw(st.lists(st.sampled_from(YAML_PIECES) | odd_text, max_size=3).map(" ".join))
        line = lines[number][:column] + piece + draw(st.sampled_from([lines[number][column:], "\n"]))
        lines[number : number + draw(st.integers(0, 1))] = [line]
    return "".join(lines).encode("utf-8", "surrogatepass")


def dumped(document: Any) -> bytes:
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass")


def files(base: bytes, full: Any) -> st.SearchStrategy[bytes]:
    return st.one_of(
        edited(full).map(dumped), yaml_text(base), damaged(base), damaged(dumped(full)), st.binary(max_size=60)
    )


@fuzzed(raw=files(PROBLEM, FULL_PROBLEM))
def test_a_config_loads_or_is_a_config_error(folder: Path, raw: bytes) -> None:
    (folder / "config.yaml").write_bytes(raw)
    problem = answered(lambda: ProblemConfig.from_yaml(folder))
    if problem is None:
        return
    orders = [checkpoint.order for _, checkpoint in problem.iterate_checkpoint_items()]
    assert orders == sorted(set(orders))
    for name, checkpoint in problem.checkpoints.items():
        assert problem.checkpoint(name) is checkpoint
        assert problem.digest(checkpoint) == ProblemConfig.from_yaml(folder).digest(checkpoint)
    assert all("\n" not in warning.rstrip("\n") or "\n" in str(folder) for warning in problem.warnings)


@fuzzed(raw=files(ENVIRONMENT, FULL_ENVIRONMENT))
def test_an_environment_loads_or_is_a_config_error(folder: Path, raw: bytes) -> None:
    path = folder / "environment.yaml"
    path.write_bytes(raw)
    spec = answered(lambda: EnvironmentSpec.from_yaml(path))
    if spec is None:
        return
    assert spec.entry("main.py")
    assert 1 <= spec.limits.disk < 1 << 63
    assert spec.limits.memory >= 1 << 20
    assert spec.digest() == EnvironmentSpec.from_yaml(path).digest()


@fuzzed(raw=st.one_of(edited(CONTENT).map(as_json), damaged(as_json(CONTENT)), st.binary(max_size=40)))
def test_a_quarantine_loads_or_is_a_config_error(folder: Path, raw: bytes) -> None:
    (folder / "config.yaml").write_bytes(PROBLEM)
    path = folder / "tests" / QUARANTINE_FILE
    path.write_bytes(raw)
    problem = ProblemConfig.from_yaml(folder)
    quarantine = answered(lambda: read_quarantine(problem))
    if quarantine is None:
        return
    assert all(quarantine.covers(one.test) for one in quarantine.tests)
    quarantine.save(path)
    assert read_quarantine(problem) == quarantine


@fuzzed(text=odd_text, number=st.integers())
def test_checkpoint_by_what_a_person_typed(folder: Path, text: str, number: int) -> None:
    (folder / "config.yaml").write_bytes(PROBLEM)
    problem = ProblemConfig.from_yaml(folder)
    for wanted in (text, number):
        found = answered(lambda wanted=wanted: problem.checkpoint(wanted))
        assert found is None or found in problem.checkpoints.values()


SIZES = st.tuples(st.integers(0, 10**25), st.sampled_from(["", "K", "M", "G", "k", "m", "g"]))


@fuzzed(size=SIZES, ending=st.sampled_from(["", "B", "iB", "b"]))
def test_size_with_a_unit(size: tuple[int, str], ending: str) -> None:
    count, unit = size
    exact = count * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit.upper()]
    text = f"{count}{unit}{'' if not unit and ending == 'iB' else ending}"
    if not 1 <= exact < 2**63:
        with pytest.raises(ValueError, match="a size such as"):
            parse_size(text)
    else:
        assert parse_size(text) == exact


@fuzzed(value=odd_values | numbers | odd_text)
def test_a_size_is_positive_and_has_64_bits(value: Any) -> None:
    with contextlib.suppress(ValueError):
        assert 1 <= parse_size(value) < 2**63
