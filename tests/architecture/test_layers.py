"""The walls between rooms, and what the light entrances may load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINES = {"torch", "transformers", "onnx", "onnxruntime", "openvino", "ctranslate2", "torchao"}
LOADED = """
import importlib, json, sys
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def loaded_by(module):
    """Return the top-level modules that a fresh interpreter loads for `module`."""
    ended = subprocess.run([sys.executable, "-c", LOADED, module], capture_output=True, text=True, check=True)
    return set(json.loads(ended.stdout))


def test_import_contracts_hold():
    """Layers point one way, no cycles, engines and Optuna stay where they belong (import-linter)."""
    program = Path(sys.executable).with_name("lint-imports")
    ended = subprocess.run(
        [program, "--config", "pyproject.toml", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout


def test_importing_the_package_loads_nothing():
    """`import tuner` loads the standard library and itself alone."""
    outside = loaded_by("tuner") - {"tuner"} - sys.stdlib_module_names
    assert outside == set()


@pytest.mark.parametrize(
    "module",
    [
        "tuner.cli.app",
        "tuner.tuning.line",
        "tuner.loading",
        "tuner.reporting.summary",
        "tuner.runner.local",
        "tuner.replay.simhost",
        "tuner.worker.serving",
    ],
)
def test_no_engine_is_loaded(module):
    """The parent imports no engine, nor does a worker before it is told to load one."""
    assert loaded_by(module) & ENGINES == set()


def test_command_line_starts_light():
    """The command line loads neither Optuna nor SQLAlchemy nor SciPy before a command needs them."""
    assert loaded_by("tuner.cli.app") & {"optuna", "sqlalchemy", "scipy"} == set()


def test_worker_starts_with_the_standard_library():
    """Mask and death signal are set before anything of others is imported."""
    assert loaded_by("tuner.worker.startup") - {"tuner"} - sys.stdlib_module_names == set()


def test_plugins_are_described_without_their_engines():
    """Looking at every backend and step imports none of their engines."""
    code = (
        "import sys\nfrom tuner.plugins import entry_points_of, plugin\n"
        "for group in ('tuner.backends', 'tuner.steps'):\n"
        "    for name in entry_points_of(group):\n        found = plugin(group, name)\n        found.space()\n"
        "        getattr(found, 'installed', dict)()\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) & ENGINES == set()
