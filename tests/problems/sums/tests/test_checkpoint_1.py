import pytest


def test_adds(run):
    assert run("2", "+", "3").stdout == "5\n"


@pytest.mark.error
def test_refuses_what_is_no_number(run):
    assert run("two", "+", "3").returncode == 2
