"""Questions to the library: simulate, sweep, search, plan, explain, compare, check."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from . import _core
from ._answers import Change, Explanation, FoundPlan, PlanResult, PlanRow, SearchResult
from ._metrics import metrics
from ._result import Result
from ._scenario import Progress, Scenario, options, request, settings_of
from ._tables import need_pandas

if TYPE_CHECKING:
    import pandas


def check(scenario: Scenario, /, **set: Any) -> int:
    """Reads a scenario without running it. Returns how many scenarios its "sweep" makes, else 1.

    Raises: ScenarioError with all mistakes.
    """
    return _core.check(*request(scenario, set))


def simulate(
    scenario: Scenario,
    /,
    *,
    timeline: bool = True,
    range_draws: int = 0,
    engine: str = "",
    **set: Any,
) -> Result:
    """Simulates one scenario.

    timeline: keeps what timeline(), memory(), plot() and report_html() of the result need.
    range_draws: simulations that the range of a step on a calibrated device is drawn from, at
    least 20; 0: it has none.
    engine: "native", "simgrid", or "auto", SimGrid where links are shared. Each run of SimGrid is a
    program that is started for it, so "auto" of a scenario is the native engine, whose times are
    the same.
    set: keys of the scenario, parallel__pipeline=8.
    Raises: ScenarioError, also for a scenario with a "sweep".
    """
    asked = request(scenario, set, timeline=timeline, range_draws=range_draws, engine=engine)
    return Result(_core.simulate(*asked), timeline)


def simulate_all(
    scenario: Scenario,
    /,
    *,
    timeline: bool = True,
    engine: str = "",
    threads: int = 0,
    progress: Progress = None,
    **set: Any,
) -> list[Result]:
    """Simulates every scenario of one with a "sweep", on all processors; see sweep(), too.

    Raises: ScenarioError of the first scenario that is wrong.
    """
    asked = request(
        scenario, set, timeline=timeline, engine=engine, threads=threads, progress=progress
    )
    return [Result(core, timeline) for core in _core.simulate_all(*asked)]


def sweep(
    scenario: Scenario,
    values: Optional[Mapping[Union[str, tuple], Iterable]] = None,
    /,
    *,
    threads: int = 0,
    progress: Progress = None,
    **set: Any,
) -> pandas.DataFrame:
    """Simulates a scenario with all combinations of values, on all processors.

        sweep(scenario, {"parallel.pipeline": [1, 2, 4], "training.schedule": ["1f1b", "zb-h1"]})

    values: the values that each path takes; they add to the scenario's own "sweep". A tuple of
    paths takes tuples of values: {("parallel.pipeline", "parallel.data"): [(1, 8), (8, 1)]}.
    threads: 0: as many as processors.
    Returns a row for each combination, the last path varying fastest: its values, every metric that
    any row knows (interlock.metrics() says what they mean), and `error`, why a row has no numbers,
    else None.
    Raises: ScenarioError if no sweep can be made; ModuleNotFoundError without pandas.
    """
    pandas = need_pandas()
    if values is not None:
        set = {**set, "sweep": _swept(values)}
    asked = request(scenario, set, timeline=False, threads=threads, progress=progress)
    paths, rows, errors, numbers = _core.sweep(*asked)
    columns = {path: [json.loads(row[i]) for row in rows] for i, path in enumerate(paths)}
    columns.update(_known(pandas.DataFrame(numbers, columns=[one.key for one in metrics()])))
    columns["error"] = [error or None for error in errors]
    return pandas.DataFrame(columns)


def _known(numbers: pandas.DataFrame) -> pandas.DataFrame:
    """Returns the columns that any row knows, those that people decide by first."""
    first = [one.key for one in metrics()].index("step_time_s")
    order = metrics()[first:] + metrics()[:first]
    numbers = numbers[[one.key for one in order if numbers[one.key].notna().any()]]
    for key, unit in ((one.key, one.unit) for one in order):
        if key in numbers and unit in _TYPES:
            plain, nullable = _TYPES[unit]
            numbers = numbers.astype({key: plain if numbers[key].notna().all() else nullable})
    return numbers


# Of units: where every row is known, and where not.
_TYPES = {"truth": ("bool", "boolean"), "count": ("int64", "Int64")}


def _swept(values: Mapping[Union[str, tuple], Iterable]) -> dict[str, list]:
    """Returns values as "sweep" of a scenario has them. Raises: TypeError."""
    swept = {}
    for path, several in values.items():
        if isinstance(several, str) or not isinstance(several, Iterable):
            raise TypeError(f"{path!r} takes {several!r}; expected a list of values")
        swept[path if isinstance(path, str) else ",".join(path)] = list(several)
    return swept


def compare(*scenarios: Union[Scenario, Result], **set: Any) -> pandas.DataFrame:
    """Simulates scenarios, and returns a row for each: its metrics, by its name.

    Results are taken as they are. A scenario with a "sweep" makes several rows.
    """
    pandas = need_pandas()
    results: list[Result] = []
    for one in scenarios:
        found = [one] if isinstance(one, Result) else simulate_all(one, timeline=False, **set)
        results.extend(found)
    names = pandas.Index([one.name for one in results], name="name")
    rows = [[one._core.metric(metric.key) for metric in metrics()] for one in results]
    keys = [metric.key for metric in metrics()]
    return _known(pandas.DataFrame(rows, columns=keys, index=names, dtype=float))


def report_html(
    results: Union[Result, Sequence[Result]], path: Optional[Union[str, os.PathLike]] = None
) -> str:
    """Returns one self-contained page that compares results, and writes it to `path`, if given."""
    several = [results] if isinstance(results, Result) else list(results)
    page = _core.report_html([one._core for one in several])
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def search(
    scenario: Scenario, /, *, threads: int = 0, progress: Progress = None, **set: Any
) -> SearchResult:
    """Searches the plans that a scenario may be trained by, as its "search" says.

    progress: called with how many plans are done, and of how many. Ctrl-C ends the search.
    """
    plans, text = _core.search(*request(scenario, set, threads=threads, progress=progress))
    return SearchResult([FoundPlan(**plan) for plan in plans], text)


def plan(
    model: str,
    machines: Union[str, Sequence[str]],
    devices: Union[int, Sequence[int]],
    *,
    tokens: float = 0,
    samples: float = 0,
    batch: float = 0,
    sequence_length: int = 0,
    weak: bool = False,
    days: float = 0,
    budget: str = "",
    prices: Optional[Mapping[str, str]] = None,
    mtbf: str = "",
    threads: int = 0,
    progress: Progress = None,
    **set: Any,
) -> PlanResult:
    """Plans a training: the best plan of each machine and size, priced.

    model, machines: names, or paths of descriptions. devices: sizes to compare.
    tokens or samples: length of the training; batch: of a step, in these; 0: a usual one.
    weak: the batch grows with the devices. sequence_length: 0: the model's.
    days: that it may take; budget: "2e6 USD"; 0 and "": any.
    prices: of a device, by machine: {"dgx-h100": "2.50 USD/h"}. mtbf: of a device, "6334 h"; "":
    none fails. set: keys of every scenario.
    """
    question = _core.PlanQuestion()
    question.model = os.fspath(model)
    question.machines = [machines] if isinstance(machines, str) else list(machines)
    question.devices = [devices] if isinstance(devices, int) else [int(one) for one in devices]
    question.tokens, question.samples, question.batch = tokens, samples, batch
    question.sequence_length, question.weak, question.days = sequence_length, weak, days
    question.budget, question.prices, question.mtbf = budget, dict(prices or {}), mtbf
    asked = options(set, progress=progress, threads=threads)
    found, ranking, recommendation, text = _core.plan(question, asked)
    rows = [PlanRow(**row) for row in found]
    return PlanResult(rows, [rows[i] for i in ranking], recommendation, text)


def explain(
    scenario: Scenario, /, *, threads: int = 0, progress: Progress = None, **set: Any
) -> Explanation:
    """Explains what limits the step of a scenario, and tries what would make it shorter.

    Each change of the answer was simulated: simulate(scenario, **change.set) gives its step time.
    """
    core, limit, found, text = _core.explain(
        *request(scenario, set, threads=threads, progress=progress)
    )
    changes = []
    for fields in found:
        settings = settings_of(fields.pop("set_text"))
        changes.append(Change(set=settings, **fields))
    return Explanation(Result(core, True), limit, changes, text)
