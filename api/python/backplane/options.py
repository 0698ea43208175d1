# SPDX-License-Identifier: Apache-2.0
"""How a model is placed and compiled."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._core import Cancel, Device

_DEFAULTS: dict[str, object] = {
    "devices": (),
    "fallback": "allow",
    "compute_types": (),
    "pins": None,
    "dims": None,
    "settings": None,
    "max_islands": 0,
    "refit": False,
    "place_only": False,
    "cancel": None,
}


class SessionOptions:
    """How `Model.compile` places and compiles. All fields are keywords.

    Args:
        devices: names of devices that may be used, preferred first; empty: all.
        fallback: "allow": the cheapest placement over the devices. "prefer": each node runs on the first device that supports it.
            "forbid": the first device runs every node, or compiling raises Unsupported.
        compute_types: types in which nodes may be computed, in addition to their own: "tf32", "bf16", "fp16", "fp16_accumulate", "fp8".
        pins: devices by pattern: {"op=Conv": "cpu", "name=encoder/*": "opencl:1"}. Of those that match a node, the first in alphabetical
            order counts.
        dims: extents that named dimensions will have, as numbers or as pairs of the minimum and the maximum.
        settings: "loader.<name>" and "<backend>.<name>", for example {"loader.costs": "reported"}.
        max_islands: the maximum number of islands; 0: no limit.
        refit: weights can be replaced and read later.
        place_only: place and explain, but do not compile.
        cancel: a token that ends the compilation when it is set.
    """

    __slots__ = (*_DEFAULTS, "__weakref__")

    devices: str | Device | Sequence[str | Device]
    fallback: str
    compute_types: Sequence[str]
    pins: Mapping[str, str] | None
    dims: Mapping[str, int | tuple[int, int]] | None
    settings: Mapping[str, object] | None
    max_islands: int
    refit: bool
    place_only: bool
    cancel: Cancel | None

    def __init__(self, **fields: object) -> None:
        for name, default in _DEFAULTS.items():
            setattr(self, name, fields.pop(name, default))
        if fields:
            raise TypeError(f"there is no session option {next(iter(fields))!r}; there are: {', '.join(_DEFAULTS)}")

    def replace(self, **changes: object) -> SessionOptions:
        """A copy with some fields changed."""
        return SessionOptions(**{**{name: getattr(self, name) for name in _DEFAULTS}, **changes})

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in _DEFAULTS if getattr(self, name) != _DEFAULTS[name])
        return f"SessionOptions({', '.join(fields)})"


def resolve(options: SessionOptions | None, changes: dict[str, object]) -> SessionOptions:
    """The options of one call of `Model.compile`."""
    if options is None:
        return SessionOptions(**changes)
    return options.replace(**changes) if changes else options
