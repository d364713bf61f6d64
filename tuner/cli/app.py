"""Takes the command line apart, calls one command and turns errors into one line and an exit code."""

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError
from rich.console import Console

import tuner
from tuner.cli.benching import bench
from tuner.cli.bundling import bundle
from tuner.cli.caching import cache
from tuner.cli.checking import check
from tuner.cli.doctoring import doctor
from tuner.cli.executing import env, exec_
from tuner.cli.host import host
from tuner.cli.retuning import retune
from tuner.cli.showing import show
from tuner.cli.streams import FULL, accept_all_letters, flush, say
from tuner.cli.tune import tune
from tuner.cli.verifying import verify
from tuner.errors import HostError, TunerError, UsageError
from tuner.space.naming import did_you_mean

COMMANDS: dict[str, Callable[..., int | None]] = {
    "tune": tune,
    "show": show,
    "check": check,
    "verify": verify,
    "bench": bench,
    "retune": retune,
    "exec": exec_,
    "env": env,
    "bundle": bundle,
    "host": host,
    "cache": cache,
    "doctor": doctor,
}
CLOSE = 0.7
"""How alike a word must be to be what was meant: less, and --metric would be --trials."""
IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP)
"""What a path of the user's is refused with that no file can have: too long, or a link to itself."""
SHOWN = 200
"""Letters of such a path that are shown."""
EXIT_BUG = 70
EXIT_INTERRUPTED = 130

HELP = """Finds the fastest trustworthy way to run a model on this machine's CPUs and writes it down as a JSON profile.

`autotune --model M --target p50` is short for `autotune tune --model M --target p50`."""


def build_app() -> App:
    """Return the cyclopts application with all commands."""
    app = App(
        name="autotune",
        help=HELP,
        version=tuner.__version__,
        help_format="plaintext",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        error_console=Console(stderr=True),
    )
    for name, function in COMMANDS.items():
        app.command(function, name=name)
    return app


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is one line on standard error."""
    accept_all_letters()
    code = answer(argv)
    failure = flush(sys.stdout)
    if failure is not None and code == 0:
        code = complain(f"the output cannot be written: {failure}", HostError.exit_code)
    flush(sys.stderr)
    return code


def answer(argv: Sequence[str]) -> int:
    """Call the command and turn whatever it raises into a line and an exit code."""
    try:
        return dispatch(list(argv))
    except TunerError as error:
        return complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        first = argv[0] if argv else ""
        is_search = first in ("tune", "retune") or first.startswith("-")
        kept = "what was measured is kept, the same command goes on" if is_search else "nothing was changed"
        return complain(f"interrupted; {kept}", EXIT_INTERRUPTED)
    except (BrokenPipeError, SystemExit) as ended:  # rich makes the one of the other
        if isinstance(ended, BrokenPipeError) or isinstance(ended.__context__, BrokenPipeError):
            return 0
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is said to be one
        return complain_of_a_surprise(error)


def complain_of_a_surprise(error: Exception) -> int:
    """Say what no command expected: a path that cannot be, a full disk, a directory that is gone, else a bug."""
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":  # bytes of a path
        text = "a name on the command line, or of the current directory, is not UTF-8: rename it, JSON cannot hold it"
        return complain(text, UsageError.exit_code)
    if isinstance(error, OSError) and error.errno in IMPOSSIBLE:
        return complain(f"{str(error.filename)[:SHOWN]}: {error.strerror}", UsageError.exit_code)
    if isinstance(error, FileNotFoundError) and not has_directory():
        return complain("the current directory is gone: change to one that exists", HostError.exit_code)
    if isinstance(error, OSError) and error.errno in FULL:
        return complain(f"{error.filename or 'the output'} cannot be written: {error.strerror}", HostError.exit_code)
    return complain(
        f"a bug of autotune: {type(error).__name__}: {error}; run again with AUTOTUNE_DEBUG=1 and report the traceback",
        EXIT_BUG,
    )


def has_directory() -> bool:
    """Say whether the current directory still exists."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def dispatch(argv: list[str]) -> int:
    """Find the command, bind its options and call it.

    Raises:
        UsageError: An unknown command or option (named before a missing one), or a value that does not fit.
    """
    app = build_app()
    if not argv or argv[0] in ("--help", "-h", "--version"):
        app(argv or ["--help"])
        return 0
    if argv[0].startswith("-"):
        argv = ["tune", *argv]
    elif argv[0] not in COMMANDS:
        hint = did_you_mean(argv[0], COMMANDS, cutoff=CLOSE)
        if Path(argv[0]).exists():
            hint = f"to tune what is there, write --model {argv[0]}"
        raise UsageError(f"unknown command {argv[0]!r}: {hint}")
    try:
        command, bound, _ = app.parse_args(argv, exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        refuse_unknown_options(app, argv)
        if argv[0] == "tune" and argv[1:] and not argv[1].startswith("-"):
            raise UsageError(f"{argv[1]}: belongs to no option: did you mean --model {argv[1]}?") from error
        raise UsageError(one_line(error)) from error
    except CycloptsError as error:
        raise UsageError(one_line(error)) from error
    code = command(*bound.args, **bound.kwargs)
    return code if isinstance(code, int) else 0


def refuse_unknown_options(app: App, argv: list[str]) -> None:
    """Name an unknown option even where a required one is missing too.

    Raises:
        UsageError: An option that the command does not have; the nearest one is named.
    """
    known = {name for argument in app[argv[0]].assemble_argument_collection() for name in argument.names}
    for word in argv[1:]:
        if word == "--":
            return
        name = word.partition("=")[0]
        if name.startswith("--") and name not in known and name not in ("--help", "--version"):
            near = difflib.get_close_matches(name, known, n=1, cutoff=CLOSE)
            raise UsageError(f"unknown option {name}" + (f": did you mean {near[0]}?" if near else ""))


def one_line(error: CycloptsError) -> str:
    """Return an error of the option parser as one line of ours."""
    if isinstance(error, UnknownOptionError) and error.token is not None:
        names = [name for argument in (error.argument_collection or ()) for name in argument.names]
        near = difflib.get_close_matches(error.token.keyword or "", names, n=1, cutoff=CLOSE)
        return f"unknown option {error.token.keyword}" + (f": did you mean {near[0]}?" if near else "")
    if isinstance(error, UnusedCliTokensError):
        words = " ".join(error.unused_tokens or ())
        return f"{words}: belongs to no option; quote an expression or a name with spaces"
    return " ".join(str(error).replace("╭", " ").replace("│", " ").split())


def complain(text: str, code: int) -> int:
    """Print one line on standard error (and the traceback with AUTOTUNE_DEBUG=1) and return `code`."""
    if os.environ.get("AUTOTUNE_DEBUG") == "1":
        traceback.print_exc()
    say(f"autotune: {text}")
    return code
