"""Paths of the boxes that attacks name: an attack on a path that no box has would always count as held."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path, PurePosixPath

import pytest

from slop_code.attacks.attack import read_corpus
from slop_code.evaluation.command import judge_sources
from slop_code.execution.bubblewrap import box_arguments as b
from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.extra_mounts import Mount
from slop_code.execution.environment import EnvironmentSpec, Limits
from slop_code.execution.sandbox import JudgeJob, JudgeRequest, PreparedSubject, SetupJob

BOX_PATH = re.compile(r"/(?:slop|box)(?![\w.])[-\w./*]*")
"""A path below /slop or /box, or of a sibling such as /slop-subject; it may have wildcards."""

SCRATCH = Path("/scratch")
JOB = JudgeJob(
    request=JudgeRequest(
        argv=["pytest"],
        environment={},
        tests=SCRATCH,
        shown=SCRATCH,
        reports=SCRATCH,
        tools=SCRATCH,
        files={"plugin": SCRATCH},
        timeout=1,
    ),
    submission=SCRATCH,
    subject=PreparedSubject(entry=SCRATCH),
    scratch=SCRATCH,
)


def bubblewrap_words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(b, "bwrap", lambda: "bwrap")
    setup = SetupJob(submission=SCRATCH, environment={}, scratch=SCRATCH, keep_workspace=False)
    environment = EnvironmentSpec(name="any", type="local")
    return [*b.setup_arguments(setup), *b.outer_arguments(JOB, environment, SCRATCH)]


def docker_words() -> list[str]:
    names, support, source = c.ContainerNames("token"), Mount("support", c.SUPPORT), Mount("source", c.SOURCE)
    container = c.ContainerSpec(owner="me", image="image", workspace="/w", mounts=[support])
    return [
        *c.command_container_arguments("worker", container, [], covered=True),
        *c.judge_arguments(names, container, JOB, source),
        *c.subject_arguments(names, container, Limits(), "/usr/bin"),
    ]


@pytest.fixture
def paths(monkeypatch) -> set[str]:
    """Mounts of every box, the files in them that the evaluator put there, and all folders above these."""
    words = [*bubblewrap_words(monkeypatch), *docker_words()]
    found = {path for word in words for path in BOX_PATH.findall(word)}
    found |= {f"{c.SUPPORT}/{name}" for name in ("box", "bin/slop-run", "bin/uv", "bin/uvx")}
    found |= {f"{judge}/plugin/{name}" for judge in (b.JUDGE, c.JUDGE) for name in judge_sources()}
    found |= {f"{environment}/bin/python" for environment in (b.SUBJECT_ENV, c.SUBJECT_ENV)}
    return found | {str(parent) for path in found for parent in PurePosixPath(path).parents}


def test_every_path_of_a_box_that_the_corpus_names_exists_in_some_box(paths):
    named = {
        (attack.name, path)
        for attack in read_corpus()
        for text in (*attack.files.values(), attack.build)
        for path in BOX_PATH.findall(text)
    }
    assert {path for _, path in named} >= {b.TOOLS, c.SUPPORT, c.BOX}
    assert {entry for entry in named if not fnmatch.filter(paths, entry[1])} == set()


def test_the_programs_of_every_submission_s_environment_are_attacked():
    (attack,) = (attack for attack in read_corpus() if attack.name == "poisoned_cache")
    named = set(BOX_PATH.findall(attack.files["cheat.py"]))
    assert {f"{environment}/bin/*" for environment in (b.SUBJECT_ENV, c.SUBJECT_ENV)} <= named
