"""Sweeps the same thousand small scenarios by the Python package and by the program, in turn.

Usage: PYTHONPATH=build/python python3 tests/bench/python_bench.py build/bin/interlock [ROUNDS]
Prints seconds of both, medians of the rounds, and their ratio. The package is imported already; the
program's time holds its start, and the database that it writes.
"""

# SPDX-License-Identifier: Apache-2.0
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import interlock

PROGRAM, ROUNDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
SCENARIO = {
    "name": "bench",
    "model": "gpt2-xl",
    "cluster": {"machine": "dgx-a100-80g", "devices": 8},
    "parallel": {"pipeline": 8},
    "training": {"strategy": "global", "micro_batch_size": 1, "steps": 1},
    "simulate": {"engine": "native"},
}
VALUES = {
    "training.global_batch_size": list(range(8, 33)),
    "model.sequence_length": [256, 384, 512, 768, 1024],
    "training.recompute": ["none", "full"],
    "training.schedule": ["1f1b", "gpipe", "zb-h1", "zb-v"],
}


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def by_program(folder):
    path = Path(folder) / "bench.json"
    path.write_text(json.dumps({**SCENARIO, "sweep": VALUES}))
    (Path(folder) / "bench.db").unlink(missing_ok=True)
    words = [PROGRAM, "sweep", str(path), "--db", str(Path(folder) / "bench.db"), "-q"]
    subprocess.run(words, check=True)


def by_package():
    table = interlock.sweep(SCENARIO, VALUES)
    assert len(table) == 1000 and table.error.isna().all(), table.error.dropna().iloc[0]


def main():
    with tempfile.TemporaryDirectory() as folder:
        by_package()  # imports pandas
        rounds = [(seconds(by_package), seconds(lambda: by_program(folder))) for _ in range(ROUNDS)]
    package, program = (statistics.median(times) for times in zip(*rounds))
    ratio = statistics.median(one / other for one, other in rounds)
    print(f"1000 scenarios, medians of {ROUNDS} rounds: package {package:.2f} s, ", end="")
    print(f"program {program:.2f} s, ratio {ratio:.2f}")


main()
