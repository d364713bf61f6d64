"""What a profile remembers of the request that made it, so that it can be made again; never a password, never trust."""

from tuner.loading.passwords import has_password, without_passwords
from tuner.tuning.request import TRUST, TuneRequest


def remembered(request: TuneRequest) -> dict[str, object]:
    """Return the options that differ from their defaults, as JSON values; a storage with a password is left out."""
    kept = request.model_dump(mode="json", exclude_defaults=True, exclude={"command", *TRUST})
    if request.storage is not None and has_password(request.storage):
        del kept["storage"]
    return kept


def shown_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line with passwords in URLs as asterisks."""
    return tuple(map(without_passwords, command))
