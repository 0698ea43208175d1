# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a model run and why, and how long each takes: readable as text, in notebooks, and as data."""

from __future__ import annotations

import html
import json
import math
from typing import Any, cast

from .options import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import Model

_COLORS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
_NO_DEVICE = "#d62728"
_SHOWN = 200  # rows of a table in a notebook or terminal
_LONG = ("name", "not elsewhere, because")  # columns whose cells may be longer than a phone is wide


# As cli/printable.cpp: controls and line separators become spaces, and what hides or reorders text becomes U+FFFD.
_UNPRINTABLE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")
_UNPRINTABLE.update(
    (code, "\ufffd")
    for first, last in (
        (0xAD, 0xAD), (0x61C, 0x61C), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
        (0xFFF9, 0xFFFB), (0xE0000, 0xE007F),
    )
    for code in range(first, last + 1)
)  # fmt: skip


def _printable(text: str) -> str:
    """Text of a model or a backend, which are not trusted, as one line that cannot control a terminal."""
    return text.translate(_UNPRINTABLE)


def _time(seconds: float | None) -> str:
    """Formats 0.00123 as "1.23 ms". Empty if unknown."""
    if not seconds:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _count(items: list[dict[str, Any]], one: str, many: str) -> str:
    return f"{len(items)} {one if len(items) == 1 else many}"


def _text_table(heads: list[str], rows: list[list[str]]) -> str:
    printed = [[_printable(cell) for cell in row] for row in [heads, *rows]]
    widths = [max(len(row[i]) for row in printed) for i in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in printed]
    return "\n".join(lines)


def _escape(text: str) -> str:
    return html.escape(_printable(text))


def _html_table(heads: list[str], rows: list[list[str]], colors: list[str]) -> str:
    """Returns a table as HTML. Long names break; times and their units do not."""
    broken = "text-align:left;overflow-wrap:anywhere;min-width:8em;max-width:24em"
    whole = "text-align:left;white-space:nowrap"
    styles = [broken if head in _LONG else whole for head in heads]
    head = "".join(f"<th style='text-align:left'>{_escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr style='border-left:4px solid {color}'>"
        + "".join(f"<td style='{style}'>{_escape(cell)}</td>" for cell, style in zip(row, styles, strict=True))
        + "</tr>"
        for row, color in zip(rows, colors, strict=True)
    )
    return (
        f"<div style='overflow-x:auto'><table style='margin-left:0'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


class Explanation:
    """The placement of a model: `print` it, or show it in a notebook. `report` has all of it, as
    `backplane explain --json` prints it."""

    def __init__(self, text: str) -> None:
        self.report: dict[str, Any] = json.loads(text)

    @property
    def devices(self) -> list[str]:
        """The devices that were queried, preferred first."""
        return cast("list[str]", self.report["devices"])

    @property
    def islands(self) -> list[dict[str, Any]]:
        """Sets of nodes that one device compiles and runs as one, in an order in which they can run."""
        return cast("list[dict[str, Any]]", self.report["islands"])

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """Every node, with `op_type`, `name`, `device` (None if no device supports it), `island`, `seconds` (expected), and
        `verdicts`: whether each device supports the node and, if not, why."""
        return cast("list[dict[str, Any]]", self.report["nodes"])

    @property
    def copies(self) -> list[dict[str, Any]]:
        """Values that are copied between devices."""
        return cast("list[dict[str, Any]]", self.report["copies"])

    @property
    def uncovered(self) -> list[dict[str, Any]]:
        """Nodes that no device supports. If there are any, the model cannot run."""
        return [self.nodes[index] for index in self.report["uncovered"]]

    @property
    def seconds(self) -> float:
        """The expected time of a run in seconds; 0 if unknown."""
        return float(self.report["seconds"])

    def why(self, node: dict[str, Any]) -> str:
        """Why a node of `nodes` is not on another device: its pin, and the reason of each device that does not support it."""
        pin = [f"pinned by {node['pin']}"] if node.get("pin") else []
        refusals = [verdict for verdict in node["verdicts"] if verdict["answer"] == "no"]
        return "; ".join(pin + [f"{verdict['device']}: {verdict['detail'] or verdict['reason']}" for verdict in refusals])

    def _rows(self) -> list[list[str]]:
        return [
            [
                str(node["index"]),
                node["op_type"],
                node["device"] or "none",
                "" if node["island"] is None else str(node["island"]),
                _time(node.get("seconds")),
                node["name"],
                self.why(node),
            ]
            for node in self.nodes[:_SHOWN]
        ]

    _heads = ["node", "operator", "device", "island", "time", *_LONG]

    def _summary(self) -> str:
        counts: dict[str, int] = {}
        for node in self.nodes:
            device = node["device"] or "no device"
            counts[device] = counts.get(device, 0) + 1
        where = ", ".join(f"{device}: {count}" for device, count in counts.items()) or "none"
        expected = f", expected {_time(self.seconds)}" if self.seconds else ""
        nodes, islands = _count(self.nodes, "node", "nodes"), _count(self.islands, "island", "islands")
        return _printable(f"{nodes} ({where}) in {islands}, {_count(self.copies, 'copy', 'copies')}{expected}")

    def _notes(self) -> list[str]:
        """Lines below the summary: whether the model can run, and the extents that the expected times assume."""
        lines = []
        if self.uncovered:
            lines.append(f"Cannot run: no device supports {len(self.uncovered)} of {_count(self.nodes, 'node', 'nodes')}")
        if self.report.get("assumed"):
            extents = ", ".join(f"{name} = {extent}" for name, extent in self.report["assumed"].items())
            lines.append(f"Assumed: {_printable(extents)}; choose with dims={{name: extent}}")
        return lines

    def _more(self) -> str:
        more = len(self.nodes) - _SHOWN
        return f"… and {more} more {'node' if more == 1 else 'nodes'}" if more > 0 else ""

    def __str__(self) -> str:
        parts = (self._summary(), *self._notes(), _text_table(self._heads, self._rows()), self._more())
        return "\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"Explanation({self._summary()})"

    def _repr_html_(self) -> str:
        color_of: dict[str | None, str] = {device: _COLORS[i % len(_COLORS)] for i, device in enumerate(self.devices)}
        if self.uncovered:
            color_of[None] = _NO_DEVICE
        colors = [color_of.get(node["device"], "#888") for node in self.nodes[:_SHOWN]]
        total = max(1, len(self.nodes))
        bar = "".join(
            f"<span title='{_escape(device or 'no device')}' style='display:inline-block;height:10px;background:{color};"
            f"width:{100 * sum(node['device'] == device for node in self.nodes) / total:.2f}%'></span>"
            for device, color in color_of.items()
        )
        legend = " ".join(
            f"<span style='color:{color}'>■</span> {_escape(device or 'no device')}" for device, color in color_of.items()
        )
        notes = "".join(f"<div>{_escape(line)}</div>" for line in self._notes())
        return (
            f"<div><b>{_escape(self._summary())}</b>{notes}<div style='width:100%;max-width:600px'>{bar}</div><div>{legend}</div>"
            f"{_html_table(self._heads, self._rows(), colors)}<div>{_escape(self._more())}</div></div>"
        )


class Profile:
    """Measured times of a model's nodes on each device, the slowest nodes first."""

    def __init__(self, report: dict[str, Any]) -> None:
        def slowest(node: dict[str, Any]) -> float:
            return max((verdict.get("seconds") or 0 for verdict in node["verdicts"]), default=0)

        self.report = report
        self.devices: list[str] = report["devices"]
        self.nodes: list[dict[str, Any]] = sorted(report["nodes"], key=slowest, reverse=True)

    def seconds(self, device: str) -> float:
        """The sum of the measured times of the nodes that a device supports."""
        verdicts = (verdict for node in self.nodes for verdict in node["verdicts"] if verdict["device"] == device)
        return math.fsum(verdict["seconds"] for verdict in verdicts if verdict.get("source") == "measured")

    def _rows(self) -> list[list[str]]:
        rows = []
        for node in self.nodes[:_SHOWN]:
            times = {verdict["device"]: verdict for verdict in node["verdicts"]}
            cells = []
            for device in self.devices:
                verdict = times.get(device, {})
                unmeasured = "" if verdict.get("source", "measured") == "measured" else f" ({verdict['source']})"
                cells.append(_time(verdict.get("seconds")) + unmeasured)
            rows.append([str(node["index"]), node["op_type"], *cells, node["name"]])
        return rows

    def __str__(self) -> str:
        return _text_table(["node", "operator", *self.devices, "name"], self._rows())

    def _summary(self) -> str:
        sums = ", ".join(f"{device}: {_time(self.seconds(device)) or 'nothing measured'}" for device in self.devices)
        return _printable(f"{_count(self.nodes, 'node', 'nodes')}; {sums}")

    def __repr__(self) -> str:
        return f"Profile({self._summary()})"

    def _repr_html_(self) -> str:
        rows = self._rows()
        table = _html_table(["node", "operator", *self.devices, "name"], rows, ["#888"] * len(rows))
        return f"<div><b>{_escape(self._summary())}</b>{table}</div>"


def profile(model: Model, **options: Any) -> Profile:
    """Implements `Model.profile`."""
    chosen = resolve(options.pop("options", None), options)
    settings = {**(chosen.settings or {}), "loader.costs": "measure"}
    return Profile(model.compile(chosen.replace(settings=settings, place_only=True)).explain().report)
