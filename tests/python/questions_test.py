"""sweep, search, plan, explain and compare."""

# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import interlock

FEW = {"tensor": [1, 2], "recompute": "none", "zero_stage": [0, 1], "micro_batch_size": [1, 2]}


@pytest.fixture
def one_thread_at_a_time():
    """Gives threads Python's lock only where another gives it back."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def test_simgrid_runs_beside_python_and_takes_the_native_time(scenario):
    asked = {**scenario, "parallel": {"pipeline": 8}, "sweep": {"training.micro_batch_size": [1, 2]}}
    native = interlock.simulate_all(asked, engine="native")
    try:
        found = interlock.simulate_all(asked, engine="simgrid", threads=2)
    except interlock.ScenarioError as error:
        if "this build has no SimGrid" not in str(error):
            raise
        pytest.skip("SimGrid; install libsimgrid-dev to run it")
    assert [step.to_dict()["engine"] for step in found] == ["simgrid", "simgrid"]
    times = [step.step_time_s for step in native]
    assert times[0] != times[1]
    assert [step.step_time_s for step in found] == pytest.approx(times, rel=1e-9)
    with pytest.raises(ChildProcessError):  # none is left
        os.waitpid(-1, os.WNOHANG)


def test_a_sweep_has_a_row_for_each_combination_equal_to_its_simulation(pandas, scenario):
    paired = {("parallel.pipeline", "parallel.data"): [(1, 8), (2, 4), (8, 1)]}
    table = interlock.sweep(scenario, {**paired, "training.micro_batch_size": [1, 2]})
    assert list(table.columns[:4]) == [
        "parallel.pipeline", "parallel.data", "training.micro_batch_size", "step_time_s"
    ]  # fmt: skip
    assert list(table["training.micro_batch_size"]) == [1, 2] * 3
    assert list(table["parallel.data"]) == [8, 8, 4, 4, 1, 1]
    for _, row in table.iterrows():
        step = interlock.simulate(scenario, **row.iloc[:3].to_dict())
        assert row.step_time_s == step.step_time_s
        assert row.peak_memory_bytes == step.peak_memory_bytes
    assert table.error.isna().all() and table.fits_in_memory.dtype == bool


def test_a_row_that_cannot_be_says_why_and_the_others_keep_their_numbers(pandas, scenario):
    table = interlock.sweep(scenario, {"parallel.data": [8, 3]})
    assert table.error[0] is None and "3 replicas" in table.error[1]
    assert table.step_time_s.notna().tolist() == [True, False]
    assert len(table[table.fits_in_memory]) == 1


def test_values_add_to_the_sweep_of_a_scenario(pandas, scenario):
    own = {**scenario, "sweep": {"training.micro_batch_size": [1, 2]}}
    assert len(interlock.sweep(own)) == 2
    more = interlock.sweep(own, {"parallel.zero_stage": [0, 1, 2]})
    assert len(more) == 6 and list(more["parallel.zero_stage"]) == [0, 1, 2] * 2
    assert len(interlock.simulate_all(own)) == 2 == interlock.check(own)
    with pytest.raises(interlock.ScenarioError, match="sweep"):
        interlock.simulate(own)
    with pytest.raises(TypeError, match="expected a list of values"):
        interlock.sweep(scenario, {"parallel.data": 8})


def test_a_sweep_is_what_the_program_sweeps(pandas, scenario, program):
    swept = {**scenario, "sweep": {"training.micro_batch_size": [1, 2, 4]}}
    table = interlock.sweep(swept)
    rows = program("sweep", swept, "--top", "0")["rows"]
    assert sorted(table.step_time_s) == sorted(row["step_time_s"] for row in rows)


def test_compare_has_a_row_for_each_scenario(pandas, scenario):
    step = interlock.simulate(scenario, name="deep", parallel={"pipeline": 8, "data": 1})
    table = interlock.compare(scenario, step)
    assert list(table.index) == ["small", "deep"]
    assert table.step_time_s["deep"] == step.step_time_s


def test_a_plan_that_was_found_is_a_scenario(scenario):
    found = interlock.search(scenario, search=FEW)
    assert found.best is found[0] and len(found) == len(list(found))
    assert interlock.simulate(found.best).step_time_s == found.best.step_time_s
    times = [plan.step_time_s for plan in found]
    assert times == sorted(times)
    assert found.best.scenario["model"] == "gpt2-xl"
    assert found.to_dict()["format"] == "interlock-search/1"


def test_a_search_finds_what_the_program_finds(scenario, program):
    limited = {**scenario, "search": FEW}
    written = program("search", limited)
    found = interlock.search(limited)
    assert found.to_dict()["plans"] == written["plans"]
    assert found.proven and written["proven"]


def test_a_change_is_settings_that_simulate_takes(scenario):
    told = interlock.explain(scenario)
    assert told.limited_by in str(told) and told.result.step_time_s > 0
    for change in told.changes[:4]:
        again = interlock.simulate(scenario, **change.set)
        assert again.step_time_s == change.step_time_s, change.words


def test_a_plan_recommends_a_row(pandas):
    planned = interlock.plan(
        "gpt2-xl", "dgx-a100-80g", [8, 16], tokens=1e9, prices={"dgx-a100-80g": "2 USD/h"}
    )
    assert [row.devices for row in planned] == [8, 16] and planned.best in planned.rows
    best = planned.best
    assert best.cost == pytest.approx(2 * best.device_hours)
    assert best.device_hours == pytest.approx(best.devices * best.time_s / 3600)
    assert planned.recommendation and list(planned.to_frame().machine) == ["dgx-a100-80g"] * 2
    with pytest.raises(interlock.ScenarioError, match="tokens"):
        interlock.plan("gpt2-xl", "dgx-a100-80g", 8)


def test_progress_is_told_and_what_it_raises_ends_the_call(scenario):
    told = []
    interlock.search(scenario, search=FEW, progress=lambda done, of: told.append((done, of)))
    assert told and all(done <= of for done, of in told)

    class Enough(Exception):
        pass

    def enough(done, of):
        raise Enough

    for ask in (interlock.search, interlock.explain):
        with pytest.raises(Enough):
            ask(scenario, progress=enough)


def test_ctrl_c_ends_a_search(scenario):
    told = []

    def interrupt(done, of):
        told.append((done, of))
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interlock.search(scenario, progress=interrupt)
    assert len(told) == 1


def test_ctrl_c_from_outside_ends_a_search_before_its_end(scenario, one_thread_at_a_time):
    told, started = [], threading.Event()
    main = threading.main_thread().ident

    def interrupt():
        started.wait()  # and for the lock, which the search gives back
        signal.pthread_kill(main, signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        started.set()
        interlock.search(scenario, progress=lambda done, of: told.append((done, of)))
    sender.join()
    assert not told or told[-1][0] < told[-1][1]


def test_other_threads_run_while_the_library_computes(scenario, one_thread_at_a_time):
    count, ended = [0], threading.Event()

    def run():
        while not ended.is_set():
            count[0] += 1
            time.sleep(0)

    other = threading.Thread(target=run)
    other.start()
    try:
        before = count[0]
        interlock.explain(scenario, threads=1)
        assert count[0] > before
    finally:
        ended.set()
        other.join()


def test_threads_may_ask_at_once(scenario):
    times = [None] * 4

    def ask(i):
        times[i] = interlock.simulate(scenario, training__micro_batch_size=2).step_time_s

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(times)) == 1 and times[0] > 0


def test_without_pandas_numbers_are_there_and_tables_say_what_to_type(scenario):
    code = """if True:
        import json, sys
        sys.modules["pandas"] = sys.modules["numpy"] = None
        import interlock
        scenario = json.loads(sys.argv[1])
        step = interlock.simulate(scenario)
        assert step.step_time_s > 0 and step._repr_html_()
        assert interlock.explain(scenario)._repr_html_()
        for ask in (step.timeline, step.devices, lambda: interlock.sweep(scenario)):
            try:
                ask()
            except ModuleNotFoundError as error:
                print(error)
    """
    words = [sys.executable, "-s", "-c", code, json.dumps(scenario)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all("pip install pandas" in line for line in lines)


def test_importing_takes_neither_pandas_nor_matplotlib():
    code = "import interlock, sys; print({'pandas', 'numpy', 'matplotlib'} & set(sys.modules))"
    words = [sys.executable, "-s", "-c", code]
    assert subprocess.run(words, capture_output=True, text=True).stdout == "set()\n"
