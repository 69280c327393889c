"""Reading the objects of a request: every field is known, or the request is not supported."""

from types import SimpleNamespace

from .failures import Unsupported

REQUIRED = object()
ABSENT = object()  # the default of a field whose absence means something of its own


def read(given, where: str, /, **defaults) -> SimpleNamespace:
    """The fields of an object, those not given by their defaults."""
    if not isinstance(given, dict):
        raise Unsupported(f"{where}: not an object")
    check_names(given, where, defaults)
    fields = SimpleNamespace(**{**defaults, **given})
    missing = [name for name, value in vars(fields).items() if value is REQUIRED]
    if missing:
        raise Unsupported(f"{where}: {', '.join(missing)} is required")
    return fields


def check_names(given: dict, where: str, known) -> None:
    """Refuses an object with a field that is not among the known ones."""
    unknown = [name for name in given if name not in known]
    if unknown:
        raise Unsupported(f"{where}: {', '.join(unknown)}")


def choose(table: dict, name, where: str):
    """The entry of a table of alternatives."""
    try:
        return table[name]
    except (KeyError, TypeError):
        raise Unsupported(f"{where} {name!r}") from None


def given_only(fields: SimpleNamespace, *names: str) -> dict:
    """Those of the named fields that are not ABSENT, as keyword arguments."""
    return {name: getattr(fields, name) for name in names if getattr(fields, name) is not ABSENT}
