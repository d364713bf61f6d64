"""Memory policies set and read back by system call, each in a process of its own."""

import subprocess
import sys

import pytest

from tuner.hardware.memory_policy import MemoryPolicy, parse_policy, probe_memory_policy

SCRIPT = """
import subprocess, sys
from tuner.hardware.memory_policy import parse_policy, read_policy, set_policy
set_policy(parse_policy(sys.argv[1]))
child = "from tuner.hardware.memory_policy import read_policy; print(*read_policy())"
print(*read_policy(), flush=True)
subprocess.run([sys.executable, "-c", child], check=True)
"""

permitted = pytest.mark.skipif(not probe_memory_policy().is_permitted, reason="set_mempolicy is not permitted here")


def run(policy):
    """Set `policy` in a fresh process; return its exit code and what it and its child then have."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, policy], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@permitted
@pytest.mark.parametrize("mode", ["bind", "interleave"])
def test_in_force_here_and_in_children(mode):
    """What the kernel reads back is what was asked, in the process and in a program that it starts."""
    assert run(f"{mode}:0") == (0, [f"{mode} (0,)"] * 2)


@permitted
def test_a_node_that_is_not_there():
    """A node without memory is refused, not ignored."""
    code, lines = run("bind:900")
    assert (code, lines) == (1, [])


def test_parsing():
    """Nodes are sorted and each is there once."""
    assert parse_policy("bind:3,1,3") == MemoryPolicy("bind", (1, 3))


@pytest.mark.parametrize("text", ["", "bind", "bind:", "local:0", "bind:x"])
def test_what_is_no_policy(text):
    """Another mode or a list that is none is refused."""
    with pytest.raises(ValueError, match=r"memory policy|invalid literal"):
        parse_policy(text)
