"""What `lockstep sim` hands over in the environment (docs/reference/environment.md)."""

import json
import os
from pathlib import Path


def spec():
    """LOCKSTEP_SIM_SPEC as a dict; empty when there is none, or it is no JSON object."""
    try:
        value = json.loads(os.environ.get("LOCKSTEP_SIM_SPEC") or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def settings():
    """The arguments of _core.configure."""
    given = spec()
    return {
        "job": os.environ.get("LOCKSTEP_JOB") or "by-hand",
        "level": os.environ.get("LOCKSTEP_CHECK") or "full",
        "is_launched": bool(given.get("launched", False)),
        "is_paused": bool(given.get("paused", False)),
        "is_frozen": bool(given.get("frozen", False)),
        "strict_places": bool(given.get("strict_places", False)),
        "hold": bool(given.get("hold", False)),
        "stall_s": float(given.get("stall_s", 0.0)),
    }


def cache_folder():
    """Where Lockstep keeps what it builds on this machine."""
    return Path(os.environ.get("LOCKSTEP_CACHE") or Path.home() / ".cache" / "lockstep")
