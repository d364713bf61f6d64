"""Two arms in fresh processes, interleaved blocks, log-ratios: trial, race, playoff, bench, verify; spawns nothing."""
