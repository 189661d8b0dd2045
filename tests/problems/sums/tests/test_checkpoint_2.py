def test_subtracts(run):
    assert run("2", "-", "3").stdout == "-1\n"
