def test_multiplies(run):
    assert run("2", "x", "3").stdout == "6\n"
