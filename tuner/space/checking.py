"""Checks what search-space files say against each other: names, conditions, places; it changes the order at most."""

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from tuner.errors import UsageError
from tuner.space.expressions import FACT_ROOTS, Expression
from tuner.space.facts import FACTS
from tuner.space.mapping import process_of
from tuner.space.naming import nearest
from tuner.space.parameters import Choice, Parameter, Real
from tuner.space.tables import CHAIN, Table, process_names

__all__ = ["check_chain", "check_names", "check_parameter", "ordered"]

MOST_PARAMETERS = 200


def check_chain(table: Table, chains: Iterable[str]) -> None:
    """Refuse a table of ``artifact.chain`` that names other chains or has a condition.

    Raises:
        UsageError: It does.
    """
    chains = tuple(chains)
    values = table.keys.get("values")
    for value in values if isinstance(values, list) else ():
        if value not in chains:
            raise UsageError(f"{table.file}: {CHAIN}.values: no chain {value!r}; {nearest(str(value), chains)}")
    if "when" in table.keys:
        raise UsageError(f"{table.file}: {CHAIN}.when: the chain is chosen first and has no condition")


def check_parameter(parameter: Parameter, known: Iterable[str]) -> None:
    """Refuse a bound that names a parameter, an unknown name, and a process value that no configuration holds.

    Raises:
        UsageError: With file and key.
    """
    for expression in parameter.expressions():
        if expression.parameters:
            name = min(expression.parameters)
            raise UsageError(f"{expression.where}: a bound names facts only, not {name}; write a [[rule]] for that")
        check_names(expression, known)
    if parameter.when:
        check_names(parameter.when, known)
    if parameter.name.startswith("process."):
        _check_process(parameter)


def check_names(expression: Expression, known: Iterable[str]) -> None:
    """Refuse names that are neither a fact nor a known parameter.

    Raises:
        UsageError: The first such name, with the nearest known one.
    """
    known = tuple(known)
    facts = [f"{root}.{fact}" for root in FACT_ROOTS for fact in FACTS[root]]
    for name in sorted(expression.names):
        if name in known or name in facts or process_names(name):
            continue
        is_fact = name.partition(".")[0] in FACT_ROOTS
        what, names = ("fact", facts) if is_fact else ("parameter", known)
        raise UsageError(f"{expression.where}: unknown {what} {name!r}; {nearest(name, names)}")


def ordered(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters so that each stands after those its `when` names, else in the order given.

    Raises:
        UsageError: Conditions that need each other, or more parameters than can be searched.
    """
    by_name: Mapping[str, Parameter] = {parameter.name: parameter for parameter in parameters}
    if len(by_name) > MOST_PARAMETERS:
        where = next(iter(by_name.values())).where
        raise UsageError(f"{where}: the backend has {len(by_name)} parameters; at most {MOST_PARAMETERS} are allowed")
    done: dict[str, Parameter] = {}
    under_way: list[str] = []

    def visit(parameter: Parameter) -> None:
        if parameter.name in done:
            return
        if parameter.name in under_way:
            circle = " needs ".join([*under_way[under_way.index(parameter.name) :], parameter.name])
            raise UsageError(f"{parameter.where}.when: conditions go in a circle: {circle}")
        under_way.append(parameter.name)
        for name in sorted(parameter.when.parameters if parameter.when else ()):
            if name in by_name:
                visit(by_name[name])
        under_way.pop()
        done[parameter.name] = parameter

    for parameter in by_name.values():
        visit(parameter)
    return tuple(done.values())


def _check_process(parameter: Parameter) -> None:
    if isinstance(parameter, Real):
        raise UsageError(f"{parameter.where}.kind: no process setting is a real number; write choice or integer")
    values = parameter.values if isinstance(parameter, Choice) else (getattr(parameter, "min", 1),)
    for value in values:
        if isinstance(value, Expression):
            continue
        try:
            process_of({parameter.name: value})
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"]
            key = "values" if isinstance(parameter, Choice) else "min"
            raise UsageError(f"{parameter.where}.{key}: {value!r}: {reason}") from None
