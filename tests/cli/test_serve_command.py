"""Mistakes in the options of `slop-code serve`, before anything listens."""

from __future__ import annotations

import pytest

from slop_code.cli.main import parse, run


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0", "--no-token"], "other machines can reach it, so requests need a token; leave out"),
        (["--no-token", "--token-file", "token"], "not allowed with argument --no-token"),
        (["--allow", "/missing"], "--allow /missing: no such folder"),
        (["--problems-dir", "/missing"], "--problems-dir /missing: no such folder"),
        (["--token-file", "/missing"], "cannot be read"),
        (["--no-tcp"], "nothing to listen on"),
        (["--max-request", "0"], "expected a size"),
    ],
)
def test_a_wrong_option_is_named(options, words, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path))
    assert run(["serve", "--state", str(tmp_path / "state"), *options]) == 2
    assert words in capsys.readouterr().err


def test_a_short_token_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SCBENCH_SERVICE_TOKEN", "secret")
    assert run(["serve", "--state", str(tmp_path / "state")]) == 2
    assert "at least 16" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "maximum"), [("--queue", 1_000_000), ("--drain", 86400), ("--port", 65535)])
def test_the_largest_number_is_accepted_and_no_larger_one(option, maximum, capsys):
    assert getattr(parse(["serve", option, str(maximum)]), option.removeprefix("--")) == maximum
    for text in (str(maximum + 1), "9" * 5000):
        with pytest.raises(SystemExit):
            parse(["serve", option, text])
        assert f"expected a whole number from {int(option == '--queue')} to {maximum}" in capsys.readouterr().err
