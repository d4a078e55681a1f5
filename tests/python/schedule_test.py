"""Schedules made in code, held to closed forms."""

# SPDX-License-Identifier: Apache-2.0
import pytest

import interlock
from conftest import one_f_one_b
from interlock import Op, Schedule, StageCost

COST = StageCost(forward_s=1e-3, backward_input_s=1e-3, backward_weight_s=1e-3, stash_bytes=2**20)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("micro_batches", [1, 3, 8])
def test_1f1b_takes_its_closed_form_whichever_way_it_is_written(ranks, micro_batches):
    words = one_f_one_b(ranks, micro_batches)
    tuples = [[Op(word[1], int(word[0]), int(word[2:])) for word in row] for row in words]
    texts = [",".join(row) for row in words]
    for written in (words, tuples, texts):
        step = Schedule.from_lists(written, COST).simulate()
        assert step.step_time_s == pytest.approx((micro_batches + ranks - 1) * 3e-3, rel=1e-9)
    devices = step.to_dict()["devices"]
    kept = [device["peak_stash_bytes"] for device in devices]
    assert kept == [min(ranks - rank, micro_batches) * 2**20 for rank in range(ranks)]


def test_a_link_delays_what_waits_for_it():
    # One forward on each of two ranks and its way back: two messages of 1 ms and 0.1 ms latency.
    cost = StageCost(forward_s=1e-3, backward_input_s=2e-3, output_bytes=1e6)
    schedule = Schedule.from_lists(
        ["0F0,0B0", "1F0,1B0"], cost, link_bandwidth_bytes_per_s=1e9, link_latency_s=1e-4
    )
    assert interlock.simulate(schedule).step_time_s == pytest.approx(6e-3 + 2 * 1.1e-3, rel=1e-9)


def test_a_schedule_of_the_catalogue_is_the_one_that_was_written_here():
    named = Schedule.named("1f1b", COST, ranks=4, micro_batches=8)
    assert str(named).splitlines() == [",".join(row) for row in one_f_one_b(4, 8)]
    assert named.stages == (COST,) * 4 and named.ranks[0][0] == Op("F", 0, 0)
    assert named.simulate().step_time_s == pytest.approx(11 * 3e-3, rel=1e-9)


def test_a_schedule_is_a_scenario():
    schedule = Schedule.from_lists(one_f_one_b(2, 2), COST, name="mine", steps=3)
    assert schedule.scenario["name"] == "mine" and schedule.scenario["training"]["steps"] == 3
    assert interlock.simulate(schedule.scenario).step_time_s == schedule.simulate().step_time_s
    assert schedule.link_bandwidth_bytes_per_s == 100e9 and schedule.memory_bytes == 80e9
    assert repr(schedule) == "<Schedule 'mine': 2 ranks, 8 ops>"


def test_what_cannot_run_names_the_op():
    with pytest.raises(ValueError, match="rank 0, op 1: op '0X'; expected"):
        Schedule.from_lists(["0F0,0X"], COST)
    with pytest.raises(interlock.ScenarioError, match="0B0"):
        Schedule.from_lists(["0B0,0F0"], COST).simulate()
    with pytest.raises(interlock.ScenarioError, match="0F1.*has no backward"):
        Schedule.from_lists(["0F0,0F1,0B0"], COST).simulate()
    with pytest.raises(interlock.ScenarioError, match="known"):
        Schedule.named("1f1b-x", COST, ranks=2, micro_batches=2)
