"""Engines that run a model: one module or package, one entry point and one TOML each; found through `registry`."""
