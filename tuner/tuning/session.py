"""What one tuning run holds while it goes on: workers, study, clock, results; the order of things is in `line`."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tuner.artifacts.store import Store
from tuner.compare.anchor import Anchor
from tuner.compare.arms import ArmCost
from tuner.compare.costs import reserve_s
from tuner.compare.events import Event as ComparisonEvent
from tuner.compare.rig import Rig
from tuner.records.base import Scalar
from tuner.records.config import Config, ProcessSettings
from tuner.records.events import Event, EventKind, OnEvent
from tuner.records.measurement import Fidelity, Measured, Measurement, Notice
from tuner.records.model import Prepared
from tuner.records.profile import Effort, Profile, Speedup, Verdict
from tuner.runner.local import LocalRunner
from tuner.runner.process import WorkerProcess
from tuner.study.building import Workshop
from tuner.study.objective import figure
from tuner.study.store import StudyStore
from tuner.study.suggesting import Suggester
from tuner.tuning.earlier import Earlier
from tuner.tuning.engines import warm_cap_s
from tuner.tuning.limits import few_rows
from tuner.tuning.planning import Plan
from tuner.tuning.result import build_profile, count_states
from tuner.tuning.samples import MAX_SAMPLES, affordable_samples, reference_budget_s


class TuningSession:
    """One run on one study.

    Attributes:
        started: Monotonic seconds at which the command began; the budget counts from there.
        records: Trials of this study, earlier runs included.
        must_spend_all: The study was finished once and a larger budget was asked: it is spent in full.
        baseline: Config and measurement of the baseline once known.
        fidelity: By numerics key.
        earlier: An older result, where one says what to try first.
    """

    def __init__(self, plan: Plan, study: StudyStore, store: Store, *, started: float, on_event: OnEvent) -> None:
        self.plan = plan
        self.study = study
        self.started = started
        self.deadline = started + plan.request.budget_s
        self._on_event = on_event
        self.records = study.records()
        self.n_earlier = len(self.records)
        state = study.state()
        self.must_spend_all = state is not None and state.finished is not None
        self.baseline: Measured | None = None
        self.baseline_cost: ArmCost | None = None
        self.costs: dict[str, ArmCost] = {}
        self.notices: list[Notice] = list(plan.notices)
        self.fidelity: dict[str, Fidelity] = {}
        self.prepared: Prepared | None = None
        self.stopped_by = "interrupt"
        self.suggester: Suggester | None = None
        self.earlier: Earlier | None = None
        self._store = store
        self._anchor: Anchor | None = None
        self._rig: Rig | None = None
        self._runner: LocalRunner | None = None
        self.workshop = Workshop(
            store=store, spawn=self._spawn, model=plan.model, on_build=self._on_build, isa=plan.host.compute_isa
        )

    def say(self, kind: EventKind, text: str, **data: Scalar) -> None:
        """Report progress."""
        self._on_event(Event(kind=kind, text=text, elapsed_s=self.elapsed_s(), data=data))

    def elapsed_s(self) -> float:
        """Return the seconds since the command began."""
        return time.monotonic() - self.started

    def left_s(self) -> float:
        """Return the seconds until the budget ends."""
        return self.deadline - time.monotonic()

    @property
    def rig(self) -> Rig:
        """The bench; there once the workload is prepared."""
        assert self._rig is not None
        return self._rig

    @property
    def anchor(self) -> Anchor:
        """The resident baseline."""
        assert self._anchor is not None
        return self._anchor

    @property
    def n_samples(self) -> int:
        """Fidelity samples of a decision."""
        assert self.prepared is not None
        call_s = self.baseline_cost.call_s if self.baseline_cost else 0.0
        return affordable_samples(self.prepared, self.plan.request.budget_s, call_s)

    def prepare(self) -> None:
        """Prepare the workload, audit the host, and set up the bench.

        Raises:
            UsageError: The model or the data cannot be used.
        """
        plan = self.plan
        self.say(
            "start",
            f"{plan.model.source}: {plan.model.task} on {plan.host.cpu_budget} CPUs (bound by {plan.host.bound_by})",
        )
        for notice in self.notices:
            self.say("notice", f"{notice.detail}" + (f" → {notice.remedy}" if notice.remedy else ""))
        self.prepared = self.workshop.prepare(
            plan.workload,
            plan.request.data,
            max_samples=MAX_SAMPLES,
            sample_budget_s=reference_budget_s(plan.objective, plan.request.budget_s),
            metric=plan.objective.metric,
            code_dir=str(Path.cwd()),
            trust_remote_code=plan.request.trust_remote_code,
        )
        assert self.workshop.prepared is not None
        for notice in few_rows(self.prepared, plan.objective):
            self.warn(notice.code, notice.detail, notice.remedy)
        self._runner = self._make_runner()
        self._rig = Rig(
            self._runner,
            plan.objective,
            budget_s=plan.request.budget_s,
            seed=plan.request.seed + len(self.records),
            items_per_batch=self.prepared.items_per_batch,
            warm_cap_s=warm_cap_s,
            on_event=self._on_comparison,
            memory_budget_bytes=plan.host.memory_budget_bytes,
        )
        found = self.rig.audit()
        self.say("audit", f"host is {found}", host_class=str(found))
        if str(found) in ("noisy", "hostile"):
            detail = f"timing on this host is {found}: its own sentinel loop varies from run to run"
            self.notices.append(Notice(code="noisy_host", detail=detail, remedy="stop other work on this machine"))
        self._anchor = Anchor(plan.baseline, self.rig)

    def numerics_key(self, config: Config) -> str:
        """Return the key of all configs with the same outputs."""
        point = self.plan.space.to_point(config)
        return self.plan.space.numerics_key(point) if point is not None else f"config:{config.digest()}"

    def describe(self, measurement: Measurement) -> str:
        """Return the target's figure as a progress line shows it (the summary formats for real)."""
        value = figure(measurement, self.plan.objective.target)
        if value is None:
            p50 = measurement.latency_s.p50
            known = f"p50 {p50 * 1e3:.3g} ms, " if p50 is not None else ""
            return f"{known}{self.plan.objective.target} not known yet"
        if self.plan.objective.target.endswith("_bytes"):
            return f"{value / 2**20:.0f} MiB"
        return f"{value:.4g}/s" if self.plan.objective.direction == "maximize" else f"{value * 1e3:.3g} ms"

    def _make_runner(self) -> LocalRunner:
        return LocalRunner(
            host=self.plan.host,
            artifact_of=self.workshop.artifact_of,
            prepared=self.workshop.prepared or self.study.directory,
            work=self.study.directory,
            cache_dir=self._store.root,
        )

    def _spawn(self, process: ProcessSettings, name: str) -> tuple[WorkerProcess, tuple[int, ...]]:
        runner = self._runner or self._make_runner()
        return runner.spawn(process, name)

    def _on_comparison(self, event: ComparisonEvent) -> None:
        """Say what a person would want to know of a comparison that takes minutes."""
        facts = event.facts
        if event.kind == "look":
            self.say("playoff", f"{facts['pairs']} process pairs: {facts['verdict']}")
        elif event.kind == "anchor_restarted":
            self.say("notice", "the resident baseline died and is started again")
        elif event.kind == "redo":
            self.say(
                "notice", f"disturbed ({facts.get('reason')}): the blocks are run again after {facts['back_off_s']} s"
            )

    def _on_build(self, name: str, build_s: float | None) -> None:
        if build_s is None:
            self.say("build", name)
        else:
            self.say("built", f"built {name} in {build_s:.1f} s", build_s=build_s)

    def warn(self, code: str, detail: str, remedy: str | None = None) -> None:
        """Say a notice and keep it for the profile."""
        self.notices.append(Notice(code=code, detail=detail, remedy=remedy))
        self.say("notice", detail + (f" → {remedy}" if remedy else ""))

    def playoff_reserve_s(self) -> float:
        """Return the seconds of the playoff's first look, the incumbent's measured cost as the candidate's."""
        assert self.baseline_cost is not None
        incumbent = self.anchor.incumbent
        cost = self.costs.get(incumbent.config.digest()) if incumbent is not None else None
        cost = cost or self.baseline_cost
        return reserve_s(cost, self.baseline_cost, self.rig.plan(cost.call_s, self.baseline_cost.call_s))

    def profile(
        self,
        *,
        verdict: Verdict,
        baseline: Measured,
        best: Measured,
        challenger: Measured | None = None,
        speedup: Speedup | None = None,
        notices: Iterable[Notice] = (),
        incomplete: bool = False,
    ) -> Profile:
        """Return the profile of this run as it stands."""
        return build_profile(
            self.plan,
            workshop=self.workshop,
            records=self.records,
            effort=self.effort(),
            baseline=baseline,
            best=best,
            challenger=challenger,
            verdict=verdict,
            speedup=speedup,
            notices=(*self.notices, *notices),
            incomplete=incomplete,
            study=str(self.study.directory),
        )

    def interrupted_profile(self) -> Profile:
        """Return best = baseline, and the best trial so far as the unconfirmed challenger."""
        assert self.baseline is not None
        incumbent = self._anchor.incumbent if self._anchor is not None else None
        found = [
            record.measurement
            for record in self.records
            if incumbent is not None and record.config == incumbent.config and record.measurement is not None
        ]
        challenger = (
            Measured(config=incumbent.config, measurement=found[0]) if incumbent is not None and found else None
        )
        return self.profile(
            verdict="INCONCLUSIVE", baseline=self.baseline, best=self.baseline, challenger=challenger, incomplete=True
        )

    def effort(self) -> Effort:
        """Return what this run has cost so far; trials of earlier runs of the study are counted, their time is not."""
        trials = [record for record in self.records if record.purpose in ("screen", "search")]
        states = count_states(trials)
        wall_s, measure_s = self.elapsed_s(), self._rig.measure_s if self._rig is not None else 0.0
        return Effort(
            budget_s=self.plan.request.budget_s,
            wall_s=wall_s,
            build_s=self.workshop.build_s,
            measure_s=measure_s,
            overhead_s=max(0.0, wall_s - self.workshop.build_s - measure_s),
            trials=len(trials),
            pruned=states["pruned"],
            rejected=states["rejected"],
            seed=self.plan.request.seed,
            sampler=self.plan.request.sampler,
            space_sha256=self.plan.space_sha256,
            space_size=self.plan.space.size(),
            stopped_by=self.stopped_by,
        )

    def mark_finished(self) -> None:
        """Write into the study that this run finished it."""
        state = self.study.state()
        if state is not None:
            request = self.plan.request
            finished: dict[str, float | int | str | None] = {
                "budget_s": request.budget_s,
                "trials": request.trials,
                "at": now(),
            }
            self.study.save_state(state.model_copy(update={"finished": finished}))

    def close(self) -> None:
        """End all workers and close the study's file and database."""
        if self._anchor is not None:
            self._anchor.release()
        if self.suggester is not None:
            self.suggester.book.close()
        self.study.close()


def now() -> str:
    """Return the time as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
