"""Noise models of hosts, as numbers; they draw nothing.

The levels follow Kalibera & Jones (ISMM 2013): process over block over call; times change by a random walk and by a
neighbour that comes and goes. Figures of the presets are those of method.md 1.1.
"""

from dataclasses import dataclass
from typing import Literal

Visible = Literal["steal", "foreign", "throttling", "pressure", "faults", "suspend"]
EVERYTHING: frozenset[Visible] = frozenset({"steal", "foreign", "throttling", "pressure", "faults", "suspend"})


@dataclass(frozen=True)
class NoiseModel:
    """How a host disturbs timings; standard deviations are of log-latency.

    Attributes:
        walk_sd: Random walk per √second, pulled back with time constant `walk_s`.
        process_sd: Effect of a process (layout, placement), drawn once when it is opened.
        slow_process_share: Share of processes in the slow mode.
        slow_process_log: How much slower that mode is.
        block_sd: Of a block.
        call_sd: Of a call.
        spike_share: Share of calls with a spike.
        spike_scale: Mean of a spike's exponential excess, relative to the call.
        neighbour_on_per_s: Rate at which a neighbour starts.
        neighbour_off_per_s: Rate at which it stops.
        neighbour_log: How much slower everything is meanwhile.
        neighbour_steal: Steal that shows it to the gate; 0 hides it.
    """

    walk_sd: float = 0.0057
    walk_s: float = 600.0
    process_sd: float = 0.01
    slow_process_share: float = 0.0
    slow_process_log: float = 0.0
    block_sd: float = 0.01
    call_sd: float = 0.02
    spike_share: float = 0.05
    spike_scale: float = 0.5
    neighbour_on_per_s: float = 0.0
    neighbour_off_per_s: float = 0.3
    neighbour_log: float = 0.113
    neighbour_steal: float = 0.0


STILL = NoiseModel(walk_sd=0.0, process_sd=0.0, block_sd=0.0, call_sd=0.0, spike_share=0.0)
QUIET = NoiseModel(walk_sd=0.001, process_sd=0.002, block_sd=0.003, call_sd=0.01, spike_share=0.005)
OK = NoiseModel()
BIMODAL = NoiseModel(slow_process_share=0.2, slow_process_log=0.0583)
ROUGH = NoiseModel(process_sd=0.03)
NEIGHBOUR = NoiseModel(neighbour_on_per_s=0.04)

PRESETS: dict[str, NoiseModel] = {"ok": OK, "bimodal": BIMODAL, "rough": ROUGH, "neighbour": NEIGHBOUR}
"""The four models under which false wins are counted: process sd 1%; 20% of processes 6% slower; process sd 3%; a
hidden neighbour (+12%) that starts in 2% and stops in 15% of half-second blocks."""
