"""Mounts of environment files."""

from __future__ import annotations

import pytest

from slop_code.execution.docker import container_arguments as c
from slop_code.execution.docker.extra_mounts import Mount, extra_mounts, is_free


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        (Mount("volume", "/t"), ["--volume", "volume:/t:ro,nocopy"]),
        (Mount("volume", "/t", readonly=False), ["--volume", "volume:/t:nocopy"]),
        (Mount("/a b", "/t"), ["--mount", "type=bind,source=/a b,target=/t,readonly"]),
        (Mount("/a", "/t", readonly=False), ["--mount", "type=bind,source=/a,target=/t"]),
        (Mount('/a,"b"', "/t"), ["--mount", 'type=bind,"source=/a,""b""",target=/t,readonly']),
    ],
)
def test_a_mount_as_arguments_of_the_engine(mount, words):
    assert mount.words == words


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], []),
        ({}, []),
        (["/a:/b"], [Mount("/a", "/b")]),
        (["/a:/b:rw", "v:/c:ro"], [Mount("/a", "/b", readonly=False), Mount("v", "/c")]),
        ({"/a": "/b"}, [Mount("/a", "/b")]),
        ({"/a": "/b:rw"}, [Mount("/a", "/b", readonly=False)]),
        ({"/a": {"bind": "/b", "mode": "rw"}}, [Mount("/a", "/b", readonly=False)]),
        ({"/a": {"bind": "/b"}, "/c": "/d"}, [Mount("/a", "/b"), Mount("/c", "/d")]),
        ([{"/a:b": {"bind": "/c"}}], [Mount("/a:b", "/c")]),
    ],
)
def test_every_notation_of_a_mount_is_understood(value, expected):
    assert extra_mounts(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        ["/a"], [":/b"], ["/a:b"], ["/a:/b:wr"], ["/a:/b:rw:x"], [""], {"/a": None}, {"/a": ""}, {"": "/b"},
        {"/a": {"mode": "rw"}}, {"/a": {"bind": "/b", "mode": "x"}},
        {"/a": {"bind": "/b", "mode": [1]}},
        ["/a:/tmp"], ["./a:/b"], ["/a:/slop/support"], ["/a:/"], ["/a:/proc/x"], ["/a:/x/../slop"], {5: "data"},
    ],
)  # fmt: skip
def test_an_invalid_mount_is_refused(value):
    with pytest.raises(ValueError, match=r"such as source:/target|absolute|targets that are free"):
        extra_mounts(value)


@pytest.mark.parametrize(
    ("path", "free"),
    [
        ("/workspace", True), ("/app", True), ("/a/b c", True), ("/sloppy", True), ("/home/me", True),
        ("", False), ("app", False), ("/", False), ("/a/", False), ("//a", False), ("/a/../b", False), ("/./a", False),
        ("/slop", False), ("/slop/x", False), ("/tmp", False), ("/tmp/x", False), ("/proc/x", False), ("/dev", False),
        ("/sys", False), (c.HOME, False), (f"{c.HOME}/x", False),
    ],
)  # fmt: skip
def test_a_workspace_is_an_absolute_path_that_is_not_the_system_s(path, free):
    assert is_free(path) is free
