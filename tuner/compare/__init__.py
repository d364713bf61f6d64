"""compare(a, b, pairs, blocks, looks): two arms, fresh processes, interleaved blocks; a trial, race, playoff and bench."""
