"""A virtual machine with three memory nodes, booted once: Linux, this interpreter and the package, nothing else.

Needs ``qemu-system-x86_64`` and a kernel image with NUMA, serial console and initramfs built in; README.md beside this
file says where to get them. No KVM is needed.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py")
LEFT_OUT = {"test", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip", "lib2to3", "__pycache__"}
LEFT_OUT_PREFIX = "config-"
MACHINE = [
    "-accel", "tcg", "-cpu", "max", "-m", "1280M", "-smp", "4,sockets=2,cores=2,threads=1",
    "-object", "memory-backend-ram,id=m0,size=512M", "-numa", "node,nodeid=0,cpus=0-1,memdev=m0",
    "-object", "memory-backend-ram,id=m1,size=512M", "-numa", "node,nodeid=1,cpus=2-3,memdev=m1",
    "-object", "memory-backend-ram,id=m2,size=256M", "-numa", "node,nodeid=2,memdev=m2",
    "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-nic", "none",
]  # fmt: skip
LIMIT_S = 900


def kernel():
    """Return a kernel image: the one of AUTOTUNE_VM_KERNEL, else the newest of /boot; None without."""
    named = os.environ.get("AUTOTUNE_VM_KERNEL")
    found = [Path(named)] if named else sorted(Path("/boot").glob("vmlinuz*"))
    return next((path for path in reversed(found) if path.is_file()), None)


def shared_libraries(files):
    """Return the libraries that ELF files load, the loader among them."""
    done = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False)  # noqa: S607
    return {Path(word) for word in done.stdout.split() if word.startswith("/") and not word.endswith(":")}


def contents():
    """Yield (path in the machine, file outside) of everything it needs."""
    python = Path(sys.executable).resolve()
    stdlib, site = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    yield str(python), python
    natives = [python]
    roots = [(stdlib, stdlib)] + [(site / name, Path("/site") / name) for name in PACKAGES]
    roots += [(HERE.parents[1] / "tuner", Path("/site/tuner")), (HERE / "guest.py", Path("/site/guest.py"))]
    for root, target in roots:
        for file in [root] if root.is_file() else sorted(root.rglob("*")):
            parts = set(file.relative_to(root).parts)
            if not file.is_file() or parts & LEFT_OUT or any(part.startswith(LEFT_OUT_PREFIX) for part in parts):
                continue
            yield str(target / file.relative_to(root)) if root != file else str(target), file
            natives += [file] * (".so" in file.suffixes)
    for library in sorted(shared_libraries(natives)):
        yield str(library), library.resolve()


def archive():
    """Return a gzipped cpio archive (format newc: kernel, Documentation/driver-api/early-userspace/buffer-format)."""
    init = f"#!{Path(sys.executable).resolve()} -B\nimport sys\nsys.path.insert(0, '/site')\nimport os\n"
    init += "os.environ['PYTHONPATH'] = '/site'\nimport guest\nguest.main()\n"
    entries = {"init": (0o100755, init.encode())}
    for name, file in contents():
        entries[name.lstrip("/")] = (0o100755, file.read_bytes())
    folders = {str(parent) for name in entries for parent in Path(name).parents} - {"."}
    for folder in sorted(folders | {"proc", "sys", "dev", "tmp", "bin"}):
        entries[folder] = (0o040755, b"")
    parts = []
    for number, (name, (mode, data)) in enumerate([*sorted(entries.items()), ("TRAILER!!!", (0, b""))], start=1):
        label = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(label), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + label
        parts += [head, bytes(-len(head) % 4), data, bytes(-len(data) % 4)]
    return gzip.compress(b"".join(parts), compresslevel=1)


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    """Return what the machine says of itself, by name."""
    qemu, image = shutil.which("qemu-system-x86_64"), kernel()
    if qemu is None or image is None:
        pytest.skip("needs qemu-system-x86_64 and a kernel image; see tests/hardware_vm/README.md")
    folder = tmp_path_factory.mktemp("vm")
    (folder / "initramfs").write_bytes(archive())
    command = [qemu, *MACHINE, "-kernel", str(image), "-initrd", str(folder / "initramfs")]
    command += ["-append", "console=ttyS0 panic=-1 quiet"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    (folder / "console.txt").write_text(done.stdout + done.stderr)
    lines = [line.partition("@@ ")[2] for line in done.stdout.splitlines() if "@@ " in line]
    found = {entry["name"]: entry["value"] for entry in map(json.loads, lines)}
    assert "end" in found, (done.stdout + done.stderr)[-3000:]
    return found
