import pytest


@pytest.fixture
def broken():
    raise ValueError("the fixture is broken")


@pytest.fixture
def broken_end():
    yield
    raise ValueError("the end of the fixture is broken")
