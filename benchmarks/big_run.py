"""Generator of a large run without evaluations, for the benchmark and the tests of the report.

Failures look like those of real tests: a long message unlike all others, calls, and captured output.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from pathlib import Path

WORDS = (
    "flour", "butter", "sugar", "onion", "pepper", "carrot", "saffron", "thyme",
    "basil", "garlic", "rice", "barley", "lentil", "walnut", "honey", "salt",
)  # fmt: skip
MARKS = ((), ("functionality",), ("error",))
GROUPS = (GroupType.CORE, GroupType.FUNCTIONALITY, GroupType.ERROR)
BORN = 2
"""Number of tests that each later checkpoint adds; it drops as many of the oldest, so all have the same number."""
RECOVERS = 0.2
MESSAGE = """cook = <function cook.<locals>.call at 0x7f{address}>, title = '{title}', servings = {servings}

    @pytest.mark.functionality
    @pytest.mark.parametrize(("title", "servings"), CASES)
    def test_scales(cook, title, servings):
        done = cook("scale", title, servings)
        expected = (DATA / "expected" / f"scale_{{title}}_{{servings}}.txt").read_text()
        assert done.returncode == 0, done.stderr
>       assert done.stdout == expected
E       AssertionError: assert '{title}\\n{found}' == '{title}\\n{wanted}'
E
E         Skipping 118 identical leading characters in diff, use -v to show
{diff}

.evaluation_tests/{file}:{line}: AssertionError"""


def write_big_run(folder: Path, *, problems: int, checkpoints: int, tests: int = 500, breaks: float = 0.02) -> Path:
    """Deterministic. `breaks`: the share of passing tests that each next checkpoint breaks."""
    names = [f"checkpoint_{number}" for number in range(1, checkpoints + 1)]
    for number in range(1, problems + 1):
        chance = random.Random(number)
        failing: set[int] = set()
        for index, name in enumerate(names):
            there = range(index * BORN, index * BORN + tests)
            failing = {test for test in there if chance.random() < (1 - RECOVERS if test in failing else breaks)}
            results = [_test(test, index, names, tests, test in failing, chance) for test in there]
            _results(f"problem_{number}", name, names, results).save(folder / f"problem_{number}" / name / RESULT_FILE)
    return folder


def _test(number: int, index: int, names: list[str], tests: int, fails: bool, chance: random.Random) -> TestResult:
    home = max(0, (number - tests) // BORN + 1)
    kind = number % 3
    file = f"test_{names[home]}.py"
    title = f"{chance.choice(WORDS)} {chance.choice(WORDS)}"
    return TestResult(
        id=f"test_scales[{WORDS[number % 16]}-{number}-servings must be a whole number above {number % 7}]",
        checkpoint=names[home],
        group_type=GROUPS[kind] if home == index else GroupType.REGRESSION,
        status="failed" if fails else "skipped" if number % 97 == 96 else "passed",
        duration_ms=round(chance.uniform(5, 400), 3),
        file_path=file,
        markers=[*MARKS[kind], "parametrize"],
        failure_message=_message(title, file, chance) if fails else None,
        calls=[f"main.py scale '{title}' {chance.randint(1, 99)}" for _ in range(3)] if fails else [],
        output="\n".join(_line(chance) for _ in range(20)) if fails else None,
    )


def _message(title: str, file: str, chance: random.Random) -> str:
    pairs = [(_line(chance), _line(chance)) for _ in range(12)]
    diff = "\n".join(f"E         - {wanted}\nE         + {found}\nE         ?   ^^^  ++" for wanted, found in pairs)
    return MESSAGE.format(
        address=f"{chance.getrandbits(40):010x}", title=title, servings=chance.randint(1, 99),
        found=pairs[0][1], wanted=pairs[0][0], diff=diff, file=file, line=chance.randint(10, 400),
    )  # fmt: skip


def _line(chance: random.Random) -> str:
    return (
        f"  {chance.randint(1, 9999)} g {chance.choice(WORDS)}, {chance.choice(WORDS)} ({chance.random():.6f} of all)"
    )


def _results(problem: str, checkpoint: str, names: list[str], tests: list[TestResult]) -> CorrectnessResults:
    return CorrectnessResults(
        problem_name=problem,
        checkpoint_name=checkpoint,
        duration=30.0,
        tests=tests,
        pytest_exit_code=0 if all(test.status == "passed" for test in tests) else 1,
        isolation={},
        phases={"prepare": 0.2, "setup": 1.1, "tests": 28.0, "parse": 0.7},
        provenance=Provenance(
            digests=Digests(submission=f"{problem} {checkpoint}", tests="t", config="c", environment="e"),
            evaluation_version=evaluation_version(),
            test_dependencies={},
            python="3.12.1",
            platform="linux",
            slop_code="0.1.0",
            command=[],
            pytest_args=[],
            checkpoints=names,
        ),
        evidence="stream",
    )
