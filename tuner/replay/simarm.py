"""One simulated process: warms up, runs blocks, fails as scripted; it knows its host and nothing of comparisons."""

from typing import Literal, Protocol, cast

import numpy as np

from tuner.errors import TrialError
from tuner.messages import BlockDone, FidelityDone, Loaded, Warmed
from tuner.records.config import Config
from tuner.records.measurement import Telemetry
from tuner.replay.clock import VirtualClock
from tuner.replay.noise_models import NoiseModel, Visible
from tuner.replay.script import Disturbance, Mishap, SimModel

HANG_S = 30.0
_WARM_WINDOW_S = 0.25
_WARM_CALLS = 24
_LEAST_WALL_S = 1e-9

WarmKind = Literal["flat", "warmup", "slowdown", "no_steady", "capped", "dominated"]


class Scene(Protocol):
    """What an arm feels of its host."""

    clock: VirtualClock
    noise: NoiseModel
    rng: np.random.Generator
    visible: frozenset[Visible]
    clock_step_s: float
    spin_log: float
    arms: "list[SimArm]"

    def level(self) -> float:
        """Return how much slower (log) everything is now."""

    def steal_now(self) -> float:
        """Return the share of time stolen now."""

    def disturbances_now(self) -> list[Disturbance]:
        """Return the scripted neighbours that run now."""

    def process_effect(self) -> float:
        """Draw the effect (log) of a new process."""

    def due_mishaps(self, until_s: float) -> list[Mishap]:
        """Take the mishaps up to a time."""


class SimArm:
    """A simulated worker; methods as in compare's Arm protocol."""

    def __init__(self, host: Scene, config: Config, model: SimModel, arm_id: str) -> None:
        self.host = host
        self.config = config
        self.model = model
        self.arm_id = arm_id
        self.is_paused = False
        self.is_killed = False
        self.n_blocks = 0
        self.opened_s = host.clock.now()
        self.effect = host.process_effect()
        self.loaded = Loaded(
            load_s=model.open_s * 0.8,
            spawn_to_loaded_s=model.open_s,
            peak_rss_bytes=model.rss_bytes,
            rss_bytes=model.rss_bytes,
            effective=model.effective,
            versions={},
        )

    def warm(self, *, cap_s: float, quick_limit_s: float | None = None) -> Warmed:
        """Warm up."""
        self._check("warm")
        model = self.model
        first_s = model.first_call_s if model.first_call_s is not None else 3 * model.call_s
        calls = self._latencies(3)
        fastest_s = float(calls.min())
        is_dominated = quick_limit_s is not None and fastest_s > quick_limit_s
        n_calls = 3 if is_dominated else max(3, min(_WARM_CALLS, int(cap_s / model.call_s)))
        wall_s = first_s + (float(calls.sum()) if is_dominated else max(3 * _WARM_WINDOW_S, n_calls * model.call_s))
        self.host.clock.sleep(wall_s)
        call_s = float(np.median(calls))
        return Warmed(
            first_call_s=first_s,
            fastest_s=fastest_s,
            call_s=call_s,
            calls=n_calls + 1,
            wall_s=wall_s,
            kind="dominated" if is_dominated else cast("WarmKind", model.warm_kind),
            n_shapes=1,
            windows_s=() if is_dominated else (call_s, call_s, call_s),
        )

    def block(self, n: int, *, discard_calls: int, discard_s: float) -> tuple[BlockDone, Telemetry]:
        """Run one block."""
        host, model = self.host, self.model
        host.due_mishaps(host.clock.now())
        self._check("block")
        self.is_paused = False
        steal = host.steal_now()
        foreign = sum(seen.foreign for seen in host.disturbances_now())
        latencies = self._latencies(n)
        stalls = int(np.count_nonzero(host.rng.random(n) < model.stall_share)) if model.stall_share else 0
        latencies[:stalls] += model.stall_s
        discarded_s = max(discard_calls * model.call_s, discard_s) if discard_calls else 0.0
        wall_s = float(latencies.sum())
        began_s = host.clock.now()
        host.clock.sleep(discarded_s + wall_s)
        due = host.due_mishaps(host.clock.now())
        self._check("block")
        suspended_s = sum(mishap.seconds for mishap in due if mishap.kind == "suspend")
        latencies[n // 2] += suspended_s + sum(mishap.seconds for mishap in due if mishap.kind == "jump")
        host.clock.sleep(suspended_s)
        if host.clock_step_s:
            latencies = np.floor(latencies / host.clock_step_s) * host.clock_step_s
        self.n_blocks += 1
        cpu_s = wall_s * model.cpus_used
        faults = 0 if "faults" in host.visible else None
        done = BlockDone(
            latencies_s=tuple(latencies.tolist()),
            cpu_s=cpu_s,
            wall_s=max(float(latencies.sum()), _LEAST_WALL_S),
            discarded=discard_calls,
            peak_rss_bytes=model.rss_bytes,
            rss_bytes=model.rss_bytes,
            major_faults=faults,
            involuntary_switches=0,
        )
        visible = host.visible
        telemetry = Telemetry(
            wall_s=host.clock.now() - began_s,
            steal_ratio=steal if "steal" in visible else None,
            foreign_ratio=foreign if "foreign" in visible else None,
            throttled_s=stalls * model.stall_s if "throttling" in visible else None,
            own_throttling=model.stall_is_own if stalls and "throttling" in visible else None,
            major_faults=faults,
            pressure_some_s=0.0 if "pressure" in visible else None,
            suspended_s=suspended_s if "suspend" in visible else None,
        )
        return done, telemetry

    def fidelity(self, max_samples: int) -> FidelityDone:
        """Compare outputs, one call a sample."""
        self._check("fidelity")
        self.host.clock.sleep(max_samples * self.model.call_s)
        return FidelityDone(fidelity=self.model.fidelity.model_copy(update={"n": max_samples}))

    def pause(self) -> None:
        """Stop."""
        self.is_paused = True

    def resume(self) -> None:
        """Run."""
        self.is_paused = False

    def close(self) -> None:
        """End."""
        if self in self.host.arms:
            self.host.arms.remove(self)

    def _latencies(self, n: int) -> np.ndarray:
        """Draw `n` calls at the host's present level."""
        host, model, noise = self.host, self.model, self.host.noise
        rng = host.rng
        level = host.level() + self.effect + noise.block_sd * float(rng.standard_normal())
        level += model.drift_per_s * (host.clock.now() - self.opened_s)
        level += host.spin_log * sum(1 for other in host.arms if other is not self and not other.is_paused)
        calls: np.ndarray = model.call_s * np.exp(level + noise.call_sd * rng.standard_normal(n))
        if noise.spike_share:
            is_spike = rng.random(n) < noise.spike_share
            calls = calls * (1 + is_spike * noise.spike_scale * rng.standard_exponential(n))
        if model.tail_share:
            calls = np.where(rng.random(n) < model.tail_share, calls * model.tail_factor, calls)
        return calls

    def _check(self, stage: str) -> None:
        """Fail as scripted, or because somebody killed this process."""
        model = self.model
        if self.is_killed:
            self.close()
            raise TrialError(stage, "crash", "SIGKILL from outside")
        if (
            model.fault is None
            or stage != model.fault_stage
            or (stage == "block" and self.n_blocks < model.fault_after)
        ):
            return
        self.host.clock.sleep(HANG_S if model.fault == "timeout" else 0.1)
        self.close()
        raise TrialError(stage, model.fault, "scripted")
