"""Predicts step time, memory and utilisation of model-parallel training.

    import interlock

    step = interlock.simulate("scenario.json", parallel__pipeline=8)
    step.step_time_s, step.peak_memory_bytes

A scenario is a dict, the path of a JSON file, its text, or what search(), plan() and Schedule give.
Keywords set keys of it: two underscores stand for the dot of a path, so that parallel__pipeline=8
is what `--set parallel.pipeline=8` is to the program; ** takes paths as they are:
**{"parallel.pipeline": 8}.

Units stand in names: _s seconds, _bytes bytes, _j joules, _w watts; shares are numbers from 0 to 1.
Indices, ranks and stages count from 0. What is unknown is None. Nothing is printed.
"""

# SPDX-License-Identifier: Apache-2.0
from ._answers import Change, Explanation, FoundPlan, PlanResult, PlanRow, SearchResult
from ._core import version as _version
from ._errors import Diagnostic, InternalError, ScenarioError
from ._metrics import Metric, metrics
from ._questions import check, compare, explain, plan, report_html, search, simulate, simulate_all
from ._questions import sweep
from ._result import Picture, Result
from ._schedule import Op, Schedule, StageCost

__version__ = _version()

__all__ = [
    "Change",
    "Diagnostic",
    "Explanation",
    "FoundPlan",
    "InternalError",
    "Metric",
    "Op",
    "Picture",
    "PlanResult",
    "PlanRow",
    "Result",
    "Schedule",
    "ScenarioError",
    "SearchResult",
    "StageCost",
    "check",
    "compare",
    "explain",
    "metrics",
    "plan",
    "report_html",
    "search",
    "simulate",
    "simulate_all",
    "sweep",
]


def __dir__():
    return [*__all__, "__version__"]
