"""Tasks for Harbor made of problems: specifications, a Dockerfile and static assets, without any test or solution."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import check_new_folder, new_folder, write_new
from slop_code.bridges.harbor_secrets import exposed_secret
from slop_code.bridges.specification import specification
from slop_code.errors import UsageError
from slop_code.execution.assets import asset_environment, copy_assets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.evaluation.config import ProblemConfig

VERIFIER = "slop_code.bridges.harbor:SlopCodeVerifier"
WORKSPACE, ASSETS = "/workspace", "/assets"
ORGANISATION = "scbench"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*")
"""Names of tasks, by Harbor's rule."""

ASSET = re.compile(r"[a-zA-Z0-9_.+-]+")
"""Names that mean themselves in a Dockerfile."""

IMAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._/:@-]*")
VERIFIER_TIMEOUT_S = 14_400.0
"""Every part of an evaluation has a time limit of its own. This one is for a machine that hangs."""

TEST_SCRIPT = f"""\
#!/bin/sh
# Harbor wants a test script in every task. The tests are not here: they run on the host, out of the agent's reach.
echo "no reward: run this task with --verifier {VERIFIER}" >&2
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
exit 1
"""


def export_harbor_task(problem: ProblemConfig, target: Path, base_image: str) -> None:
    """Write the task as a new folder. It appears as a whole, or not at all if it would have a test or a solution."""
    _check(problem, target, base_image)
    with new_folder(target) as folder:
        _write(problem, folder, base_image)
        _check_secrecy(problem, folder)


def _check(problem: ProblemConfig, target: Path, base_image: str) -> None:
    if not NAME.fullmatch(problem.path.name):
        raise UsageError(f"{problem.path}: Harbor takes no task of this name; rename the folder")
    if not IMAGE.fullmatch(base_image):
        raise UsageError(f"--base-image: expected the name of an image, found {base_image!r}")
    if unfit := [name for name in problem.assets if not ASSET.fullmatch(name)]:
        raise UsageError(f"{problem.path}: the asset {unfit[0]!r} has a name that a Dockerfile cannot have; rename it")
    if target.resolve().is_relative_to(problem.path.resolve()):
        raise UsageError(f"{target}: lies in the problem; give a folder outside of it with -o")
    check_new_folder(target, "-o")


def _write(problem: ProblemConfig, folder: Path, base_image: str) -> None:
    files = {
        "task.toml": "\n".join(_task_lines(problem)),
        "environment/Dockerfile": "\n".join(_dockerfile_lines(problem, base_image)),
        "tests/test.sh": TEST_SCRIPT,
        **{f"steps/{name}/instruction.md": _instruction(problem, name) for name in problem.checkpoints},
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_new(folder / name, text.encode())
    if problem.assets:
        copy_assets(problem.assets, folder / "environment" / "assets")


def _task_lines(problem: ProblemConfig) -> Iterator[str]:
    yield 'schema_version = "1.4"'
    yield "# The reward of the last step, which counts those before: a mean would leave out steps without a verdict."
    yield 'multi_step_reward_strategy = "final"'
    yield ""
    yield "[task]"
    yield f"name = {_toml(f'{ORGANISATION}/{problem.path.name}')}"
    yield f"version = {_toml(str(problem.version))}"
    yield f"description = {_toml(problem.description)}"
    yield f"keywords = [{', '.join(map(_toml, problem.tags))}]"
    yield ""
    yield "[metadata.slop_code]"
    yield f"problem = {_toml(problem.path.name)}"
    yield f"version = {_toml(str(problem.version))}"
    yield f"workspace = {_toml(WORKSPACE)}"
    yield ""
    yield f"# Graded by `harbor run --verifier {VERIFIER}`."
    yield "[verifier]"
    yield f"timeout_sec = {VERIFIER_TIMEOUT_S}"
    yield ""
    yield "[environment]"
    yield f"workdir = {_toml(WORKSPACE)}"
    for name in problem.checkpoints:
        yield f"\n[[steps]]\nname = {_toml(name)}"
    yield ""


def _toml(text: str) -> str:
    """A string of JSON is one of TOML, except that TOML escapes DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _dockerfile_lines(problem: ProblemConfig, base_image: str) -> Iterator[str]:
    yield f"FROM {base_image}"
    if problem.assets:
        yield f"COPY assets {ASSETS}"
        for name, path in asset_environment(problem.assets, ASSETS).items():
            yield f"ENV {name}={json.dumps(path)}"
    yield f"WORKDIR {WORKSPACE}"
    yield ""


def _instruction(problem: ProblemConfig, checkpoint: str) -> str:
    lines = [f"Work in `{WORKSPACE}`, which has your code of earlier parts, if there are any."]
    lines += [f"`{ASSETS}/{name}` is a file or folder that your program may be given." for name in problem.assets]
    return f"{specification(problem, checkpoint)}\n\n---\n\n{' '.join(lines)}\n"


def _check_secrecy(problem: ProblemConfig, folder: Path) -> None:
    paths = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    tree = {path.relative_to(folder): path.read_bytes() for path in sorted(paths)}
    exposed = exposed_secret(problem, tree, {path for path in tree if path.name == "instruction.md"})
    if exposed is not None:
        step = "change the specification, the asset or the configuration; nothing was written"
        raise UsageError(f"{problem.path}: the task would show what is tested: {exposed}; {step}")
