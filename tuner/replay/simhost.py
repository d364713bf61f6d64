"""A host in virtual time: plays a noise model, disturbances, mishaps and faulty workers; it starts no process."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tuner.errors import TrialError
from tuner.records.config import Config
from tuner.replay.clock import VirtualClock
from tuner.replay.noise_models import EVERYTHING, OK, NoiseModel, Visible
from tuner.replay.script import Disturbance, Mishap, SimModel
from tuner.replay.simarm import SimArm

SENTINEL_S = 0.013


class SimHost:
    """Opens simulated arms; the same seed plays the same host.

    Args:
        behaviour: The true behaviour of a config.
        noise: Noise model.
        seed: Of everything drawn.
        disturbances: Neighbours at known times.
        mishaps: What happens once.
        visible: Telemetry that this host's kernel offers.
        memory_bytes: Of the host; None is plenty.
        clock_step_s: Resolution of the workers' clock.
        spin_log: How much slower a worker is while another one runs beside it.
    """

    def __init__(
        self,
        behaviour: Callable[[Config], SimModel],
        *,
        noise: NoiseModel = OK,
        seed: int = 0,
        disturbances: Sequence[Disturbance] = (),
        mishaps: Sequence[Mishap] = (),
        visible: frozenset[Visible] = EVERYTHING,
        memory_bytes: int | None = None,
        clock_step_s: float = 0.0,
        spin_log: float = 0.2,
    ) -> None:
        self.clock = VirtualClock()
        self.behaviour = behaviour
        self.noise = noise
        self.rng = np.random.default_rng(seed)
        self.disturbances = tuple(disturbances)
        self.mishaps = sorted(mishaps, key=lambda mishap: mishap.at_s)
        self.visible = visible
        self.memory_bytes = memory_bytes
        self.clock_step_s = clock_step_s
        self.spin_log = spin_log
        self.arms: list[SimArm] = []
        self.n_opened = 0
        self._walk = 0.0
        self._is_neighbour_on = False
        self._updated_s = 0.0

    def open(self, config: Config) -> SimArm:
        """Open a fresh simulated process.

        Raises:
            TrialError: Its script says so, or memory is full.
        """
        model = self.behaviour(config)
        self.n_opened += 1
        self.clock.sleep(model.open_s)
        if model.fault is not None and model.fault_stage == "load":
            raise TrialError("load", model.fault, "scripted")
        arm = SimArm(self, config, model, arm_id=f"sim-{self.n_opened}")
        needed = sum(other.model.rss_bytes for other in self.arms) + model.rss_bytes
        if self.memory_bytes is not None and needed > self.memory_bytes:
            raise TrialError("load", "out_of_memory", "killed by SIGKILL: most likely the out-of-memory killer")
        self.arms.append(arm)
        return arm

    def sentinel(self, repeats: int) -> tuple[float, ...]:
        """Return sentinel loops; they feel walk and neighbour, not processes."""
        level = self.level() + sum(seen.sentinel_log for seen in self.disturbances_now())
        loops = SENTINEL_S * np.exp(level + self.rng.normal(0.0, self.noise.block_sd, repeats))
        self.clock.sleep(0.2 + float(loops.sum()))
        return tuple(loops.tolist())

    def level(self) -> float:
        """Return how much slower (log) the host is now than at rest."""
        self._update()
        level = self._walk + (self.noise.neighbour_log if self._is_neighbour_on else 0.0)
        return level + sum(seen.log_slower for seen in self.disturbances_now())

    def steal_now(self) -> float:
        """Return the share of time stolen now."""
        steal = self.noise.neighbour_steal if self._is_neighbour_on else 0.0
        return steal + sum(seen.steal for seen in self.disturbances_now())

    def disturbances_now(self) -> list[Disturbance]:
        """Return the scripted neighbours that run now."""
        if not self.disturbances:
            return []
        now = self.clock.now()
        return [seen for seen in self.disturbances if seen.from_s <= now < seen.to_s]

    def process_effect(self) -> float:
        """Draw the effect (log) of a new process."""
        effect = float(self.rng.normal(0.0, self.noise.process_sd))
        if self.noise.slow_process_share and self.rng.random() < self.noise.slow_process_share:
            effect += self.noise.slow_process_log
        return effect

    def due_mishaps(self, until_s: float) -> list[Mishap]:
        """Take the mishaps up to a time; kills are carried out here."""
        if not self.mishaps or self.mishaps[0].at_s > until_s:
            return []
        due = [mishap for mishap in self.mishaps if mishap.at_s <= until_s]
        self.mishaps = [mishap for mishap in self.mishaps if mishap.at_s > until_s]
        for mishap in due:
            if mishap.kind == "kill" and self.arms:
                self.arms[0].is_killed = True
        return due

    def _update(self) -> None:
        """Let walk and neighbour move on to now (exact steps of an Ornstein-Uhlenbeck and a two-state process)."""
        elapsed = self.clock.now() - self._updated_s
        if elapsed <= 0:
            return
        self._updated_s = self.clock.now()
        noise = self.noise
        if noise.walk_sd:
            keep = math.exp(-elapsed / noise.walk_s)
            spread = noise.walk_sd * math.sqrt(noise.walk_s / 2 * (1 - keep * keep))
            self._walk = keep * self._walk + spread * float(self.rng.standard_normal())
        if noise.neighbour_on_per_s:
            total = noise.neighbour_on_per_s + noise.neighbour_off_per_s
            share = noise.neighbour_on_per_s / total
            was_on = 1.0 if self._is_neighbour_on else 0.0
            probability = share + (was_on - share) * math.exp(-total * elapsed)
            self._is_neighbour_on = bool(self.rng.random() < probability)
