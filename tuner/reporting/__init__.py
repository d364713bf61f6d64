"""What people read: progress, summaries, checks; numbers are formatted here and nowhere else."""
