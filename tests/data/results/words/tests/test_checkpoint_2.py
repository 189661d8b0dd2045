import pytest


def test_shouts(say):
    assert say("--loud", "a") == "A"


@pytest.mark.slow
def test_shouts_two(say):
    print("about to shout")
    assert say("--loud", "a", "b") == "A B"


@pytest.mark.functionality
@pytest.mark.parametrize("word", ["x::y", "z[1]"])
def test_keeps(say, word):
    assert say(word) == word


@pytest.mark.error
def test_nothing(say):
    assert say() == "nothing to say"


@pytest.mark.functionality
@pytest.mark.skip(reason="not yet")
def test_later():
    pass
