"""A simulated bench: configs are told apart by name, time is virtual."""

from collections.abc import Callable, Mapping

import pytest

from tuner.compare.rig import Rig
from tuner.records.config import Config
from tuner.records.workload import Objective
from tuner.replay.noise_models import STILL
from tuner.replay.script import SimModel
from tuner.replay.simhost import SimHost


def named(name: str) -> Config:
    """Return the config of a name."""
    return Config(backend="fake", session={"name": name})


def bench(models: Mapping[str, SimModel], *, objective: Objective | None = None, seed: int = 0, **options) -> Rig:
    """Return a rig on a still host; `options` go to the host, those of the rig by name."""
    rig_options = {
        name: options.pop(name) for name in ("budget_s", "memory_budget_bytes", "on_event") if name in options
    }
    options.setdefault("noise", STILL)
    host = SimHost(lambda config: models[str(config.session["name"])], seed=seed, **options)
    return Rig(host, objective or Objective(), seed=seed, **{"budget_s": 900.0, **rig_options})


@pytest.fixture(name="named")
def _named() -> Callable[[str], Config]:
    return named


@pytest.fixture(name="bench")
def _bench() -> Callable[..., Rig]:
    return bench
