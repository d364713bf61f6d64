"""A runner and what a study keeps across comparisons: random orders, gate, spread, time spent; it compares nothing."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from statistics import median

from tuner.compare.arms import Run, Side
from tuner.compare.events import Event, OnEvent, ignore
from tuner.compare.protocols import Arm, Runner
from tuner.compare.targets import Target, target_of
from tuner.errors import HostError, TrialError, UsageError
from tuner.measure.gate import SENTINEL, GateState, dirty_reasons, unusable_latencies
from tuner.measure.plan import BlockPlan, block_calls
from tuner.measure.sentinel import HostClass, host_class
from tuner.measure.stats import pooled_sd
from tuner.messages import FidelityDone
from tuner.records.base import Scalar
from tuner.records.config import Config
from tuner.records.measurement import Block
from tuner.records.workload import Objective

WARM_CAP_S = 10.0
COMPILED_WARM_CAP_S = 30.0
RESIDENT_SHARE = 0.6


class Rig:
    """The bench on which configurations are compared; one per run of the tuner.

    Args:
        runner: Opens arms; brings the clock.
        objective: What is compared, and under which constraints.
        budget_s: Of the run; bounds back-off.
        seed: Of every order drawn here.
        items_per_batch: Rows of one call.
        warm_cap_s: Most seconds of warm-up of a config (30 for compiled ones).
        memory_budget_bytes: Two arms that need more than 60% of it together run in turn; None: both fit.
        on_event: Told of progress.

    Attributes:
        measure_s: Seconds in audit, opening, warm-up, blocks with their discards, and fidelity.
        gate: How often pairs were redone; `gate.is_open` means low confidence.
        must_run_in_turn: Two arms did not fit in memory once; from then on they run one after the other.
    """

    def __init__(
        self,
        runner: Runner,
        objective: Objective,
        *,
        budget_s: float,
        seed: int = 0,
        items_per_batch: int = 1,
        warm_cap_s: Callable[[Config], float] = lambda _: WARM_CAP_S,
        memory_budget_bytes: int | None = None,
        on_event: OnEvent = ignore,
    ) -> None:
        self.runner = runner
        self.clock = runner.clock
        self.objective = objective
        self.target: Target = target_of(objective.target)
        self.items_per_batch = items_per_batch
        self.memory_budget_bytes = memory_budget_bytes
        self.random = random.Random(seed)  # noqa: S311 - orders must repeat, not be secret
        self.gate = GateState(budget_s)
        self.measure_s = 0.0
        self.host_class: HostClass | None = None
        self._sentinel_s: float | None = None
        self._warm_cap_s = warm_cap_s
        self._on_event = on_event
        self.must_run_in_turn = False
        self._spreads: list[list[float]] = []
        self._sizes: dict[str, int] = {}

    def tell(self, kind: str, **facts: Scalar) -> None:
        """Report progress."""
        self._on_event(Event(kind, facts))

    def audit(self, repeats: int = 50) -> HostClass:
        """Run the sentinel once, remember its median, and return the class of this host.

        Raises:
            HostError: Its worker died twice.
        """
        try:
            samples = self._sentinel(repeats)
        except TrialError:  # killed from outside, it may be
            try:
                samples = self._sentinel(repeats)
            except TrialError as error:
                raise HostError(f"no worker runs here ({error}): see `autotune doctor`") from error
        self._sentinel_s = median(samples)
        self.host_class = host_class(samples)
        return self.host_class

    def sentinel_is_slow(self, repeats: int = 3) -> bool:
        """Say whether the sentinel is more than 1.10 times its audited median, or died; False without an audit."""
        if self._sentinel_s is None:
            return False
        try:
            return median(self._sentinel(repeats)) > SENTINEL * self._sentinel_s
        except TrialError:
            return True

    def _sentinel(self, repeats: int) -> tuple[float, ...]:
        with self._measuring():
            return self.runner.sentinel(repeats)

    def start(self, config: Config, side: Side, *, quick_limit_s: float | None = None) -> tuple[Arm, Run]:
        """Open a fresh process, warm it up and stop it.

        Raises:
            TrialError: It did not load or warm up; nothing is left running.
        """
        with self._measuring():
            began = self.clock.now()
            arm = self.runner.open(config)
            open_s = self.clock.now() - began
            self.tell("opened", side=side, arm_id=arm.arm_id, open_s=open_s)
            with _closed_on_error(arm):
                self._guard_memory("load", arm.loaded.rss_bytes)
                warmed = arm.warm(cap_s=self._warm_cap_s(config), quick_limit_s=quick_limit_s)
                arm.pause()
        self.tell("warmed", side=side, arm_id=arm.arm_id, call_s=warmed.call_s, warmup=warmed.kind)
        return arm, Run(side, arm.arm_id, config, arm.loaded, warmed, open_s)

    def warm_again(self, arm: Arm, run: Run) -> None:
        """Warm up a stopped arm that was given up too early, this time without a limit; its first call stays on record.

        Raises:
            TrialError: The worker died.
        """
        with self._measuring():
            arm.resume()
            warmed = arm.warm(cap_s=self._warm_cap_s(run.config))
            arm.pause()
        run.warmed = warmed.model_copy(update={"first_call_s": run.warmed.first_call_s})

    def block(self, arm: Arm, run: Run, plan: BlockPlan, *, order: int, pair: int) -> Block:
        """Time one block of a stopped arm, stop it again, and append the block to `run`.

        Raises:
            TrialError: The worker died or answered wrongly.
        """
        with self._measuring():
            arm.resume()
            done, telemetry = arm.block(plan.n, discard_calls=plan.discard_calls, discard_s=plan.discard_s)
            arm.pause()
        self._guard_memory("block", done.rss_bytes)
        if done.major_faults is not None and done.major_faults != telemetry.major_faults:
            telemetry = telemetry.model_copy(update={"major_faults": done.major_faults})
        dirty = dirty_reasons(telemetry, is_first=not run.blocks, worker_wall_s=done.wall_s)
        block = Block(
            arm=run.side,
            order=order,
            latencies_s=done.latencies_s,
            cpu_s=done.cpu_s,
            wall_s=done.wall_s,
            telemetry=telemetry,
            dirty=tuple(dict.fromkeys((*dirty, *unusable_latencies(done.latencies_s)))),
            pair=pair,
            peak_rss_bytes=done.peak_rss_bytes,
            arm_id=run.arm_id,
        )
        run.blocks.append(block)
        return block

    def check_fidelity(self, arm: Arm, samples: int) -> FidelityDone:
        """Compare outputs in the process of `arm`."""
        with self._measuring():
            arm.resume()
            return arm.fidelity(samples)

    def plan(self, call_a_s: float, call_b_s: float) -> BlockPlan:
        """Return the block plan of two arms; a tail target or a tail constraint asks for more calls."""
        tails = [self.target.p] if self.target.is_tail else []
        for constraint in self.objective.constraints:
            with suppress(UsageError):
                target = target_of(constraint.path)
                tails += [target.p] if target.is_tail else []
        percentile = max((p for p in tails if p is not None), default=None)
        plan = block_calls(min(call_a_s, call_b_s), max(call_a_s, call_b_s), percentile)
        if percentile is None or self.target.is_tail:
            return plan
        return plan.model_copy(update={"looks": block_calls(call_a_s, call_b_s).looks})

    def note_size(self, run: Run) -> None:
        """Remember how much memory a configuration needs."""
        peaks = [block.peak_rss_bytes for block in run.blocks if block.peak_rss_bytes is not None]
        size = max(peaks, default=run.loaded.rss_bytes)
        if size is not None:
            self._sizes[run.config.digest()] = size

    def runs_in_turn(self, a: Config, b: Config) -> bool:
        """Say whether the processes of two configurations cannot be resident together.

        A size not yet seen is taken to be that of the other; two unknown ones fit.
        """
        sizes = [size for size in (self._sizes.get(config.digest()) for config in (a, b)) if size is not None]
        if self.must_run_in_turn:
            return True
        if self.memory_budget_bytes is None or not sizes:
            return False
        return (sizes[0] + sizes[-1]) > RESIDENT_SHARE * self.memory_budget_bytes

    def orders(self, n_pairs: int) -> list[tuple[Side, Side]]:
        """Return the order of every block pair: ABBA or BAAB by a coin for each two."""
        ab: tuple[Side, Side] = ("a", "b")
        ba: tuple[Side, Side] = ("b", "a")
        drawn: list[tuple[Side, Side]] = []
        while len(drawn) < n_pairs:
            drawn += [ab, ba] if self.random.random() < 0.5 else [ba, ab]  # noqa: PLR2004 - a fair coin
        return drawn[:n_pairs]

    def note_spread(self, ratios: list[float]) -> None:
        """Remember the log-ratios of the block pairs of one process, for the pooled spread."""
        self._spreads.append(ratios)

    def pair_sd(self) -> float:
        """Return the spread of block pairs, pooled over the study, at least 2%."""
        return pooled_sd(self._spreads)

    def back_off(self, redos: int, **facts: Scalar) -> None:
        """Wait before a dirty pair is run again."""
        seconds = self.gate.back_off_s(redos)
        self.tell("redo", redos=redos + 1, back_off_s=seconds, **facts)
        self.clock.sleep(seconds)
        self.gate = self.gate.after_waiting(seconds)

    def _guard_memory(self, stage: str, rss_bytes: int | None) -> None:
        """Refuse a worker that holds more memory than the whole budget, before the kernel kills something.

        Raises:
            TrialError: It does.
        """
        if rss_bytes is not None and self.memory_budget_bytes is not None and rss_bytes > self.memory_budget_bytes:
            text = f"{rss_bytes / 2**20:.0f} MiB resident, the budget is {self.memory_budget_bytes / 2**20:.0f} MiB"
            raise TrialError(stage, "out_of_memory", text)

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        began = self.clock.now()
        try:
            yield
        finally:
            self.measure_s += self.clock.now() - began


@contextmanager
def _closed_on_error(arm: Arm) -> Iterator[None]:
    try:
        yield
    except BaseException:
        arm.close()
        raise
