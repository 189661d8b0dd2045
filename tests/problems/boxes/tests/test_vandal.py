"""A submission that spoils all it can reach of its own."""

CODE = """
import os, shutil
for name in sorted(os.listdir("."), reverse=True):  # links before what they lead to
    if name in (".evaluation_tests", ".scbench"):
        continue
    try:
        if os.path.isdir(name) and not os.path.islink(name):
            os.chmod(name, 0)
            os.chmod(name, 0o700)
            shutil.rmtree(name)
        else:
            os.chmod(name, 0o777)
            open(name, "w").write("spoilt")
            os.unlink(name)
    except OSError as error:
        print(error)
open("main.py", "w").write("raise SystemExit(5)")
"""


def test_it_may_do_as_it_likes_with_its_copy(call):
    done = call(CODE)
    assert (done.returncode, done.stdout) == (0, "")
    assert call("").returncode == 5
