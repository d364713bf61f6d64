"""A search space as its files state it, before any host is known; reading is `loading`, narrowing is `resolving`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tuner.errors import UsageError
from tuner.records.base import digest_of
from tuner.records.measurement import Notice
from tuner.space.declared import DeclaredBackend
from tuner.space.fixing import check_keys, fixed_of
from tuner.space.naming import nearest
from tuner.space.resolved import ResolvedSpace
from tuner.space.resolving import Refusal, facts_of, resolve_backend

__all__ = ["SearchSpace"]


@dataclass(frozen=True)
class SearchSpace:
    """All backends that the files describe, by name.

    Attributes:
        content: What the files say, merged; the digest is over it.
    """

    backends: Mapping[str, DeclaredBackend]
    content: Mapping[str, object] = field(repr=False)

    def digest(self) -> str:
        """Return the sha256 of the content: the same for any order of files, any white space, any comments."""
        return digest_of(dict(self.content))

    def resolve(
        self,
        host: Mapping[str, object],
        model: Mapping[str, object],
        workload: Mapping[str, object],
        *,
        dropped_steps: Collection[str] = (),
        missing_steps: Mapping[str, str] | None = None,
        backends: Collection[str] | None = None,
        fixed: Mapping[str, str] | None = None,
    ) -> ResolvedSpace:
        """Return the space on one host, for one model and traffic.

        Args:
            host: Facts by name without ``host.`` (see `facts.FACTS`); what is missing is unknown.
            model: Likewise.
            workload: Likewise.
            dropped_steps: Build steps that the source makes superfluous.
            missing_steps: Build steps that cannot run here, with the way out; chains with one of them drop out.
            backends: Backends to keep, None for all.
            fixed: Texts by parameter name, as ``--fix`` gives them.

        Raises:
            UsageError: An unknown backend or fixed parameter, a fixed value that no backend has, a bound unknown here.
        """
        fixed = fixed or {}
        kept = self._kept(backends)
        check_keys(kept, fixed)
        facts = facts_of(host=host, model=model, workload=workload)
        resolved = []
        notices: list[Notice] = []
        refused: dict[str, Notice] = {}
        for backend in kept:
            try:
                narrowed, said = resolve_backend(backend, facts, dropped_steps, fixed, missing_steps or {})
            except Refusal as refusal:
                refused[backend.name] = refusal.notice
                continue
            resolved.append(narrowed)
            notices += said
        for key in fixed:
            owners = [backend.name for backend in kept if fixed_of(backend, {key: ""})]
            reasons = [refused[name].detail for name in owners if name in refused]
            if len(reasons) == len(owners):
                raise UsageError(f"--fix {key}={fixed[key]}: {'; '.join(reasons)}")
        return ResolvedSpace.of(resolved, [*notices, *refused.values()], self.digest())

    def _kept(self, backends: Collection[str] | None) -> list[DeclaredBackend]:
        for name in backends or ():
            if name not in self.backends:
                raise UsageError(f"no search-space file describes backend {name!r}; {nearest(name, self.backends)}")
        return [self.backends[name] for name in sorted(self.backends) if backends is None or name in backends]
