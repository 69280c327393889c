"""How an operation ends when it has no result."""

KINDS = ("ValueError", "TypeError", "IndexError", "KeyError", "AttributeError", "RuntimeError", "NotImplementedError",
         "ImportError", "OSError", "AssertionError", "DistributedOperationException")


class Unsupported(Exception):
    """The request holds something that this subject does not know; the text names it."""


def kind_of(error: BaseException) -> str:
    """The protocol's word for an error: its nearest base class that has one."""
    return next((base.__name__ for base in type(error).__mro__ if base.__name__ in KINDS), "Error")


def attempt(function):
    """What the function returns, or in its place the kind of its error."""
    try:
        return function()
    except Unsupported:
        raise
    except Exception as error:
        return {"error": kind_of(error)}
