"""`python -m tuner` is `autotune`; it only calls the command line."""

import sys


def main() -> int:
    """Run the command line on this process's arguments and return its exit code."""
    from tuner.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
