"""Changes between the inputs of a stored result and those of its problem now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code._suggestions import first_names
from slop_code.errors import SlopCodeError
from slop_code.evaluation.problem.problem_contents import inputs_of
from slop_code.evaluation.selection import is_test_file
from slop_code.evaluation.test_code.test_inputs import OUTSIDE, TestInputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults, TestResult

GRADING_SETTINGS = frozenset({"markers", "version"})
"""Settings of config.yaml that no test can notice, except through the names and descriptions of markers."""

READS_MARKERS = (
    b"strict",
    b"warnings",
    b"simplefilter",
    b"getini",
    b"inicfg",
    b"_ini",
    b".ini",
    b"markers",
    b"UnknownMark",
)
"""Words of test code that may notice which markers the ini has."""

MAX_NAMES = 5
MAX_SOURCE = 16 << 20
OWN_CODE, OWN_FILE, OUTSIDE_TESTS = "its code changed", "its file changed", "its file changed outside of the tests"
ALL_TESTS = "the tests changed; which of them is not known"


@dataclass(frozen=True, slots=True)
class InputChanges:
    """Differences of two records of inputs. None stands for differences that are not known."""

    old: TestInputs
    new: TestInputs

    @property
    def settings(self) -> list[str]:
        """Names of the settings of config.yaml that differ."""
        return _changed_names(_settings(self.old.config), _settings(self.new.config))

    @property
    def files(self) -> list[str]:
        return _changed_names(self.old.files, self.new.files)

    @property
    def shared_files(self) -> list[str]:
        """Changed files that any test may use: helpers, data and assets."""
        return [name for name in self.files if not is_test_file(PurePosixPath(name).name)]

    @property
    def text(self) -> str:
        """One line about all changes."""
        visible = ["visible"] if self.old.visible != self.new.visible else []
        parts = {"config.yaml": [*self.settings, *visible], "files": self.files}
        return "; ".join(f"{what}: {first_names(names, MAX_NAMES)}" for what, names in parts.items() if names)

    def only_grading(self, tests: Path) -> bool:
        """Whether every test would run as it ran. `tests`: the folder of the problem's tests now."""
        same = not self.files and self.old.visible == self.new.visible and set(self.settings) <= GRADING_SETTINGS
        if not same or _collected_files(self.old.ini) != _collected_files(self.new.ini):
            return False
        return self.old.ini == self.new.ini or not _mentions(tests, self.new.files, READS_MARKERS)

    def reasons(self, test: TestResult) -> Iterator[str]:
        """Why a test that there was before may have another result; none where nothing that it uses changed."""
        file = f"tests/{test.file_path}"
        if file in self.files:
            yield from _code_changes(self.old.code.get(file), self.new.code.get(file), test.id.partition("[")[0])
        if shared := self.shared_files:
            yield f"files that it may use changed: {first_names(shared, MAX_NAMES)}"
        if settings := [name for name in self.settings if name not in GRADING_SETTINGS]:
            yield f"config.yaml changed: {first_names(settings, MAX_NAMES)}"
        if self.old.visible != self.new.visible:
            yield "config.yaml changed: visible"


def _code_changes(old: dict[str, str] | None, new: dict[str, str] | None, name: str) -> Iterator[str]:
    if old is None or new is None or (name not in old and name not in new):
        yield OWN_FILE
        return
    if old.get(name) != new.get(name):
        yield OWN_CODE
    if old.get(OUTSIDE) != new.get(OUTSIDE):
        yield OUTSIDE_TESTS


def _changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _settings(config: list[Any]) -> dict[str, Any]:
    """Settings of the problem, then those of the checkpoint, which has inherited some of them."""
    problem, earlier, name, own = config
    return {**problem, "checkpoints": [*earlier, name], **{key: [problem.get(key), own[key]] for key in own}}


def _collected_files(ini: str) -> str:
    return ini.partition("python_files =")[2]


def _mentions(tests: Path, files: Iterable[str], words: Iterable[bytes]) -> bool:
    """Whether Python code among the files has one of the words; true where that cannot be known."""
    for name in files:
        if name.startswith("tests/") and name.endswith(".py"):
            try:
                source = read_bounded((tests / name.removeprefix("tests/")).resolve(), MAX_SOURCE)
            except (OSError, TooLargeError):
                return True
            if any(word in source for word in words):
                return True
    return False


def known_inputs(folder: Path, stored: CorrectnessResults, problem: ProblemConfig | None) -> TestInputs | None:
    """The inputs of the result in `folder`: those kept with it, else those of a problem that has not changed since."""
    digests = stored.provenance.digests
    kept = TestInputs.load(folder)
    if kept is not None and _is_complete(kept) and kept.belong_to(digests):
        return kept
    if problem is None or stored.checkpoint_name not in problem.checkpoints:
        return None
    try:
        inputs = inputs_of(problem, problem.checkpoints[stored.checkpoint_name])
    except (SlopCodeError, OSError):
        return None
    return inputs if inputs.belong_to(digests) else None


def _is_complete(inputs: TestInputs) -> bool:
    config = inputs.config
    return (
        len(config) == 4 and isinstance(config[0], dict) and isinstance(config[1], list) and isinstance(config[3], dict)
    )
