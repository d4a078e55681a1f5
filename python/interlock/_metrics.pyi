"""The numbers of a result, made of the table of metrics by tests/python/stubs_test.py."""

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
    @property
    def tasks(self) -> Optional[int]:
        """ops and messages of the run, fill included (unit: count)"""
    @property
    def skipped_tasks(self) -> Optional[int]:
        """of these, those in whole periods of micro-batches that were counted and not simulated (`simulate.skip_periods`) (unit: count)"""
    @property
    def wall_time_s(self) -> Optional[float]:
        """seconds the simulation took on this computer (unit: s)"""
    @property
    def step_time_s(self) -> float:
        """mean time of a step in the measured window (unit: s)"""
    @property
    def makespan_s(self) -> Optional[float]:
        """from the first start to the last end of everything simulated (unit: s)"""
    @property
    def steady(self) -> Optional[bool]:
        """whether the state repeated; if not, the figures are means over steps that still differ (true or false)"""
    @property
    def fill_steps(self) -> Optional[int]:
        """steps simulated before the measured window (unit: count)"""
    @property
    def measured_steps(self) -> Optional[int]:
        """steps in the measured window (unit: count)"""
    @property
    def fill_latency_s(self) -> Optional[float]:
        """time until the last stage first starts a forward (unit: s)"""
    @property
    def window_begin_s(self) -> Optional[float]:
        """start of the measured window, since the run began (unit: s)"""
    @property
    def window_end_s(self) -> Optional[float]:
        """its end (unit: s)"""
    @property
    def samples_per_s(self) -> Optional[float]:
        """samples trained on per second; null if the model does not say how many a micro-batch holds (unit: 1/s)"""
    @property
    def tokens_per_s(self) -> Optional[float]:
        """tokens per second; null for models without tokens (unit: 1/s)"""
    @property
    def micro_batches_per_s(self) -> Optional[float]:
        """micro-batches of all replicas per second; not counted in traces (unit: 1/s)"""
    @property
    def steps_per_s(self) -> Optional[float]:
        """steps per second (unit: 1/s)"""
    @property
    def samples_per_s_per_device(self) -> Optional[float]:
        """`samples_per_s` over `devices_total` (unit: 1/s)"""
    @property
    def tokens_per_s_per_device(self) -> Optional[float]:
        """`tokens_per_s` over `devices_total` (unit: 1/s)"""
    @property
    def busy(self) -> float:
        """share of the time in which a device executes anything (unit: share)"""
    @property
    def useful(self) -> float:
        """share spent on the main network's own forward and backward: no heads, recompute, updates or gradients that only pass through (unit: share)"""
    @property
    def mfu(self) -> Optional[float]:
        """model flops, without heads and recompute, over what all devices could do at their peak rate (unit: share)"""
    @property
    def hfu(self) -> Optional[float]:
        """the same with all flops that were executed: heads and recomputation, too, and of attention what its kernels compute (unit: share)"""
    @property
    def bubble_fraction(self) -> float:
        """`1 - busy`; waiting for messages, and exchanges inside ops, are part of it (unit: share)"""
    @property
    def exposed_communication_s(self) -> float:
        """per step, time in which a device is idle while the message or collective that it waits for is on its way, exchanges inside ops included; mean over devices (unit: s)"""
    @property
    def outer_exchanges(self) -> Optional[int]:
        """exchanges, of one fragment each, in the `every` steps of `parallel.outer`; null without it (unit: count)"""
    @property
    def outer_exchange_s(self) -> Optional[float]:
        """time that workers take to exchange one fragment of their weights; null without `parallel.outer` (unit: s)"""
    @property
    def outer_exposed_s(self) -> Optional[float]:
        """of `step_time_s`, what outer steps add to a step on average: exchanges as far as training waits for them, and updates (unit: s)"""
    @property
    def limiting_device(self) -> Optional[int]:
        """rank of the busiest device (unit: count)"""
    @property
    def fits_in_memory(self) -> bool:
        """whether every device's peak stays within its memory, and what is kept on hosts within theirs (true or false)"""
    @property
    def peak_memory_bytes(self) -> float:
        """most bytes that the fullest of the `devices` ever holds (unit: bytes)"""
    @property
    def used_memory_bytes(self) -> Optional[float]:
        """most bytes in use on one of the `devices`, as `nvidia-smi` tells: its peak, what the allocator keeps beyond it, the process's context and its communicators' buffers; null if the device is no GPU of NVIDIA or AMD, and of recorded workloads (unit: bytes)"""
    @property
    def peak_stash_bytes(self) -> Optional[float]:
        """most bytes of stash that any of the `devices` ever keeps (unit: bytes)"""
    @property
    def weights_bytes(self) -> Optional[float]:
        """weights of the device that holds most, at its peak (unit: bytes)"""
    @property
    def weight_versions_bytes(self) -> Optional[float]:
        """weight versions of the device that holds most, at its peak (unit: bytes)"""
    @property
    def gradients_bytes(self) -> Optional[float]:
        """gradients of the device that holds most, at its peak (unit: bytes)"""
    @property
    def states_bytes(self) -> Optional[float]:
        """optimiser states of the device that holds most, at its peak (unit: bytes)"""
    @property
    def most_staleness(self) -> Optional[int]:
        """updates that a stage made between a micro-batch's forward and the update that used its gradients, the most of all; null if nothing is trained (unit: count)"""
    @property
    def traffic_bytes(self) -> Optional[float]:
        """bytes of a step on all `links` together (unit: bytes)"""
    @property
    def memory_capacity_bytes(self) -> Optional[float]:
        """memory of the fullest device, the one whose peak takes the largest part of its own; null if the machine does not say (unit: bytes)"""
    @property
    def host_peak_bytes(self) -> Optional[float]:
        """what devices of a node keep with their host, each at its peak: of the node that keeps most (unit: bytes)"""
    @property
    def host_capacity_bytes(self) -> Optional[float]:
        """memory of a node's host; null if the machine does not say (unit: bytes)"""
    @property
    def run_time_s(self) -> Optional[float]:
        """run_time_s (unit: s)"""
    @property
    def energy_j(self) -> Optional[float]:
        """energy_j (unit: J)"""
    @property
    def mean_power_w(self) -> Optional[float]:
        """mean_power_w (unit: W)"""
    @property
    def cost(self) -> Optional[float]:
        """cost (unit: money)"""
    @property
    def cost_per_million_tokens(self) -> Optional[float]:
        """cost_per_million_tokens (unit: money)"""
    @property
    def cost_per_million_samples(self) -> Optional[float]:
        """cost_per_million_samples (unit: money)"""
    @property
    def goal_time_s(self) -> Optional[float]:
        """goal_time_s (unit: s)"""
    @property
    def goal_energy_j(self) -> Optional[float]:
        """goal_energy_j (unit: J)"""
    @property
    def goal_cost(self) -> Optional[float]:
        """goal_cost (unit: money)"""
    @property
    def range_low_s(self) -> Optional[float]:
        """range_low_s (unit: s)"""
    @property
    def range_high_s(self) -> Optional[float]:
        """range_high_s (unit: s)"""
    @property
    def share_of_best(self) -> Optional[float]:
        """share_of_best (unit: share)"""
    @property
    def quality(self) -> Optional[int]:
        """quality (unit: count)"""
    @property
    def devices_total(self) -> Optional[int]:
        """devices_total (unit: count)"""
    @property
    def devices_simulated(self) -> Optional[int]:
        """devices_simulated (unit: count)"""
    @property
    def micro_batches(self) -> Optional[int]:
        """micro_batches (unit: count)"""
