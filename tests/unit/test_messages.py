"""Commands and answers as lines of JSON."""

import pytest

from tuner.errors import ProtocolError
from tuner.messages import (
    BlockDone,
    Bye,
    Failed,
    Load,
    Quit,
    Ready,
    RunBlock,
    Warm,
    decode_answer,
    decode_command,
    encode,
)

COMMANDS = [
    Load(backend="fake", artifact="/a b", session={"threads": 2, "spin": None}, prepared="/p", cache_dir="/c"),
    Warm(cap_s=1.5, quick_limit_s=None),
    RunBlock(n=1),
    Quit(),
]
ANSWERS = [
    Ready(versions={"autotune-cpu": "0.1.0"}, pid=1, cpus=(0, 1)),
    Failed(stage="load", kind="not_applied", message="threads: asked 2,\nin force 1"),
    Bye(),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.command)
def test_command_round_trip(command):
    """A command arrives as it was sent."""
    assert decode_command(encode(command)) == command


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.answer)
def test_answer_round_trip(answer):
    """An answer arrives as it was sent."""
    assert decode_answer(encode(answer)) == answer


@pytest.mark.parametrize("message", [*COMMANDS, *ANSWERS], ids=repr)
def test_a_message_is_one_line(message):
    """Line breaks inside texts do not end a message."""
    assert encode(message).count(b"\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"noise",
        b"[]",
        b'{"command": "format"}',
        b'{"command": "block"}',
        b'{"command": "block", "n": 0}',
        b'{"command": "block", "n": 1, "extra": 1}',
        b'{"command": "warm", "cap_s": NaN}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_command_is_refused(line):
    """Anything but a known command with its fields is refused."""
    with pytest.raises(ProtocolError, match="not a command"):
        decode_command(line)


def with_latencies(text):
    """Return the answer to a block whose latencies are `text`."""
    done = BlockDone(
        latencies_s=(0.5,),
        cpu_s=0.1,
        wall_s=1.0,
        discarded=3,
        peak_rss_bytes=None,
        rss_bytes=None,
        major_faults=None,
        involuntary_switches=None,
    )
    return encode(done).replace(b"[0.5]", text)


@pytest.mark.parametrize("text", [b"[NaN]", b"[Infinity]", b"[-Infinity]", b'["0.1"]', b"[null]"])
def test_a_latency_that_cannot_be_is_refused(text):
    """No figure comes of what is no number."""
    with pytest.raises(ProtocolError, match=r"not an answer.*latencies_s"):
        decode_answer(with_latencies(text))


@pytest.mark.parametrize("seconds", [0.0, -0.002])
def test_a_latency_of_a_coarse_or_jumping_clock_is_read(seconds):
    """Whether it can be used is for the comparison to say: it plays the block again."""
    assert decode_answer(with_latencies(f"[{seconds}]".encode())).latencies_s == (seconds,)


@pytest.mark.parametrize("line", [b"", b"Loading weights...", b'{"answer": "bye", "x": 1}', b'{"answer": "won"}'])
def test_what_is_no_answer_is_refused(line):
    """What a library prints is no answer."""
    with pytest.raises(ProtocolError, match="not an answer"):
        decode_answer(line)
