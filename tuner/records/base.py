"""The base of all records: frozen, strict, digestible; it knows no field of any of them."""

import codecs
import hashlib
import json
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from tuner.errors import UsageError

Scalar = bool | int | float | str | None
"""A value of a setting."""


class Record(BaseModel):
    """A frozen record that refuses unknown keys, converts nothing and holds no NaN or infinity.

    Attributes:
        unknown_keys: What `from_json` does with keys that no field has, here and in records within: what a user writes
            is refused (it is misspelt), what a newer version of this program wrote may be allowed.
    """

    unknown_keys: ClassVar[Literal["forbid", "allow"]] = "forbid"
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
        protected_namespaces=(),
    )

    def digest(self) -> str:
        """Return the sha256 (hex) of the canonical JSON: sorted keys, no spaces, UTF-8."""
        return digest_of(self.model_dump(mode="json"))

    def to_json(self, *, indent: int | None = None) -> str:
        """Return strict JSON (no NaN, no infinity), keys in order of declaration."""
        return json.dumps(self.model_dump(mode="json"), indent=indent, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "record") -> Self:
        """Read strict JSON; a mark of the byte order, which some editors put in front, is no part of it.

        Raises:
            UsageError: Not JSON, an unknown or missing key, a wrong type; names `source` and the first bad key.
        """
        plain = text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(codecs.BOM_UTF8)
        try:
            return cls.model_validate_json(plain, extra=cls.unknown_keys)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "top level"
            raise UsageError(f"{source}: {where}: {first['msg']}") from None


class Settings(Record):
    """The typed knobs of one backend or build step; every field has a default, None means the engine's own."""

    @classmethod
    def from_json_object(cls, values: Mapping[str, Scalar], *, source: str) -> Self:
        """Read settings as they stand in a config.

        Raises:
            UsageError: An unknown key or a value of the wrong type; names `source` and the key.
        """
        return cls.from_json(json.dumps(dict(values)), source=source)


def digest_of(value: object) -> str:
    """Return the sha256 (hex) of `value` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
