"""Runners without hardware: hosts simulated in virtual time from a noise model; imported by tests and studies only."""
