"""Environment variables of workers and of `autotune exec`: what passes, what is fixed, what a config may set."""

from tuner.environment.allowing import allowed_names, check_env
from tuner.environment.composing import config_environment, exec_environment, worker_environment

__all__ = ["allowed_names", "check_env", "config_environment", "exec_environment", "worker_environment"]
