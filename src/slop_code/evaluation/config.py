"""A problem's `config.yaml`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, field_validator

from slop_code._arguments import check_path, check_type, wrong_argument
from slop_code._io import digest_of
from slop_code._suggestions import near_or_known
from slop_code._yaml import (
    ChoiceError,
    Environment,
    FileModel,
    Mistake,
    Text,
    ignoring_case,
    load_yaml_model,
    matching,
    relative_path,
)
from slop_code.errors import ConfigError as ConfigError
from slop_code.errors import UsageError
from slop_code.evaluation.groups import QUARANTINED, GroupType
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.execution.assets import asset_variable
from slop_code.execution.environment import Seconds  # noqa: TC001  (pydantic needs it)
from slop_code.execution.python_version import PythonRequest  # noqa: TC001  (pydantic needs it)

DEFAULT_TIMEOUT = 30.0


class Difficulty(StrEnum):
    EASY = "Easy"
    MEDIUM = "Medium"
    HARD = "Hard"


class CheckpointState(StrEnum):
    DRAFT = "Draft"
    CORE_TESTS = "Core Tests"
    FULL_TESTS = "Full Tests"
    VERIFIED = "Verified"


CheckpointName = Annotated[
    str, matching(r"(?!\.{1,2}\Z)[A-Za-z0-9_.-]+", "a name of letters, digits, '_', '.' and '-'")
]
AssetName = Annotated[str, matching(r"(?!\.{1,2}\Z)[^/\0]+", "a file name")]
MarkerName = Annotated[str, matching(r"\w[\w.-]*", "the name of a pytest marker")]
EntryFile = Annotated[str, relative_path("a path inside the submission")]
Unit = Literal["file", "test"]
"""The tests that run in the same pair: those of a file, or those of a top-level function or class."""

AUTO: Final = "auto"
MAX_FIXED_PAIRS = 64


def _check_pairs(value: Any) -> Any:
    if value == AUTO or (type(value) is int and 1 <= value <= MAX_FIXED_PAIRS):
        return value
    raise ChoiceError([AUTO], f"{AUTO!r} or a whole number from 1 to {MAX_FIXED_PAIRS}")


TestsGlob = Annotated[str, relative_path("a glob inside tests/")]


class MarkerConfig(FileModel):
    description: str = ""
    group: Annotated[GroupType, ignoring_case(GroupType)]


class AssetConfig(FileModel):
    path: str


class CheckpointConfig(FileModel):
    """`env`, `timeout`, `session_timeout` and `requires_python` are inherited from the problem."""

    version: Text | None = None
    order: int = 1
    state: Annotated[CheckpointState, ignoring_case(CheckpointState)] | None = None
    timeout: Seconds = DEFAULT_TIMEOUT
    session_timeout: Seconds | None = None
    requires_python: PythonRequest | None = None
    """Version or range of Python that a solution needs."""

    env: Environment = Field(default_factory=dict)
    include_prior_tests: bool = True

    _name: str = PrivateAttr(default="")

    @property
    def name(self) -> str:
        return str(self._private("_name"))

    def _inherit(self, name: str, position: int, problem: Mapping[str, Any]) -> CheckpointConfig:
        inherited: dict[str, Any] = {
            key: problem[key]
            for key in ("timeout", "session_timeout", "requires_python")
            if key not in self.model_fields_set and problem.get(key) is not None
        }
        if "order" not in self.model_fields_set:
            inherited["order"] = position
        checkpoint = self.model_copy(update={**inherited, "env": {**problem.get("env", {}), **self.env}})
        checkpoint._name = name
        return checkpoint


class ProblemConfig(FileModel):
    name: str = Field(min_length=1)
    version: Text
    description: str
    tags: list[str]
    entry_file: EntryFile
    author: str | None = None
    category: str | None = None
    difficulty: Annotated[Difficulty, ignoring_case(Difficulty)] | None = None
    inspiration: str | None = None
    canary: Text | None = None
    """A text in the problem's files, by which copies of them are found."""

    env: Environment = Field(default_factory=dict)
    timeout: Seconds | None = None
    session_timeout: Seconds | None = None
    requires_python: PythonRequest | None = None
    static_assets: dict[AssetName, AssetConfig] = Field(default_factory=dict)
    markers: dict[MarkerName, MarkerConfig] = Field(default_factory=dict)
    test_dependencies: list[str] = Field(default_factory=list)
    in_process: bool = False
    parallel: Annotated[int | Literal["auto"], BeforeValidator(_check_pairs)] = 1
    """Maximum number of judge/subject pairs that run at a time, or `auto` for as many as are proven safe and useful."""

    parallel_by: Unit = "file"
    visible: list[TestsGlob] = Field(default_factory=list)
    checkpoints: dict[CheckpointName, CheckpointConfig] = Field(min_length=1)

    _path: Path = PrivateAttr(default_factory=Path)

    @classmethod
    def from_yaml(cls, problem_dir: Path | str) -> ProblemConfig:
        folder = check_path("problem_dir", problem_dir, "the path of a problem's folder")
        if folder.is_file():
            raise ConfigError(f"{folder}: a file; give the folder of the problem")
        problem = load_yaml_model(folder / CONFIG, cls)
        problem._path = folder.absolute()
        return problem

    @field_validator("visible")
    @classmethod
    def _whole_stars(cls, value: list[str]) -> list[str]:
        if any("**" in part and part != "**" for pattern in value for part in pattern.split("/")):
            raise ValueError("globs in which ** stands alone between slashes")
        return value

    @field_validator("checkpoints")
    @classmethod
    def _inherit_and_sort(cls, value: dict[str, CheckpointConfig], info: ValidationInfo) -> dict[str, CheckpointConfig]:
        full = {
            name: checkpoint._inherit(name, position, info.data)
            for position, (name, checkpoint) in enumerate(value.items(), start=1)
        }
        return dict(sorted(full.items(), key=lambda item: item[1].order))

    @classmethod
    def further_mistakes(cls, data: Mapping[str, Any], folder: Path) -> Iterator[Mistake]:
        yield from _shared_orders(_mapping(data, "checkpoints"))
        if QUARANTINED in _mapping(data, "markers"):
            yield Mistake(
                ("markers", QUARANTINED), QUARANTINED, "another name: it is kept for the tests in tests/flaky.json"
            )
        assets = _mapping(data, "static_assets")
        yield from _shared_variables(assets)
        for name in assets:
            path = _mapping(assets, name).get("path")
            if isinstance(path, str) and (expected := _asset_mistake(folder, path)):
                yield Mistake(("static_assets", name, "path"), path, expected)

    @property
    def path(self) -> Path:
        """The problem's folder, absolute."""
        path: Path = self._private("_path")
        return path

    def at(self, folder: Path) -> ProblemConfig:
        """The same problem, in another folder that its files were copied to."""
        moved = self.model_copy()
        moved._path = folder.absolute()
        return moved

    @property
    def fixed_pairs(self) -> int:
        """The number in config.yaml; 1 with `parallel: auto`."""
        return 1 if self.parallel == AUTO else self.parallel

    @property
    def unit(self) -> Unit:
        """Tests of one unit run in one pair. With `parallel: auto` it is a test, unless `parallel_by` is set."""
        by_default = self.parallel == AUTO and "parallel_by" not in self.model_fields_set
        return "test" if by_default else self.parallel_by

    @property
    def assets(self) -> dict[str, Path]:
        """Paths of the static assets by their names."""
        return {name: self._path / asset.path for name, asset in self.static_assets.items()}

    @property
    def custom_groups(self) -> dict[str, GroupType]:
        return {name: marker.group for name, marker in self.markers.items()}

    def iterate_checkpoint_items(self) -> Iterator[tuple[str, CheckpointConfig]]:
        yield from self.checkpoints.items()

    def checkpoint(self, name_or_number: str | int) -> CheckpointConfig:
        """Looks up an exact name; a number N means `checkpoint_N`, else the checkpoint whose order is N."""
        expected = "the number or the name of a checkpoint"
        check_type("checkpoint", name_or_number, (int, str), expected)
        try:
            wanted = str(name_or_number)
        except ValueError as error:  # thousands of digits
            raise wrong_argument("checkpoint", name_or_number, expected) from error
        if wanted in self.checkpoints:
            return self.checkpoints[wanted]
        if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10:
            number = int(wanted)
            if f"checkpoint_{number}" in self.checkpoints:
                return self.checkpoints[f"checkpoint_{number}"]
            for checkpoint in self.checkpoints.values():
                if checkpoint.order == number:
                    return checkpoint
        raise UsageError(f"{self.name}: no checkpoint {wanted!r}{near_or_known(wanted, self.checkpoints)}")

    def digest(self, checkpoint: CheckpointConfig) -> str:
        return digest_of(self.verdict_settings(checkpoint))

    def verdict_settings(self, checkpoint: CheckpointConfig) -> list[Any]:
        """All settings that can change a verdict on the checkpoint, and no others."""
        prose = {"description", "tags", "author", "category", "difficulty", "inspiration", "canary", "checkpoints"}
        inherited = {"requires_python"}
        speed = {"parallel", "parallel_by"}
        own = checkpoint.model_dump(mode="json", exclude={"state", "order"})
        if own["requires_python"] is None:
            del own["requires_python"]  # as in results of problems that were written before this key
        names = list(self.checkpoints)
        earlier = names[: names.index(checkpoint.name)]
        return [self.model_dump(mode="json", exclude=prose | speed | inherited), earlier, checkpoint.name, own]


def _mapping(data: Mapping[Any, Any], key: Any) -> Mapping[Any, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _shared_orders(checkpoints: Mapping[Any, Any]) -> Iterator[Mistake]:
    first: dict[int, Any] = {}
    for position, name in enumerate(checkpoints, start=1):
        order = _mapping(checkpoints, name).get("order")
        number = position if order is None else order
        if not isinstance(number, int) or isinstance(number, bool):
            continue
        if first.setdefault(number, name) != name:
            yield Mistake(("checkpoints", name, "order"), number, f"another number than that of {first[number]}")


def _shared_variables(assets: Mapping[Any, Any]) -> Iterator[Mistake]:
    names = defaultdict(list)
    for name in assets:
        if isinstance(name, str):
            names[asset_variable(name)].append(name)
    for variable, (first, *others) in names.items():
        for other in others:
            yield Mistake(("static_assets", other), variable, f"another variable than that of {first}")


def _asset_mistake(folder: Path, path: str) -> str | None:
    root = folder.resolve()
    try:
        target = (root / path).resolve()
        if Path(path).is_absolute() or target == root or not target.is_relative_to(root):
            return "a path inside the problem folder"
        return None if target.exists() else "a file or folder that exists"
    except (OSError, ValueError, RuntimeError):
        return "a path that can be read"
