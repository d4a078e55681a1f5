"""Schedule: an order of ops made in code, run on stages of given costs."""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Iterable, NamedTuple, Optional, Sequence, Union

from . import _core
from ._result import Result
from ._scenario import HasScenario


class Op(NamedTuple):
    """One op of a schedule."""

    op: str
    """F forward, B backward, I and W its halves for the input and for the weights."""
    stage: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.op}{self.micro_batch}"


@dataclass(frozen=True)
class StageCost:
    """The costs of a stage for one micro-batch: seconds and bytes."""

    forward_s: float = 0.0
    backward_input_s: float = 0.0
    """B takes this and backward_weight_s."""
    backward_weight_s: float = 0.0
    update_s: float = 0.0
    """Once a step."""
    output_bytes: float = 0.0
    """Sent to the next stage; its gradient comes back."""
    stash_bytes: float = 0.0
    """Kept from forward to backward."""
    weight_bytes: float = 0.0
    """Gradients and optimiser state come on top."""


OpLike = Union[str, Op, "tuple[str, int, int]"]
Costs = Union[StageCost, Sequence[StageCost]]
_WORD = re.compile(r"\s*(\d+)([A-Z])(\d+)\s*")


def _op(word: OpLike, place: str) -> Op:
    if not isinstance(word, str):
        return Op(*word)
    match = _WORD.fullmatch(word)
    if match is None:
        hint = "expected stage, letter and micro-batch, such as '0F1'"
        raise ValueError(f"{place}: op {word!r}; {hint}")
    return Op(match[2], int(match[1]), int(match[3]))


def _ops(rank: Union[str, Iterable[OpLike]], number: int) -> list[Op]:
    words = rank.split(",") if isinstance(rank, str) else rank
    return [_op(word, f"rank {number}, op {i}") for i, word in enumerate(words)]


def _core_property(name: str, words: str) -> Any:
    return property(lambda self: getattr(self._core, name), doc=words)


def _core_cost(cost: StageCost) -> _core.StageCost:
    core = _core.StageCost()
    for key, value in dataclasses.asdict(cost).items():
        setattr(core, key, value)
    return core


class Schedule(HasScenario):
    """Ranks that compute ops in a fixed order, on equal devices with private links.

    Make one by from_lists() or named(). Both take what follows, and the library's default where it
    is None: name, in tables and pictures; links of link_bandwidth_bytes_per_s (100 GB/s) and
    link_latency_s (0); memory_bytes of each device (80 GB); steps to measure (1).
    """

    def __init__(self, core: _core.Schedule, costs: Costs, **given: Any):
        for key, value in given.items():
            if value is not None:
                setattr(core, key, value)
        self._core = core
        if isinstance(costs, StageCost):
            stages = [op.stage for ops in self.ranks for op in ops]
            costs = [costs] * (max(stages, default=0) + 1)
        core.stages = [_core_cost(cost) for cost in costs]

    @classmethod
    def from_lists(
        cls,
        ranks: Iterable[Union[str, Iterable[OpLike]]],
        stages: Costs,
        *,
        name: Optional[str] = None,
        link_bandwidth_bytes_per_s: Optional[float] = None,
        link_latency_s: Optional[float] = None,
        memory_bytes: Optional[float] = None,
        steps: Optional[int] = None,
    ) -> Schedule:
        """Returns a schedule of the ops of each rank.

        An op is "0F1" (forward of stage 0 for micro-batch 1), Op("F", 0, 1), or such a tuple; a
        rank is a list of them, or a text "0F0,0F1,0B0,0B1". `stages`: the costs of each, or one
        StageCost for all.
        Raises: ValueError that names the op.
        """
        core = _core.Schedule()
        core.ranks = [_ops(rank, number) for number, rank in enumerate(ranks)]
        return cls(
            core,
            stages,
            name=name,
            link_bandwidth_bytes_per_s=link_bandwidth_bytes_per_s,
            link_latency_s=link_latency_s,
            memory_bytes=memory_bytes,
            steps=steps,
        )

    @classmethod
    def named(
        cls,
        schedule: str,
        stages: Costs,
        *,
        ranks: int,
        micro_batches: int,
        name: Optional[str] = None,
        link_bandwidth_bytes_per_s: Optional[float] = None,
        link_latency_s: Optional[float] = None,
        memory_bytes: Optional[float] = None,
        steps: Optional[int] = None,
    ) -> Schedule:
        """Returns a schedule of the catalogue: "1f1b", "zb-h1", "interleaved", ...

        `stages`: the costs of each, or one StageCost for as many stages as ranks.
        Raises: ScenarioError if it does not fit.
        """
        count = ranks if isinstance(stages, StageCost) else len(stages)
        return cls(
            _core.Schedule.named(schedule, ranks, count, micro_batches),
            stages,
            name=name,
            link_bandwidth_bytes_per_s=link_bandwidth_bytes_per_s,
            link_latency_s=link_latency_s,
            memory_bytes=memory_bytes,
            steps=steps,
        )

    name: str = _core_property("name", "Name in tables and pictures.")
    link_bandwidth_bytes_per_s: float = _core_property(
        "link_bandwidth_bytes_per_s", "Bandwidth of each link, bytes per second."
    )
    link_latency_s: float = _core_property("link_latency_s", "Latency of each link, seconds.")
    memory_bytes: float = _core_property("memory_bytes", "Memory of each device, bytes.")
    steps: int = _core_property("steps", "Steps to measure.")

    @property
    def ranks(self) -> tuple[tuple[Op, ...], ...]:
        """The ops of each rank in order."""
        return tuple(tuple(Op(*op) for op in ops) for ops in self._core.ranks)

    @property
    def stages(self) -> tuple[StageCost, ...]:
        """The costs of each stage."""
        names = [one.name for one in dataclasses.fields(StageCost)]
        return tuple(
            StageCost(**{name: getattr(stage, name) for name in names})
            for stage in self._core.stages
        )

    @property
    def scenario_json(self) -> str:
        """The scenario that simulate() runs, as JSON."""
        return self._core.scenario()

    def simulate(self, **set: Any) -> Result:
        """Simulates the schedule, as interlock.simulate() does.

        Raises: ScenarioError, which names the op, if one is missing, or ranks wait for each other
        for ever.
        """
        from ._questions import simulate

        return simulate(self, **set)

    def __str__(self) -> str:
        return self._core.text().rstrip("\n")

    def __repr__(self) -> str:
        ops = sum(len(rank) for rank in self.ranks)
        return f"<Schedule {self.name!r}: {len(self.ranks)} ranks, {ops} ops>"
