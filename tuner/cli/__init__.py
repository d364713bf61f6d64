"""The command line, one file per command; the only room that prints to the terminal and chooses exit codes."""
