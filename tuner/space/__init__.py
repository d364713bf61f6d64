"""The search space: TOML files become a checked space, a space on one host, and points; nothing is measured here."""
