"""Starts a worker: mask and death signal first, then everything else; `python -P -m tuner.worker` runs it by hand.

Give commands on standard input, one JSON object a line (tuner.messages); answers come on standard output, or on the
descriptor named by --answer-fd. What libraries print goes to standard error.
"""

import sys

from tuner.worker.startup import open_channels, parse_options, take_position


def main() -> int:
    """Run until ``quit`` or the end of input; 0 after ``bye``, 1 after ``failed``."""
    options = parse_options(sys.argv[1:])
    take_position(options)
    commands, answers = open_channels(options)

    from tuner.worker.serving import serve

    with commands, answers:
        return serve(commands, answers)


if __name__ == "__main__":
    sys.exit(main())
