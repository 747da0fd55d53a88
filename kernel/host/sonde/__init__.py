"""sonde - starts guests with the kernel, and talks to them. docs/scripting.md describes what
scripts may rely on: the names below. The other modules are parts of ./sonde.
"""

from sonde.building import HostError, build_kernel
from sonde.errors import SondeError
from sonde.guest import Guest, GuestError, Setup
from sonde.machine import Gone, Late, Machine, Refused, Reply

__all__ = [
    "Gone",
    "Guest",
    "GuestError",
    "HostError",
    "Late",
    "Machine",
    "Refused",
    "Reply",
    "Setup",
    "SondeError",
    "build_kernel",
]
