"""What editors and type checkers read is what the library has; UPDATE_PAGES=1 writes it."""

# SPDX-License-Identifier: Apache-2.0
import ast
import inspect
import os

import interlock
from conftest import SOURCE
from interlock import _core

FOLDER = SOURCE / "python" / "interlock"
STUB = FOLDER / "_metrics.pyi"

HEAD = '''"""The numbers of a result, made of the table of metrics by tests/python/stubs_test.py."""

# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple, Optional

from . import _core

class Metric(NamedTuple):
    key: str
    unit: str
    better: str
    meaning: str

def metrics() -> list[Metric]: ...

class Metrics:
    _core: _core.Result
'''
ALWAYS = (  # that are never unknown
    "step_time_s busy useful bubble_fraction exposed_communication_s peak_memory_bytes"
    " fits_in_memory"
).split()


def stub():
    text = HEAD
    for metric in interlock.metrics():
        kind = {"truth": "bool", "count": "int"}.get(metric.unit, "float")
        kind = kind if metric.key in ALWAYS else f"Optional[{kind}]"
        words = getattr(interlock.Result, metric.key).__doc__
        text += f'    @property\n    def {metric.key}(self) -> {kind}:\n        """{words}"""\n'
    return text


def test_the_stub_of_metrics_is_made_of_the_table():
    if os.environ.get("UPDATE_PAGES"):
        STUB.write_text(stub())
    assert STUB.read_text() == stub(), "UPDATE_PAGES=1 renews it"
    ast.parse(stub())


def test_the_stub_of_the_binding_names_what_it_has():
    names = {}
    for one in ast.parse((FOLDER / "_core.pyi").read_text()).body:
        if isinstance(one, ast.FunctionDef):
            names[one.name] = set()
        elif isinstance(one, ast.ClassDef):
            members = [getattr(part, "name", None) or part.target.id for part in one.body]
            names[one.name] = {member for member in members if member != "__init__"}
    has = {name: value for name, value in vars(_core).items() if not name.startswith("__")}
    assert set(has) == set(names)
    for name, members in names.items():
        kind = has[name]
        own = {one for one in vars(kind) if one[0] != "_"} if inspect.isclass(kind) else set()
        assert own == members, name


def test_everything_public_has_a_docstring():
    for name in interlock.__all__:
        one = getattr(interlock, name)
        assert inspect.getdoc(one), name
        if not inspect.isclass(one):
            continue
        for member, value in vars(one).items():
            if member[0] != "_" and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_tab_completion_shows_the_public_names_alone():
    assert set(dir(interlock)) == {*interlock.__all__, "__version__"}
    assert (FOLDER / "py.typed").exists()
