import pytest


def test_old():
    pass


@pytest.mark.error
def test_old_error():
    assert "old" == "new"
