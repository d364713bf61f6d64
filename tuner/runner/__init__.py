"""Real workers: spawns, limits, kills and classifies them; it imports no engine and decides nothing about results."""
