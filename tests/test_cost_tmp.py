import time, os
import pytest
def cpu():
    # all docker daemon procs + machine
    with open("/proc/stat") as f: return f.readline()
def test_cost(evaluate, make_problem, make_submission):
    p=make_problem({"test_checkpoint_1.py":"def test_it(run):\n    assert run('hello').stdout == 'hello\\n'\n"})
    t=time.monotonic(); evaluate(p, make_submission({"main.py":"import sys\nprint(*sys.argv[1:])\n"}), sandbox="docker"); print("\nfirst (warm tools, roster)", round(time.monotonic()-t,1))
    L=[]
    for i in range(5):
        t=time.monotonic(); evaluate(p, make_submission({"main.py":f"import sys\nprint(*sys.argv[1:])\n#{i}"}), sandbox="docker"); L.append(round(time.monotonic()-t,2))
    print("plain", L)
    L=[]
    for i in range(3):
        t=time.monotonic(); evaluate(p, make_submission({"main.py":f"import sys\nprint(*sys.argv[1:])\n#{i}"}), sandbox="docker", environment={"setup":{"commands":[f"echo {i} > made"]}}); L.append(round(time.monotonic()-t,2))
    print("setup", L)
