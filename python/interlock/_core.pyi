"""What the package calls of libinterlock; see include/interlock/interlock.h."""

# SPDX-License-Identifier: Apache-2.0
from typing import Any, Callable, Optional

Columns = dict[str, Any]  # arrays of NumPy
OpTuple = tuple[str, int, int]

class Options:
    timeline: bool
    range_draws: int
    threads: int
    engine: str
    def __init__(
        self, file: str, set: list[str], progress: Optional[Callable[[int, int], Any]]
    ) -> None: ...

class Result:
    def name(self) -> str: ...
    def metric(self, key: str) -> Optional[float]: ...
    def json(self) -> str: ...
    def table(self, width: int) -> str: ...
    def timeline(self) -> Columns: ...
    def memory(self) -> Columns: ...
    def svg(self) -> str: ...

class PlanQuestion:
    model: str
    machines: list[str]
    devices: list[int]
    tokens: float
    samples: float
    batch: float
    sequence_length: int
    weak: bool
    days: float
    budget: str
    prices: dict[str, str]
    mtbf: str

class StageCost:
    forward_s: float
    backward_input_s: float
    backward_weight_s: float
    update_s: float
    output_bytes: float
    stash_bytes: float
    weight_bytes: float

class Schedule:
    name: str
    ranks: list[list[OpTuple]]
    stages: list[StageCost]
    link_bandwidth_bytes_per_s: float
    link_latency_s: float
    memory_bytes: float
    steps: int
    @staticmethod
    def named(schedule: str, ranks: int, stages: int, micro_batches: int) -> Schedule: ...
    def text(self) -> str: ...
    def scenario(self) -> str: ...

def version() -> str: ...
def metrics() -> list[tuple[str, str, str, str]]: ...
def check(text: str, options: Options) -> int: ...
def simulate(text: str, options: Options) -> Result: ...
def simulate_all(text: str, options: Options) -> list[Result]: ...
def report_html(results: list[Result]) -> str: ...
def sweep(text: str, options: Options) -> tuple[list[str], list[list[str]], list[str], Any]: ...
def search(text: str, options: Options) -> tuple[list[dict[str, Any]], str]: ...
def plan(
    question: PlanQuestion, options: Options
) -> tuple[list[dict[str, Any]], list[int], list[str], str]: ...
def explain(text: str, options: Options) -> tuple[Result, str, list[dict[str, Any]], str]: ...
