"""Where Lockstep differs from Accelerate on purpose. Nothing else may differ.

The clause of each entry says so: it names the other behaviour under `Accepted:`, it is one where the older behaviour
wins (S), or it has a sentence that begins `Lockstep:`. An entry says for which cases it may show, and which differences
of such a case it explains, down to the value that Lockstep has to give; a case counts as known only if every one of its
differences is explained. A hang, a crash or a broken protocol is never explained.
"""

from .data import DATA
from .entry import KnownDifference, Seen
from .operations import OPERATIONS
from .programs import PROGRAMS

KNOWN_DIFFERENCES = [*DATA, *OPERATIONS, *PROGRAMS]

__all__ = ["KNOWN_DIFFERENCES", "KnownDifference", "Seen"]
