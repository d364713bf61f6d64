"""One worker process seen from the parent: its pipes, limits, signals and end; it knows no backend."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

import psutil

from tuner.errors import HostError, ProtocolError, TrialError
from tuner.messages import Answer, Bye, Command, Failed, Quit, Ready, decode_answer, encode
from tuner.runner.ending import classify_exit

LOG_LIMIT_BYTES = 256 * 1024
ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
READY_LIMIT_S = 30.0
GRACE_S = 2.0
TOKEN = "AUTOTUNE_WORKER"  # noqa: S105 - the name of a variable

AnswerT = TypeVar("AnswerT", bound=Answer)


class WorkerProcess:
    """A running worker.

    Attributes:
        log: Bounded copy of what the worker and its libraries printed.
        token: Value of an environment variable by which descendants that left the group are found.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        log: Path,
        token: str,
        cpus: Sequence[int] | None = None,
        memory_policy: str | None = None,
        directory: Path | None = None,
    ) -> None:
        self.token = token
        self.log = log
        self.stage = "spawn"
        self.paused = False
        self._tail = bytearray()
        self._logged = 0
        self._answers = bytearray()
        answer_read, answer_write = os.pipe()
        argv = [sys.executable, "-P", "-m", "tuner.worker", "--answer-fd", str(answer_write)]
        argv += ["--parent", str(os.getpid())]
        if cpus is not None:
            argv += ["--cpus", ",".join(str(cpu) for cpu in cpus)]
        if memory_policy is not None:
            argv += ["--memory-policy", memory_policy]
        try:
            self._log: IO[bytes] = log.open("ab")
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(answer_write,),
                env={**env, TOKEN: token, "PYTHONSAFEPATH": "1"},
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            os.close(answer_read)
            raise HostError(f"a worker cannot be started: {error}") from error
        finally:
            os.close(answer_write)
        self._answer_fd = answer_read
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._commands = self.process.stdin
        self._output_fd: int | None = self.process.stdout.fileno()
        self.pid = self.process.pid

    def ready(self) -> Ready:
        """Wait until the interpreter is up."""
        return self._expect(self._answer(READY_LIMIT_S), Ready)

    def ask(self, command: Command, expected: type[AnswerT], *, limit_s: float) -> AnswerT:
        """Send one command and wait for its answer.

        Raises:
            TrialError: The worker answered ``failed``, died, or took longer than `limit_s`; it is gone afterwards.
            ProtocolError: It answered something else.
        """
        self.stage = command.command
        with contextlib.suppress(BrokenPipeError):  # a dead worker is told by the end of its answers
            self._commands.write(encode(command))
            self._commands.flush()
        return self._expect(self._answer(limit_s), expected)

    def _expect(self, answer: Answer, expected: type[AnswerT]) -> AnswerT:
        if isinstance(answer, Failed):
            self.close()
            raise TrialError(answer.stage, answer.kind, answer.message)
        if not isinstance(answer, expected):
            self.close()
            raise ProtocolError(f"worker answered {answer.answer} where {expected.__name__} was due")
        return answer

    def _answer(self, limit_s: float) -> Answer:
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._answers:
            left = deadline - time.monotonic()
            if left <= 0:
                self.kill()
                raise TrialError(self.stage, "timeout", f"no answer within {limit_s:.0f} s")
            watched = [self._answer_fd] + ([] if self._output_fd is None else [self._output_fd])
            readable, _, _ = select.select(watched, [], [], left)
            if self._output_fd in readable:
                self._drain()
            if self._answer_fd in readable:
                data = os.read(self._answer_fd, 1 << 20)
                if not data:
                    raise self._died()
                self._answers += data
                if len(self._answers) > ANSWER_LIMIT_BYTES:
                    self.kill()
                    raise TrialError(self.stage, "error", "the answer is longer than any answer of ours")
        line, _, rest = self._answers.partition(b"\n")
        self._answers = bytearray(rest)
        try:
            return decode_answer(bytes(line))
        except ProtocolError:
            self.kill()
            raise

    def _drain(self) -> None:
        """Copy what was printed into the log until its limit; keep the tail for naming a crash."""
        assert self._output_fd is not None
        data = os.read(self._output_fd, 1 << 16)
        if not data:
            self._output_fd = None
            return
        self._tail = (self._tail + data)[-8192:]
        room = LOG_LIMIT_BYTES - self._logged
        if room > 0:
            with contextlib.suppress(OSError):  # a full disk must not end a trial; the tail is kept in memory
                self._log.write(data[:room])
                self._log.flush()
        self._logged += len(data)

    def _died(self) -> TrialError:
        returncode = self._wait(GRACE_S)
        while self._output_fd is not None and select.select([self._output_fd], [], [], 0)[0]:
            self._drain()
        self.kill()
        kind, message = classify_exit(returncode, self._tail.decode(errors="replace"))
        return TrialError(self.stage, kind, message)

    def _wait(self, limit_s: float) -> int | None:
        """Wait without polling; None if it still runs."""
        code = self.process.poll()
        if code is not None:
            return code
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(limit_s)
            return None
        try:
            select.select([descriptor], [], [], limit_s)
        finally:
            os.close(descriptor)
        return self.process.poll()

    def pause(self) -> None:
        """Stop the whole group (SIGSTOP)."""
        if not self.paused:
            self._signal(signal.SIGSTOP)
            self.paused = True

    def resume(self) -> None:
        """Let the group run again (SIGCONT)."""
        if self.paused:
            self._signal(signal.SIGCONT)
            self.paused = False

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def alive(self) -> bool:
        """Return whether the process still runs (or is stopped)."""
        return self.process.poll() is None

    def close(self) -> None:
        """Let the worker leave: ``quit``, then TERM, then KILL; sweep descendants. Never raises."""
        if self.process.poll() is None and not self._log.closed:
            self.resume()
            with contextlib.suppress(OSError, ValueError):
                self._commands.write(encode(Quit()))
                self._commands.flush()
            with contextlib.suppress(TrialError, ProtocolError, OSError):
                self._expect_bye()
            if self._wait(GRACE_S) is None:
                self._signal(signal.SIGTERM)
                self._wait(GRACE_S)
        self.kill()

    def _expect_bye(self) -> None:
        while not isinstance(self._answer(GRACE_S), (Bye, Failed)):
            pass

    def kill(self) -> None:
        """Kill the group and descendants that left it, and give the pipes back; never raises."""
        self._signal(signal.SIGKILL)
        self._wait(GRACE_S)
        sweep_descendants(self.token)
        if not self._log.closed:
            with contextlib.suppress(OSError):
                self._log.close()
            with contextlib.suppress(OSError):
                os.close(self._answer_fd)
            for stream in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
            self._output_fd = None


def sweep_descendants(token: str) -> int:
    """Kill processes below this one that carry `token` in their environment; return how many."""
    killed = 0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.status() != psutil.STATUS_ZOMBIE and child.environ().get(TOKEN) == token:
                child.kill()
                killed += 1
    return killed
