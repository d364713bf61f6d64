"""`verify`: a fresh playoff of a profile's best against its baseline on this host; it changes no profile."""

import time
from pathlib import Path
from typing import Literal

from tuner.artifacts.places import cache_directory
from tuner.compare.costs import pair_s
from tuner.compare.decisions import confirmation, pairs_to_resolve
from tuner.compare.playoff import run_playoff
from tuner.errors import HostError, TrialError
from tuner.records.base import Record
from tuner.records.events import Event, OnEvent
from tuner.records.profile import Profile, Speedup, Verdict
from tuner.tuning.workbench import model_of, workbench


class Verification(Record):
    """What fresh pairs say of a profile's claim.

    Attributes:
        outcome: ``confirmed``, ``contradicted`` or ``not_resolved``.
        claimed: The ratio in the profile, None if it claims none.
        speedup: Of the fresh pairs, None under two pairs.
        needed_budget_s: Budget that would resolve the claim at the spread seen, None if unknown or not needed.
    """

    outcome: Literal["confirmed", "contradicted", "not_resolved"]
    verdict: Verdict | None
    claimed: float | None
    speedup: Speedup | None
    needed_budget_s: float | None = None
    detail: str


def verify_profile(
    profile: Profile,
    path: Path,
    *,
    budget_s: float,
    model: str | None = None,
    cache_dir: str | None = None,
    trust_code: bool = False,
    on_event: OnEvent,
) -> Verification:
    """Play the best against the baseline again, at most `budget_s`.

    Raises:
        ProfileMismatch: The model is gone or another one.
        HostError: Best or baseline does not run here.
    """
    claimed = profile.speedup.ratio if profile.speedup is not None and profile.verdict == "WIN" else None
    if profile.best.config == profile.baseline.config:
        detail = "the profile's best is its baseline: there is nothing to contradict"
        return Verification(outcome="confirmed", verdict=None, claimed=None, speedup=None, detail=detail)
    cache = cache_directory(cache_dir)
    facts = model_of(profile, path, model, cache, trust_code=trust_code)
    began = time.monotonic()
    seed = int.from_bytes(bytes.fromhex(profile.digest()[:8])) + int(time.time())  # fresh orders at every verification
    with workbench(
        facts, profile.workload, profile.objective, cache_dir=cache, budget_s=budget_s, seed=seed, on_event=on_event
    ) as bench:
        try:
            bench.workshop.ensure(profile.best.config)
            bench.workshop.ensure(profile.baseline.config)
            bench.rig.audit()
            fidelity, cost = bench.open_once(profile.best.config, with_fidelity=True)
            _, baseline_cost = bench.open_once(profile.baseline.config, with_fidelity=False)
        except TrialError as error:
            if error.kind == "incorrect":
                detail = f"an output is wrong here: {error.message}"
                return Verification(outcome="contradicted", verdict=None, claimed=claimed, speedup=None, detail=detail)
            raise HostError(
                f"{path.name}: best or baseline does not run here: {error}; autotune check says more"
            ) from error
        on_event(
            Event(kind="playoff", text="fresh playoff of best against baseline", elapsed_s=time.monotonic() - began)
        )
        now = bench.rig.clock.now()
        left_s = budget_s - (time.monotonic() - began)
        outcome = run_playoff(
            profile.best.config,
            profile.baseline.config,
            bench.rig,
            deadline_s=now + left_s,
            costs=(cost, baseline_cost),
            fidelity=fidelity,
            baseline_fidelity=profile.baseline.measurement.fidelity,
        )
        one_pair_s = pair_s(cost, baseline_cost, bench.rig.plan(cost.call_s, baseline_cost.call_s))
    if outcome.failure is not None:
        raise HostError(f"{path.name}: the best failed in a fresh process: {outcome.failure.message}")
    said = confirmation(outcome.d, outcome.verdict)
    pairs = pairs_to_resolve(outcome.d, claimed) if claimed is not None and said == "not_resolved" else None
    setup_s = max(0.0, time.monotonic() - began - len(outcome.pairs) * one_pair_s)
    needed_s = None
    if said == "not_resolved":
        needed_s = setup_s + one_pair_s * max(
            pairs or 0, len(outcome.pairs) + 1, bench.rig.plan(cost.call_s, cost.call_s).looks[0]
        )
    return Verification(
        outcome=said,
        verdict=outcome.verdict,
        claimed=claimed,
        speedup=outcome.speedup,
        needed_budget_s=needed_s,
        detail=f"{outcome.verdict} on {len(outcome.pairs)} fresh process pairs; stopped by {outcome.stopped_by}",
    )
