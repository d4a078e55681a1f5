"""What goes wrong is said as the program says it."""

# SPDX-License-Identifier: Apache-2.0
import pickle

import pytest

import interlock

WRONG = [
    {"parallel.pipline": 8},
    {"training.schedule": "1f1b-x"},
    {"cluster.machine": "dgx-a100"},
    {"training.micro_batch_size": "many"},
    {"parallel.data": 3},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: next(iter(wrong)))
def test_sentences_are_those_of_the_program(scenario, program, wrong):
    with pytest.raises(interlock.ScenarioError) as caught:
        interlock.simulate(scenario, **wrong)
    ((path, value),) = wrong.items()
    said = program("simulate", scenario, "--set", f"{path}={value}")
    assert str(caught.value) == said.rstrip("\n")
    assert isinstance(caught.value, ValueError)


def test_diagnostics_tell_place_mistake_and_hint(scenario):
    text = '{\n "model": "gpt2-xl",\n "cluster": "dgx-h10"\n}'
    with pytest.raises(interlock.ScenarioError) as caught:
        interlock.check(text)
    by_path = {one.path: one for one in caught.value.diagnostics}
    machine = by_path["/cluster"]
    assert machine.line == 3 and "dgx-h10" in machine.message and "dgx-h100" in machine.hint
    assert len(by_path) == len(str(caught.value).splitlines()) == 2  # the other: no training


def test_an_error_survives_another_process(scenario):
    with pytest.raises(interlock.ScenarioError) as caught:
        interlock.simulate(scenario, parallel__pipline=8)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.diagnostics == caught.value.diagnostics


def test_what_is_no_scenario_is_refused_with_what_would_be(scenario):
    with pytest.raises(FileNotFoundError, match="expected a dict, the path of a JSON file"):
        interlock.simulate("nowhere.json")
    with pytest.raises(TypeError, match="expected a dict, the path of a JSON file"):
        interlock.simulate(8)
    with pytest.raises(TypeError, match="no value of a scenario"):
        interlock.simulate(scenario, parallel__data=object())


def test_internal_errors_are_another_kind():
    assert issubclass(interlock.InternalError, RuntimeError)
    assert not issubclass(interlock.InternalError, ValueError)
