"""Narrows a declared backend to one host: bounds become numbers, what the host lacks drops out, wishes are fixed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tuner.records.measurement import Notice
from tuner.space.declared import DeclaredBackend, Rule, step_of
from tuner.space.domains import Domain, domain_of, spelled, start_of
from tuner.space.fixing import fixed_of, read_value
from tuner.space.parameters import Parameter, Value
from tuner.space.tables import CHAIN
from tuner.space.walking import ResolvedBackend, ResolvedParameter

__all__ = ["Refusal", "facts_of", "resolve_backend"]

_MOST_FILTERED = 4096


class Refusal(Exception):  # noqa: N818 - an answer, not a defect
    """A backend cannot be used here; the notice says why."""

    def __init__(self, notice: Notice) -> None:
        super().__init__(notice.detail)
        self.notice = notice


@dataclass
class _Narrowing:
    """What is being made of one backend.

    Attributes:
        constants: Parameters that always have the same value here.
        settled: Ids of the rules that need no more looking at, since the domains hold them.
    """

    backend: DeclaredBackend
    facts: Mapping[str, object]
    fixed: Mapping[str, str]
    notices: list[Notice] = field(default_factory=list)
    constants: dict[str, object] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)

    def note(self, code: str, detail: str, remedy: str | None = None) -> None:
        """Keep one notice."""
        self.notices.append(Notice(code=code, detail=f"{self.backend.name}: {detail}", remedy=remedy))


def facts_of(**roots: Mapping[str, object]) -> dict[str, object]:
    """Return flat facts by dotted name; lists become tuples, which rules can search."""
    return {
        f"{root}.{name}": tuple(value) if isinstance(value, list | set | frozenset) else value
        for root, facts in roots.items()
        for name, value in facts.items()
    }


def resolve_backend(
    backend: DeclaredBackend,
    facts: Mapping[str, object],
    dropped_steps: Collection[str],
    fixed: Mapping[str, str],
    missing_steps: Mapping[str, str],
) -> tuple[ResolvedBackend, list[Notice]]:
    """Return the backend on this host, and what a person should know of it.

    Raises:
        Refusal: A rule over facts alone is broken, or a fixed value does not exist in this backend.
        UsageError: A bound is unknown or a rule cannot be computed.
    """
    work = _Narrowing(backend, facts, fixed_of(backend, fixed))
    for rule in backend.rules:
        if not rule.require.parameters and rule.require.truth(facts) is False:
            raise Refusal(Notice(code="backend_dropped", detail=f"{backend.name}: {rule.reason}"))
    chains = _chains(work, dropped_steps, missing_steps)
    steps = {step for names in chains.values() for step in names}
    parameters = []
    for parameter in backend.parameters:
        step = step_of(parameter.name)
        settled = {**facts, **work.constants}
        if (step and step not in steps) or (parameter.when and parameter.when.truth(settled) is False):
            if parameter.name in work.fixed:
                work.note("fix_without_effect", f"{parameter.name} has no effect here")
            continue
        if parameter.when and parameter.when.truth(settled):
            parameter = replace(parameter, when=None)  # noqa: PLW2901 - the condition holds on this host for good
        parameters.append(_parameter(work, parameter, chains))
    rules = tuple(rule for rule in backend.rules if id(rule) not in work.settled and rule.require.parameters)
    return ResolvedBackend(backend.name, chains, tuple(parameters), rules, facts), work.notices


def _chains(
    work: _Narrowing, dropped_steps: Collection[str], missing_steps: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the chains that `artifact.chain` may name, without dropped steps; of equal ones the first stays.

    A chain with a missing step drops out; one notice a step names its chains.
    """
    backend = work.backend
    chain = next(parameter for parameter in backend.parameters if parameter.name == CHAIN)
    allowed = domain_of(chain, {}).values
    chains: dict[str, tuple[str, ...]] = {}
    without: dict[str, list[str]] = {}
    for name, steps in backend.chains.items():
        left = tuple(step for step in steps if step not in dropped_steps)
        lacking = next((step for step in left if step in missing_steps), None)
        if lacking is not None:
            without.setdefault(lacking, []).append(name)
        elif name in allowed and left not in chains.values():
            chains[name] = left
    for step, names in without.items():
        work.note(
            "chain_dropped", f"{', '.join(names)} left out: step {step} is not installed here", missing_steps[step]
        )
    return chains


def _parameter(work: _Narrowing, parameter: Parameter, chains: Mapping[str, tuple[str, ...]]) -> ResolvedParameter:
    """Return the parameter on this host, with the rules applied that depend on it alone."""
    domain = domain_of(parameter, work.facts)
    if parameter.name == CHAIN:
        domain = replace(domain, values=tuple(name for name in domain.values if name in chains))
    if parameter.name in work.fixed:
        domain = replace(domain, values=(_fixed(work, parameter, domain),))
    for rule in work.backend.rules if len(domain) <= _MOST_FILTERED else ():
        others = rule.require.parameters - {parameter.name}
        if len(others) < len(rule.require.parameters) and others <= work.constants.keys():
            work.settled.add(id(rule))
            domain = _filtered(work, parameter, domain, rule)
    if len(domain) == 1 and parameter.when is None and (parameter.name == CHAIN or not step_of(parameter.name)):
        work.constants[parameter.name] = domain.values[0]
    default = start_of(domain, parameter.default, facts=work.facts)
    prior = start_of(domain, parameter.prior, parameter.default, facts=work.facts)
    if prior is None and domain.values:
        prior = domain.values[0]
    return ResolvedParameter(
        name=parameter.name,
        domain=domain,
        default=default,
        prior=prior,
        numerics=parameter.numerics,
        when=parameter.when,
        reason=parameter.reason,
        step=step_of(parameter.name),
    )


def _fixed(work: _Narrowing, parameter: Parameter, domain: Domain) -> Value:
    """Return the value that ``--fix`` asks for.

    Raises:
        Refusal: This backend has no such value.
    """
    text = work.fixed[parameter.name]
    value = read_value(text, domain)
    if value is None:
        detail = f"{work.backend.name}: {parameter.name} cannot be {text!r}; it can be {domain.text()}"
        raise Refusal(Notice(code="fix_impossible", detail=detail))
    return value


def _filtered(work: _Narrowing, parameter: Parameter, domain: Domain, rule: Rule) -> Domain:
    """Return the domain without the values that a rule forbids here.

    Raises:
        Refusal: Two fixed values break the rule together.
    """
    names = {**work.facts, **work.constants}
    kept = tuple(value for value in domain.values if rule.require.truth({**names, parameter.name: value}) is not False)
    if len(kept) == len(domain):
        return domain
    lost = ", ".join(spelled(value) for value in domain.values if value not in kept)
    if parameter.name in work.fixed:
        if (rule.require.parameters - {parameter.name}) & work.fixed.keys():
            detail = (
                f"{work.backend.name}: {parameter.name} cannot be {lost} with the other fixed values: {rule.reason}"
            )
            raise Refusal(Notice(code="fix_impossible", detail=detail))
        work.note("fixed_against_rule", f"{parameter.name} = {lost} is kept as asked, although {rule.reason}")
        return domain
    if domain.kind == "choice" and (parameter.name == CHAIN or parameter.name.startswith("session.")):
        work.note("value_dropped", f"{parameter.name} = {lost} is left out: {rule.reason}", _force(parameter, lost))
    return replace(domain, values=kept)


def _force(parameter: Parameter, lost: str) -> str:
    return f"--fix {parameter.name}={lost.partition(', ')[0]} tries it all the same"
