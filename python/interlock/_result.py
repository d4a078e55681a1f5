"""Result: the outcome of one scenario."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from ._metrics import Metrics
from ._tables import need_pandas

if TYPE_CHECKING:
    import pandas


class Picture:
    """A picture that notebooks show; `svg` is its text."""

    def __init__(self, svg: str, name: str):
        self.svg = svg
        self._name = name

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file, whose name should end in .svg."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        # As an image it shares nothing with its page, and takes the width that there is.
        data = base64.b64encode(self.svg.encode()).decode()
        words = html.escape(f"Timeline of {self._name}")
        return f'<img alt="{words}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'

    def __repr__(self) -> str:
        return f"<Picture: {len(self.svg)} bytes of SVG; save(path) writes it>"


class Result(Metrics):
    """The outcome of one scenario: simulate() makes it.

    Its numbers are attributes, with their units in their names; interlock.metrics() lists them.
    What is unknown is None. str() is the table that the program prints.
    """

    def __init__(self, core: _core.Result, drawn: bool):
        self._core = core
        self._drawn = drawn  # a timeline was kept

    def _traced(self) -> _core.Result:
        if self._drawn:
            return self._core
        raise ValueError(f"{self.name}: no timeline was kept; type: simulate(..., timeline=True)")

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self._core.name()

    def to_dict(self) -> dict[str, Any]:
        """Returns all that is known, "interlock-result/1", with units in the names of its keys."""
        return json.loads(self._core.json())

    def timeline(self) -> pandas.DataFrame:
        """Returns what every device did: a row for each op, by rank and time; for several if
        gradients are exchanged between its parts.

        Columns: rank; op (F forward, B backward, I and W its halves for input and weights,
        R recompute, H head, U update); stage; micro_batch (counted through the run); slice;
        start_s, end_s; exposed_s (seconds idle before it while its message was on the way).
        Raises: ValueError after simulate(..., timeline=False).
        """
        pandas = need_pandas()
        columns = self._traced().timeline()
        letters = [chr(code) for code in columns["op"]]
        columns["op"] = pandas.Categorical(letters, categories=list("FBIWRHU"))
        return pandas.DataFrame(columns)

    def memory(self) -> pandas.DataFrame:
        """Returns what every device held: a row whenever that changes, by rank and time.

        Columns: rank, time_s, memory_bytes (held from then on).
        Raises: ValueError after simulate(..., timeline=False).
        """
        return need_pandas().DataFrame(self._traced().memory())

    def devices(self) -> pandas.DataFrame:
        """Returns a row for each simulated device.

        Columns: rank, device (its number in the machine), stages, busy, useful, time_shares.* (they
        add up to 1), peak_memory_bytes, memory_bytes.* (at its peak), bubble_s.* (seconds idle in a
        step, by cause).
        """
        return need_pandas().json_normalize(self.to_dict()["devices"])

    def links(self) -> pandas.DataFrame:
        """Returns a row for each link: name, bytes in a step, utilisation."""
        return need_pandas().json_normalize(self.to_dict()["links"])

    def plot(self) -> Picture:
        """Returns a picture of a few steps: what each device does and when.

        Raises: ValueError after simulate(..., timeline=False).
        """
        return Picture(self._traced().svg(), self.name)

    def table(self, width: int = 100) -> str:
        """Returns the table that the program prints, `width` columns wide."""
        return self._core.table(width)

    def report_html(self) -> str:
        """Returns one self-contained page: timelines, memory, links, what limits the step."""
        return _core.report_html([self._traced()])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        first = ("step_time_s", "tokens_per_s", "busy", "mfu", "peak_memory_bytes")
        known = {key: getattr(self, key) for key in first if getattr(self, key) is not None}
        words = [f"{key}={value:.4g}" for key, value in known.items()]
        return f"<Result {self.name!r}: {', '.join(words)}, fits_in_memory={self.fits_in_memory}>"

    def _repr_html_(self) -> str:
        text = f'<pre style="line-height:1.2;overflow-x:auto">{html.escape(self.table())}</pre>'
        return text + (self.plot()._repr_html_() if self._drawn else "")
