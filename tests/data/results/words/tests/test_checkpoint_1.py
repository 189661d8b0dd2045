def test_says(say):
    assert say("a") == "a"


def test_says_two(say):
    assert say("a", "b") == "a b"
