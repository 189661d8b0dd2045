"""The folder of the cache and its owner."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import cache as module
from slop_code.execution.cache import Cache, user_caches


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SCBENCH_CACHE_DIR": "{}/given", "XDG_CACHE_HOME": "{}/xdg"}, "given"),
        ({"SCBENCH_CACHE_DIR": "~/mine", "HOME": "{}"}, "mine"),
        ({"SCBENCH_CACHE_DIR": "", "XDG_CACHE_HOME": "{}/xdg"}, "xdg/slop-code"),
        ({"XDG_CACHE_HOME": "", "HOME": "{}/home"}, "home/.cache/slop-code"),
    ],
)
def test_the_default_folder_follows_the_variables(tmp_path, monkeypatch, variables, expected):
    monkeypatch.delenv("SCBENCH_CACHE_DIR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert Cache.default().root == tmp_path.resolve() / expected
    assert (tmp_path / expected).is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_does_not_use_the_home_of_another_user(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_caches() == tmp_path / ".cache"
    os.chown(tmp_path, 12345, 12345)
    assert user_caches() == Path(pwd.getpwuid(0).pw_dir) / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_caches() == tmp_path


def test_a_folder_that_cannot_be_made_is_an_infrastructure_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(InfrastructureError, match="set SCBENCH_CACHE_DIR to a folder you can write to"):
        Cache.default()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user_is_refused(tmp_path):
    """Also for root, which would run that user's programs."""
    os.chown(tmp_path, 12345, 0)
    with pytest.raises(InfrastructureError, match=f"{tmp_path}: the cache folder belongs to user 12345, .*; set SCB"):
        Cache.at(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o722, 0o1777])
def test_a_cache_that_others_may_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(InfrastructureError, match=f"{tmp_path}: others may write .* {mode:04o}; .*`chmod go-w`"):
        Cache.at(tmp_path)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o2750])
def test_a_cache_that_others_may_read_is_used(tmp_path, mode):
    tmp_path.chmod(mode)
    assert Cache.at(tmp_path).root == tmp_path.resolve()


def test_a_new_cache_is_closed_to_others(tmp_path):
    before = os.umask(0)
    try:
        assert Cache.at(tmp_path / "cache").root.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_a_lock_is_no_link(empty_cache, tmp_path):
    (tmp_path / "mine").write_text("kept")
    (empty_cache.root / module.LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"), empty_cache.shared_lock():
        pass
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize("name", ["~nobody-has-this-name/cache", "~"])
def test_a_home_that_does_not_exist_is_named(name, monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # no user has an entry
    monkeypatch.setenv("SCBENCH_CACHE_DIR", name)
    with pytest.raises(InfrastructureError, match=f"{name}: the user has no home folder on this machine; set"):
        Cache.default()
