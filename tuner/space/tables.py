"""Reads one search-space file into the tables it is made of and merges files of the same section; it builds nothing."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path

from tuner.errors import UsageError
from tuner.records.config import Placement, ProcessSettings
from tuner.space.naming import refuse_unknown

__all__ = ["CHAIN", "Section", "Table", "process_names", "read_section"]

CHAIN = "artifact.chain"
SCHEMA = "tuner.space/1"
_DEEPEST = 3
MAX_BYTES = 1 << 20
_TOP = ("schema", "backend", "step", "artifacts", "artifact", "session", "process", "rule")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Table:
    """One parameter table as written."""

    file: str
    keys: Mapping[str, object]

    def merged(self, later: "Table") -> "Table":
        """Return this table with the keys of a later one; a later `kind` replaces it whole."""
        return later if "kind" in later.keys else Table(later.file, {**self.keys, **later.keys})


@dataclass
class Section:
    """All that the files say of one backend, of one step, or of every backend.

    Attributes:
        kind: ``backend``, ``step`` or ``process``.
        name: Of the backend or step, else empty.
        chains: Build steps by chain name, in the order written.
        tables: Parameter tables by dotted name.
        rules: Requirement, reason and the place they stand, each once.
    """

    kind: str
    name: str
    file: str
    chains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    rules: dict[tuple[str, str], str] = field(default_factory=dict)

    def extend(self, later: "Section") -> None:
        """Take over what a later file of the same section says; it wins key by key."""
        self.chains.update(later.chains)
        merge_tables(self.tables, later.tables)
        for rule, place in later.rules.items():
            self.rules.setdefault(rule, place)

    def content(self) -> dict[str, object]:
        """Return what counts for the digest: no file names, and no order but that of the chains."""
        return {
            "chains": [[name, list(steps)] for name, steps in self.chains.items()],
            "parameters": {name: dict(table.keys) for name, table in self.tables.items()},
            "rules": [list(rule) for rule in sorted(self.rules)],
        }


def merge_tables(tables: dict[str, Table], later: Mapping[str, Table]) -> None:
    """Merge `later` tables into `tables`, which keep their order."""
    for name, table in later.items():
        tables[name] = tables[name].merged(table) if name in tables else table


def process_names(name: str) -> bool:
    """Return whether `name` is a setting that a configuration has under ``process``."""
    fields = {f"process.{key}" for key in ProcessSettings.model_fields} - {"process.placement", "process.env"}
    fields |= {f"process.placement.{key}" for key in Placement.model_fields}
    return name in fields or (name.startswith("process.env.") and name.count(".") == 2)  # noqa: PLR2004


def read_section(file: Traversable | Path) -> Section:
    """Read a file.

    Raises:
        UsageError: It cannot be read, is no TOML, has another schema or an unknown key.
    """
    label = str(file)
    document = _document(file, label)
    refuse_unknown(document, _TOP, label)
    if document.get("schema") != SCHEMA:
        raise UsageError(f'{label}: schema: write schema = "{SCHEMA}", not {document.get("schema")!r}')
    kind, name = _owner(document, label)
    section = Section(kind, name, label)
    allowed = {"backend": ("artifact", "session", "process"), "step": ("artifact",), "process": ("process",)}[kind]
    for root in ("artifact", "process", "session"):
        if root in document and root not in allowed:
            raise UsageError(f'{label}: {root}: belongs to a file with {_OWNER_OF[root]} = "…"')
        for dotted, keys in _leaves(document.get(root, {}), root, label):
            _check_place(section, dotted, label)
            section.tables[dotted] = Table(label, keys)
    section.chains.update(_chains(document.get("artifacts", {}), kind, label))
    section.rules.update(_rules(document.get("rule", []), label))
    return section


_OWNER_OF = {"artifact": "step", "session": "backend", "process": "backend"}


def _document(file: Traversable | Path, label: str) -> dict[str, object]:
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise UsageError(f"{label}: has {len(data)} bytes; a search space has at most {MAX_BYTES}")
        return tomllib.loads(data.decode())
    except OSError as error:
        raise UsageError(f"{label}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{label}: is not valid TOML: {' '.join(str(error).split())}") from None


def _owner(document: Mapping[str, object], label: str) -> tuple[str, str]:
    """Return what the file describes."""
    if "backend" in document and "step" in document:
        raise UsageError(f"{label}: step: a file describes a backend or a step, not both")
    for kind in ("backend", "step"):
        name = document.get(kind)
        if name is None:
            continue
        if not isinstance(name, str) or not _NAME.match(name):
            raise UsageError(f"{label}: {kind}: {name!r} is not a name of letters, digits and _")
        return kind, name
    return "process", ""


def _leaves(table: object, prefix: str, label: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the tables that hold more than tables, by dotted name."""
    if not isinstance(table, dict) or prefix.count(".") > _DEEPEST:
        raise UsageError(f"{label}: {prefix[:80]}: must be a table of parameters")
    inner = [key for key, value in table.items() if isinstance(value, dict)]
    if len(inner) < len(table) or (not table and "." in prefix):
        if inner:
            raise UsageError(f"{label}: {prefix}.{inner[0]}: a parameter has no tables inside")
        yield prefix, table
        return
    for key in inner:
        if not _NAME.match(key):
            raise UsageError(f"{label}: {prefix}: {key!r} is not a name of letters, digits and _")
        yield from _leaves(table[key], f"{prefix}.{key}", label)


def _check_place(section: Section, dotted: str, label: str) -> None:
    """Refuse a parameter that no configuration could hold."""
    parts = dotted.split(".")
    if parts[0] == "process" and not process_names(dotted):
        known = [f"process.placement.{key}" for key in Placement.model_fields]
        known += [f"process.{key}" for key in ProcessSettings.model_fields if key not in {"placement", "env"}]
        refuse_unknown([dotted], [*known, "process.env.<NAME>"], label)
    if parts[0] == "session" and len(parts) != 2:  # noqa: PLR2004
        raise UsageError(f"{label}: {dotted}: a session parameter is session.<key>")
    if parts[0] == "artifact" and dotted != CHAIN and len(parts) != 3:  # noqa: PLR2004
        raise UsageError(f"{label}: {dotted}: an artifact parameter is artifact.<step>.<key>")
    if section.kind == "step" and parts[:2] != ["artifact", section.name]:
        raise UsageError(f"{label}: {dotted}: a file of step {section.name} holds artifact.{section.name}.<key> only")


def _chains(table: object, kind: str, label: str) -> dict[str, tuple[str, ...]]:
    if not table:
        return {}
    if kind != "backend" or not isinstance(table, dict):
        raise UsageError(f'{label}: artifacts: must be a table in a file with backend = "…"')
    for name, steps in table.items():
        if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
            raise UsageError(f"{label}: artifacts.{name}: must be a list of step names")
        if len(set(steps)) < len(steps):
            raise UsageError(f"{label}: artifacts.{name}: a step stands there twice")
    return {name: tuple(steps) for name, steps in table.items()}


def _rules(rules: object, label: str) -> dict[tuple[str, str], str]:
    if not isinstance(rules, list):
        raise UsageError(f"{label}: rule: write [[rule]], a list of tables")
    found: dict[tuple[str, str], str] = {}
    for number, rule in enumerate(rules, start=1):
        where = f"{label}: rule {number}"
        if not isinstance(rule, dict):
            raise UsageError(f"{where}: write [[rule]], a list of tables")
        refuse_unknown(rule, ("require", "reason"), where)
        for key in ("require", "reason"):
            if not isinstance(rule.get(key), str) or not rule[key].strip():
                raise UsageError(f"{where}.{key}: must be a text; every rule has a requirement and a reason")
        found.setdefault((rule["require"].strip(), rule["reason"].strip()), where)
    return found
