"""What is written down: frozen records that are the same in memory, in files and between processes; no behaviour."""
