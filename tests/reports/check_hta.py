# Compares what Holistic Trace Analysis finds in our files with what the program says of the same run.
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_hta.py PROGRAM FOLDER. The other side of each figure is the result JSON, or the
slices of --trace, which are another file with names of its own. All times are whole microseconds,
to which the tool rounds."""

import json
import re
import subprocess
import sys

from hta.trace_analysis import TraceAnalysis

SCENARIO = {
    "model": {"kind": "profile", "modules": [{
        "repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
        "output": "10 MB", "stash": "1 GB", "parameters": "100 MB", "update": "0.2 ms"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
                "link": {"bandwidth": "100 GB/s"}},
    "training": {"strategy": "global", "micro_batches": 4, "steps": 3},
}


def simulate(program, folder, change):
    scenario = json.loads(json.dumps(SCENARIO))
    scenario["training"].update(change)
    with open(f"{folder}/s.json", "w") as file:
        json.dump(scenario, file)
    subprocess.run([program, "simulate", "s.json", "--json", "r.json", "--trace", "t.json",
                    "--kineto", "ranks", "-q"], cwd=folder, check=True)
    with open(f"{folder}/r.json") as result, open(f"{folder}/t.json") as trace:
        return json.load(result), json.load(trace)["traceEvents"]


def merged(intervals):
    result = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def length(intervals):
    return sum(end - start for start, end in merged(intervals))


def slices_of(events, rank):
    """Slices (start, end, category) of a device: its ops, and the messages at either end."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    compute, messages = [], []
    for event in events:
        if event["ph"] != "X":
            continue
        track = names[event["pid"], event["tid"]]
        ends = re.match(r"device (\d+) to device (\d+)", track)
        slice_ = (round(event["ts"]), round(event["ts"] + event["dur"]), event["cat"])
        if event["pid"] == rank + 1 and track.startswith("compute"):
            compute.append(slice_)
        elif ends and str(rank) in ends.groups():
            messages.append(slice_)
    return compute, messages


def check(what, found, expected, tolerance=0.0):
    print(f"  {what}: {found} (expected {expected})")
    if abs(found - expected) > tolerance:
        sys.exit(f"{what} differs")


def check_rank(rank, row, overlap, kernels, result, events):
    compute, messages = slices_of(events, rank)
    steps = sum(e["ph"] == "X" and e["cat"] == "step" for e in events)
    plain = [s[:2] for s in compute], [s[:2] for s in messages]
    everything = plain[0] + plain[1]
    device = next(d for d in result["devices"] if d["rank"] == rank)
    check("compute time, us", row["compute_time(ns)"],
          device["busy"] * result["step_time_s"] * steps * 1e6, 1e-3)
    check("all time, us", row["kernel_time(ns)"],
          max(e for _, e in everything) - min(s for s, _ in everything))
    check("idle time, us", row["idle_time(ns)"], row["kernel_time(ns)"] - length(everything))
    check("messages alone, us", row["non_compute_time(ns)"],
          length(everything) - length(plain[0]))
    both = length(plain[0]) + length(plain[1]) - length(everything)
    check("messages beside compute, %", overlap, round(100 * both / length(plain[1]), 2), 0.011)
    for category in {s[2] for s in compute}:
        expected = sum(e - s for s, e, c in compute if c == category)
        found = kernels[kernels["name"].str.startswith(category + " of")]["sum (ns)"].sum()
        check(f"kernels of {category}, us", found, expected)


def check_run(program, folder, change):
    print(change)
    result, events = simulate(program, folder, change)
    analysis = TraceAnalysis(trace_dir=f"{folder}/ranks", include_last_profiler_step=True)
    times = analysis.get_temporal_breakdown(visualize=False)
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100)
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0, 1, 2, 3], visualize=False)
    if len(times) != 4 or types.empty or idle.empty:
        sys.exit("a rank or a table is missing")
    for rank in range(4):
        print(f" rank {rank}")
        row = times[times["rank"] == rank].iloc[0]
        percent = overlap[overlap["rank"] == rank].iloc[0]["comp_comm_overlap_pctg"]
        check_rank(rank, row, percent, kernels[kernels["rank"] == rank], result, events)


if __name__ == "__main__":
    for strategy in ({"schedule": "gpipe"}, {"schedule": "1f1b"}, {"strategy": "pairwise"}):
        check_run(sys.argv[1], sys.argv[2], strategy)
