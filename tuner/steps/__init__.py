"""Build steps shared by backends: one module, one entry point and one TOML each; each runs in a process of its own."""
