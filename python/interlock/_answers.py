"""Answers of search(), plan() and explain()."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import html
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Sequence

from ._result import Result
from ._scenario import HasScenario
from ._tables import need_pandas, table_html

if TYPE_CHECKING:
    import pandas


def _columns(kind: type) -> list[str]:
    return [one.name for one in dataclasses.fields(kind) if one.repr]


class _Table:
    """Rows of one kind, as DataFrames and notebooks show them."""

    _json: str

    def _rows(self) -> Sequence[Any]:
        raise NotImplementedError

    def _kind(self) -> type:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Returns all that is known, as the program's --json writes it."""
        return json.loads(self._json)

    def to_frame(self) -> pandas.DataFrame:
        """Returns a DataFrame with the attributes of each row, in order."""
        names = _columns(self._kind())
        rows = [[getattr(row, name) for name in names] for row in self._rows()]
        return need_pandas().DataFrame(rows, columns=names)

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self):
        return iter(self._rows())

    def __getitem__(self, index):
        return self._rows()[index]

    def _sentences(self) -> Sequence[str]:
        return ()

    def _repr_html_(self) -> str:
        names = _columns(self._kind())
        rows = [[getattr(row, name) for name in names] for row in self._rows()]
        words = "".join(f"<p>{html.escape(one)}</p>" for one in self._sentences())
        return words + (table_html(names, rows) if rows else "")


@dataclass(frozen=True)
class FoundPlan(HasScenario):
    """A plan that search() found; simulate() takes it."""

    words: str
    """"tensor 4, pipeline 2, data 8, ZeRO 1, micro-batch 1, 1f1b"."""
    step_time_s: float
    peak_memory_bytes: float
    tokens_per_s_per_device: Optional[float]
    mfu: Optional[float]
    energy_j: Optional[float]
    """Of a step."""
    worth_having: bool
    """Else an earlier plan is no worse in anything that counts."""
    scenario_json: str = field(repr=False)


@dataclass(frozen=True)
class SearchResult(_Table):
    """The plans that search() found, the best first; iterate over it, or take to_frame()."""

    plans: list[FoundPlan]
    _json: str = field(repr=False)

    @property
    def best(self) -> Optional[FoundPlan]:
        """The best plan; None if none is within the limits."""
        return self.plans[0] if self.plans else None

    @property
    def proven(self) -> bool:
        """No plan that cost too much to look at may be better, or within the limits."""
        return self.to_dict()["proven"]

    def _rows(self):
        return self.plans

    def _kind(self):
        return FoundPlan

    def _sentences(self):
        if self.plans:
            return ()
        of_those = "" if self.proven else " that was looked at"
        return (f"no plan{of_those} is within the limits; to_dict() says what is nearest",)

    def __repr__(self) -> str:
        best = f", best: {self.best.words}, step_time_s={self.best.step_time_s:.4g}"
        return f"<SearchResult: {len(self.plans)} plans{best if self.plans else ''}>"


@dataclass(frozen=True)
class PlanRow(HasScenario):
    """The best plan of one machine and size; simulate() takes it, if there is a plan."""

    machine: str
    devices: int
    fits: bool
    problem: str
    """Why there is no plan; empty: there is one."""
    words: str
    time_s: Optional[float]
    """Of the whole training; likewise what follows."""
    device_hours: Optional[float]
    goodput: Optional[float]
    """Share of that time that counts."""
    cost: Optional[float]
    energy_j: Optional[float]
    on_front: bool
    """No other row is both faster and cheaper."""
    scenario_json: str = field(repr=False)


@dataclass(frozen=True)
class PlanResult(_Table):
    """The answer of plan(): a row for each machine and size."""

    rows: list[PlanRow]
    ranking: list[PlanRow] = field(repr=False)
    """Rows that fit, the recommended first."""
    recommendation: list[str] = field(repr=False)
    """In sentences."""
    _json: str = field(repr=False)

    @property
    def best(self) -> Optional[PlanRow]:
        """The recommended row; None if none fits."""
        return self.ranking[0] if self.ranking else None

    def _rows(self):
        return self.rows

    def _kind(self):
        return PlanRow

    def _sentences(self):
        return self.recommendation

    def __str__(self) -> str:
        return "\n".join(self.recommendation)

    def __repr__(self) -> str:
        best = f", best: {self.best.devices} x {self.best.machine}" if self.best else ""
        return f"<PlanResult: {len(self.rows)} rows{best}>"


@dataclass(frozen=True)
class Change:
    """One change of a scenario, simulated: simulate(scenario, **change.set) is what it says."""

    words: str
    step_time_s: float
    gain_s: float
    """Seconds less of the scenario's step, for equal work; below 0: a loss."""
    peak_memory_bytes: float
    fits: bool
    set: dict[str, Any]
    """Path and value of each key that it sets."""


@dataclass(frozen=True)
class Explanation(_Table):
    """What limits a step, and what would make it shorter; the answer of explain()."""

    result: Result
    """Of the scenario as it is."""
    limited_by: str
    """What limits the step, in a sentence."""
    changes: list[Change] = field(repr=False)
    """What gains most first."""
    _json: str = field(repr=False)

    def _rows(self):
        return self.changes

    def _kind(self):
        return Change

    def _sentences(self):
        return (self.limited_by,)

    def __str__(self) -> str:
        return self.limited_by

    def __repr__(self) -> str:
        return f"<Explanation: {self.limited_by}; {len(self.changes)} changes>"
