"""The child process: obeys one JSON command a line and answers each once; imported by nobody, started as a module."""
