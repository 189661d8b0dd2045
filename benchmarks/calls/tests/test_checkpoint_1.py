import json
import os
import shlex
import statistics
import subprocess
import time


def milliseconds(argv):
    began = time.perf_counter()
    subprocess.run(argv, capture_output=True, check=True)
    return 1000 * (time.perf_counter() - began)


def test_calls(request):
    launched = shlex.split(request.config.getoption("--entrypoint"))
    bare = ["true", *launched[1:]]  # the first word of the entrypoint is the launcher, but without boxes
    pairs = [(milliseconds(bare), milliseconds(launched)) for _ in range(int(os.environ["BENCH_CALLS"]))]
    medians = [statistics.median(values) for values in zip(*pairs, strict=True)]
    print("CALLS " + json.dumps(dict(zip(("bare", "launcher"), medians, strict=True))))
