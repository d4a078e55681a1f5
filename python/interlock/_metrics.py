"""The numbers of a result, as attributes with their units in their names."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from . import _core


class Metric(NamedTuple):
    """Describes a number of results."""

    key: str
    """Name of the attribute, with its unit: "step_time_s"."""
    unit: str
    """s, bytes, J, W, 1/s, money, share, count or truth."""
    better: str
    """less, more or neither."""
    meaning: str


def _described(key: str, unit: str, better: str, meaning: str) -> Metric:
    # References to places of docs/result.md lead nowhere here.
    return Metric(key, unit, better, re.sub(r",? \[below\]\([^)]*\)", "", meaning))


_METRICS = tuple(_described(*row) for row in _core.metrics())


def metrics() -> list[Metric]:
    """Returns all metrics that are numbers, in the order of results."""
    return list(_METRICS)


def _value(number: float | None, unit: str):
    if number is None:
        return None
    return bool(number) if unit == "truth" else int(number) if unit == "count" else number


class Metrics:
    """A property for each of metrics(); None where it is unknown."""

    _core: _core.Result

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, [one for one in dir(self) if one[0] != "_"], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; see interlock.metrics()"
        raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}", name=name, obj=self)


def _property(metric: Metric) -> property:
    def get(self):
        return _value(self._core.metric(metric.key), metric.unit)

    unit = "true or false" if metric.unit == "truth" else f"unit: {metric.unit}"
    return property(get, doc=f"{metric.meaning or metric.key} ({unit})")


for _metric in _METRICS:
    setattr(Metrics, _metric.key, _property(_metric))
