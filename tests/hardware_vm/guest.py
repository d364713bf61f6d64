"""Runs as the first process of a small virtual machine: what the hardware module sees there, one JSON line a finding.

Every memory finding comes from a process of its own that takes its position as a worker does, allocates, and counts
its pages by node in /proc/self/numa_maps. It asserts nothing; the test outside does.
"""

import ctypes
import json
import mmap
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

MARK = "@@ "
BLOCK_BYTES = 16 << 20
POWER_OFF = 0x4321FEDC
GROUP = Path("/sys/fs/cgroup/limited")
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("cgroup2", "/sys/fs/cgroup"))


def say(name, value):
    """Print one finding."""
    sys.stdout.write(MARK + json.dumps({"name": name, "value": value}) + "\n")
    sys.stdout.flush()


def facts():
    """Return what is detected here and now."""
    from tuner.hardware.detection import detect

    host = detect()
    names = ("allowed_cpus", "cpu_budget", "bound_by", "quota_cpus", "cgroup_version", "cpu_nodes", "membind_nodes")
    found = {name: getattr(host, name) for name in names}
    found["nodes"] = {node.id: node.cpus for node in host.numa_nodes}
    found["packages"] = [package.cpus for package in host.packages]
    found["is_memory_policy_permitted"] = host.is_memory_policy_permitted
    return found


def masks():
    """Return the CPUs of one worker a node, and of two."""
    from tuner.hardware.detection import detect
    from tuner.hardware.placement import resolve_instances
    from tuner.records.config import Placement

    place = Placement(scope="node", policy="spread", n_cpus=2)
    return resolve_instances(place, detect(), 2)


def positioned(*words):
    """Return mask, policy and pages by node of a fresh process that takes a worker's position."""
    done = subprocess.run([sys.executable, __file__, "child", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip().splitlines()[-1]}


def child(words):
    """Take the position, allocate, and print where the pages are."""
    from tuner.hardware.memory_policy import read_policy
    from tuner.worker.startup import parse_options, take_position

    take_position(parse_options(words))
    # another protection than the heap's keeps the block in a mapping, and so a line of numa_maps, of its own
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    block = mmap.mmap(-1, BLOCK_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=protection)
    for offset in range(0, BLOCK_BYTES, mmap.PAGESIZE):
        block[offset] = 1
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    lines = (line for line in Path("/proc/self/numa_maps").read_text().splitlines())
    line = next(line for line in lines if int(line.split()[0], 16) == address)
    pages = {int(node): int(count) for node, count in re.findall(r"\bN(\d+)=(\d+)", line)}
    found = {"cpus": sorted(os.sched_getaffinity(0)), "policy": read_policy(), "pages": pages}
    sys.stdout.write(json.dumps(found) + "\n")


def limit(name, value):
    """Write one limit of the control group."""
    (GROUP / name).write_text(value)


def findings():
    """Say everything."""
    say("plain", facts())
    both = masks()
    say("masks", both)
    for node, cpus in enumerate(both):
        mask = ",".join(map(str, cpus))
        say(f"local {node}", positioned("--cpus", mask))
        for target in (0, 1, 2):
            say(f"bind {node} {target}", positioned("--cpus", mask, "--memory-policy", f"bind:{target}"))
    say("interleave", positioned("--memory-policy", "interleave:0,1"))
    say("no such node", positioned("--memory-policy", "bind:9"))
    (GROUP.parent / "cgroup.subtree_control").write_text("+cpu +cpuset +memory")
    GROUP.mkdir()
    limit("cgroup.procs", str(os.getpid()))
    limit("cpu.max", "150000 100000")
    say("quota", facts())
    limit("cpu.max", "max 100000")
    limit("cpuset.cpus", "2-3")
    limit("cpuset.mems", "1")
    say("cpuset", facts())
    say("bind outside the cpuset", positioned("--memory-policy", "bind:0"))


def main():
    """Mount what is needed, find out, switch the machine off."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind, place in MOUNTS:
        Path(place).mkdir(parents=True, exist_ok=True)
        libc.mount(b"none", place.encode(), kind.encode(), 0, None)
    os.environ |= {"PATH": "/bin", "HOME": "/"}
    try:
        findings()
    except Exception:  # noqa: BLE001 - the machine must go off, and the test must see why
        traceback.print_exc()
    say("end", None)
    os.sync()
    libc.reboot(POWER_OFF)


if __name__ == "__main__":
    child(sys.argv[2:]) if sys.argv[1:2] == ["child"] else main()
