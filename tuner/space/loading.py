"""Loads search-space files into one checked SearchSpace; what the host makes of it is decided in `resolving`."""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path

from tuner.errors import UsageError
from tuner.space.checking import check_chain, check_names, check_parameter, ordered
from tuner.space.declared import DeclaredBackend, Rule
from tuner.space.expressions import Expression
from tuner.space.naming import nearest
from tuner.space.parameters import parameter_of
from tuner.space.space import SearchSpace
from tuner.space.tables import CHAIN, Section, Table, merge_tables, read_section

__all__ = ["load_space"]

_ORDER = {"artifact": 0, "process": 1, "session": 2}


def load_space(files: Iterable[Traversable | Path]) -> SearchSpace:
    """Load and check files; of the same backend or step a later file wins key by key, and rules add up.

    Raises:
        UsageError: Anything the format does not allow; one line with file and key.
    """
    sections: dict[tuple[str, str], Section] = {}
    for file in files:
        section = read_section(file)
        known = sections.setdefault((section.kind, section.name), section)
        if known is not section:
            known.extend(section)
    steps = {name: section for (kind, name), section in sections.items() if kind == "step"}
    shared = [section for (kind, _), section in sections.items() if kind == "process"]
    backends = {
        name: _declared(section, steps, shared)
        for (kind, name), section in sorted(sections.items())
        if kind == "backend"
    }
    _check_shared([*steps.values(), *shared], backends.values())
    content = {" ".join(key).strip(): section.content() for key, section in sections.items()}
    return SearchSpace(backends=backends, content=content)


def _declared(section: Section, steps: Mapping[str, Section], shared: Iterable[Section]) -> DeclaredBackend:
    """Return one backend from its own section, those of its steps and the one for every backend."""
    chains = section.chains or {"source": ()}
    used = _used(section, chains, steps)
    tables = {CHAIN: Table(section.file, {"kind": "choice", "values": list(chains), "default": next(iter(chains))})}
    for part in (*used.values(), *shared, section):
        merge_tables(tables, part.tables)
    check_chain(tables[CHAIN], chains)
    for name, table in tables.items():
        if name.startswith("artifact.") and name != CHAIN and name.split(".")[1] not in used:
            raise UsageError(f"{table.file}: {name}: no chain of {section.name} has that step; {nearest(name, used)}")
    parameters = [parameter_of(name, table.keys, table.file) for name, table in tables.items()]
    parameters.sort(key=lambda parameter: _ORDER[parameter.name.partition(".")[0]])
    for parameter in parameters:
        check_parameter(parameter, tables)
    own = tuple(_rules(section))
    for rule in own:
        check_names(rule.require, tables)
    others = (rule for part in (*used.values(), *shared) for rule in _rules(part))
    return DeclaredBackend(section.name, dict(chains), ordered(parameters), (*own, *others))


def _used(section: Section, chains: Mapping[str, tuple[str, ...]], steps: Mapping[str, Section]) -> dict[str, Section]:
    """Return the sections of the steps in `chains`, in the order of the chains."""
    used: dict[str, Section] = {}
    for chain, names in chains.items():
        for step in names:
            if step not in steps:
                where = f"{section.file}: artifacts.{chain}"
                raise UsageError(f"{where}: no search-space file describes step {step!r}; {nearest(step, steps)}")
            used[step] = steps[step]
    return used


def _rules(section: Section) -> Iterator[Rule]:
    for (require, reason), place in section.rules.items():
        yield Rule(Expression.parse(require, f"{place}.require"), reason)


def _check_shared(sections: Iterable[Section], backends: Iterable[DeclaredBackend]) -> None:
    """Check the files of steps and of every backend also where no backend uses them."""
    sections = tuple(sections)
    known = {parameter.name for backend in backends for parameter in backend.parameters}
    known |= {name for section in sections for name in section.tables}
    for section in sections:
        for name, table in section.tables.items():
            check_parameter(parameter_of(name, table.keys, table.file), known)
        for rule in _rules(section):
            check_names(rule.require, known)
