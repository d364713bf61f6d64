"""The resident, stopped process of the baseline against which every trial is timed; it times no candidate."""

from dataclasses import dataclass, replace

from tuner.compare.arms import ArmCost, Run
from tuner.compare.pairs import ArmFailed, lone_blocks
from tuner.compare.protocols import Arm
from tuner.compare.rig import Rig
from tuner.errors import HostError, TrialError
from tuner.measure.plan import BlockPlan
from tuner.records.config import Config

DOMINANCE = 3.0
_ATTEMPTS = 2


@dataclass(frozen=True)
class Incumbent:
    """The best trial so far.

    Attributes:
        value: Its trial value: ln(cost / cost of the anchor) on the scale of the study's first anchor.
        call_s: Its p50.
        fastest_s: Its fastest of three warm calls of the first shape.
    """

    config: Config
    value: float
    call_s: float
    fastest_s: float


class Anchor:
    """Keeps one process of `config` ready; opens it when first needed and again after it died.

    Attributes:
        anchor_id: The process now or last; blocks of another id are not comparable but for `offset`.
        incumbent: Set by the caller after every improvement; limits trials, and is measured again after a restart.
        offset: Added to raw values so that they are on the scale of the first anchor.
        needs_refit: It was restarted and `offset` still belongs to its predecessor.
    """

    def __init__(self, config: Config, rig: Rig) -> None:
        self.config = config
        self.rig = rig
        self.incumbent: Incumbent | None = None
        self.offset = 0.0
        self.needs_refit = False
        self._arm: Arm | None = None
        self._run: Run | None = None

    @property
    def anchor_id(self) -> str | None:
        """Return the id of the process now or last, None before the first."""
        return None if self._run is None else self._run.arm_id

    def reference(self) -> Run:
        """Return the run of the anchor, opened and warmed if it never was; its blocks are the lone ones, if any.

        A model of 5 s a call and more is timed once and not kept.

        Raises:
            HostError: The baseline cannot be run.
        """
        if self._run is None:
            self.arm()
        assert self._run is not None
        return self._run

    def arm(self) -> tuple[Arm, Run]:
        """Return the resident process, and a run without blocks for one trial.

        Raises:
            HostError: The baseline cannot be run.
        """
        if self._arm is None:
            self._open()
        assert self._arm is not None
        assert self._run is not None
        return self._arm, replace(self._run, blocks=[])

    def time_alone(self) -> Run:
        """Time the anchor by itself once and close it: for models too slow to be timed in pairs."""
        run = self.reference()
        if run.used_blocks():
            return run
        self.release()
        self._run = self.fresh_run(self.rig.plan(run.call_s, run.call_s))
        return self._run

    def fresh_run(self, plan: BlockPlan) -> Run:
        """Open another process, time it by itself, close it and return its run.

        Raises:
            HostError: The baseline cannot be run.
        """
        arm, run = self._start()
        try:
            lone_blocks(self.rig, arm, run, plan, plan.trial_blocks())
        except ArmFailed as failed:
            raise baseline_error(failed.error) from failed
        finally:
            arm.close()
        return run

    def fresh_cost(self) -> ArmCost:
        """Open and warm another process, close it and return what it cost.

        Raises:
            HostError: The baseline cannot be run.
        """
        arm, run = self._start()
        arm.close()
        return run.cost()

    def lost(self) -> None:
        """Take note that the process died; the next trial opens another, with another id."""
        self.release()
        self.needs_refit = True
        self.rig.tell("anchor_restarted", anchor_id=self.anchor_id)

    def release(self) -> None:
        """Close the process, for example to give its memory to a build; a later trial opens another."""
        if self._arm is not None:
            self._arm.close()
            self._arm = None

    def quick_limit_s(self) -> float | None:
        """Return the warm call above which a candidate is dominated: 3 times the incumbent's, None without one."""
        if self.incumbent is None:
            return None
        return DOMINANCE * max(self.incumbent.call_s, self.incumbent.fastest_s)

    def _start(self) -> tuple[Arm, Run]:
        try:
            return self.rig.start(self.config, "b")
        except TrialError as error:
            raise baseline_error(error) from error

    def _open(self) -> None:
        had_one = self._run is not None
        for attempt in range(_ATTEMPTS):
            try:
                self._arm, self._run = self.rig.start(self.config, "b")
            except TrialError as error:
                if attempt + 1 == _ATTEMPTS or not had_one:
                    raise baseline_error(error) from error
            else:
                self.needs_refit = had_one
                return


def baseline_error(error: TrialError) -> HostError:
    """Return the error that ends a study whose baseline does not run."""
    return HostError(f"the baseline failed ({error}): name another with --baseline, or see `autotune doctor`")
