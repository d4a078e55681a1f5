"""What the tests of the Python package share."""

# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
from pathlib import Path

import pytest

import interlock

SOURCE = Path(os.environ["INTERLOCK_SOURCE"])
PROGRAM = os.environ["INTERLOCK_PROGRAM"]


@pytest.fixture
def scenario():
    """Two layouts of this fit eight devices."""
    return {
        "name": "small",
        "model": "gpt2-xl",
        "cluster": {"machine": "dgx-a100-80g", "devices": 8},
        "parallel": {"data": 8},
        "training": {"strategy": "global", "global_batch_size": 64, "micro_batch_size": 1},
        "simulate": {"engine": "native"},
    }


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="tables; install python3-pandas to run it")


@pytest.fixture
def program(tmp_path):
    """Runs the program. Returns its JSON, or what it says is wrong."""

    def run(command, scenario, *arguments):
        path, answer = tmp_path / "scenario.json", tmp_path / "answer.json"
        path.write_text(json.dumps(scenario))
        words = [PROGRAM, command, str(path), *arguments, "--json", str(answer), "-q"]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        if done.returncode != 0:
            return done.stderr.replace(str(path), "scenario")
        return json.loads(answer.read_text())

    return run


def without_time(result):
    """Drops what differs from run to run."""
    return {key: value for key, value in result.items() if key != "wall_time_s"}


def one_f_one_b(ranks, micro_batches):
    """Returns the order of 1F1B as its paper has it, as lists of words such as 0F1."""
    rows = []
    for rank in range(ranks):
        warm_up = min(ranks - rank, micro_batches)
        words = [f"{rank}F{i}" for i in range(warm_up)]
        for i in range(micro_batches):
            words.append(f"{rank}B{i}")
            if warm_up + i < micro_batches:
                words.append(f"{rank}F{warm_up + i}")
        rows.append(words)
    return rows


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}")
