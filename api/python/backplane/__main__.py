# SPDX-License-Identifier: Apache-2.0
"""`python -m backplane`: some commands of the program `backplane`, for Python users who have not installed it.

Exit status: 0 for success, 1 for a negative result or a failure, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import zipfile
from collections.abc import Callable
from typing import Any

import backplane


def _printable(text: str) -> str:
    """Text of models and manifests, which are not trusted, without characters that control a terminal or hide text."""
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def _print(report: object, as_json: bool, text: Callable[[], str]) -> None:
    print(json.dumps(report, indent=2) if as_json else _printable(text()))


def _count(text: str) -> int:
    """A number above 0, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    devices = [name for name in (arguments.device or "").split(",") if name]
    pins = {}
    for pin in arguments.pin:
        pattern, found, device = pin.rpartition("=")
        if not found:
            raise SystemExit(_usage(f"--pin {pin}: it must be PATTERN=DEVICE"))
        pins[pattern] = device
    return {"devices": devices, "fallback": arguments.fallback, "pins": pins}


def _usage(text: str) -> int:
    print(f"backplane: {_printable(text)}", file=sys.stderr)
    return 2


def _inputs(session: backplane.Session, arguments: argparse.Namespace) -> dict[str, Any]:
    """The inputs from --input, and random values for the other inputs. Equal seeds yield equal values."""
    import numpy

    given: dict[str, Any] = {}
    names = [value.name for value in session.inputs]
    for text in arguments.input:
        name, found, file = text.partition("=")
        if not found:
            if len(names) != 1:
                raise SystemExit(_usage(f"--input {text}: the model has {len(names)} inputs, so it must be NAME=FILE"))
            name, file = names[0], text
        try:
            array = numpy.load(file)
        except (EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"'{file}' is not a .npy or .npz file: {error}") from error
        if isinstance(array, numpy.lib.npyio.NpzFile):
            given.update(array)
        else:
            given[name] = array
    extents: dict[str, int] = {}
    symbols = sorted({each for value in session.inputs for each in value.shape or () if isinstance(each, str)})
    for text in arguments.dim:
        name, _, extent = text.partition("=")
        if not extent.isdigit():
            raise SystemExit(_usage(f"--dim {text}: it must be NAME=EXTENT"))
        if name not in symbols:
            raise SystemExit(_usage(f"--dim {name}: the inputs have no dimension of that name; they have: {', '.join(symbols) or 'none'}"))
        extents[name] = int(extent)
    random = numpy.random.default_rng(arguments.seed)
    for value in session.inputs:
        if value.name in given:
            continue
        if value.kind != "tensor" or value.shape is None or value.dtype == "string":
            raise SystemExit(_usage(f"input '{value.name}' is {value.type}; only numeric tensors get random values: pass --input {value.name}=FILE"))
        shape = [each if isinstance(each, int) else extents.get(each or "", 1) for each in value.shape]
        is_float = value.dtype.startswith(("float", "bfloat", "complex"))
        array = random.standard_normal(shape) if is_float else random.integers(0, 2 if value.dtype in ("bool", "int2") else 10, shape)
        try:
            dtype = numpy.dtype(value.dtype)
        except TypeError:
            import ml_dtypes

            dtype = numpy.dtype(getattr(ml_dtypes, value.dtype))
        given[value.name] = array.astype(dtype)
        print(_printable(f"{value.name}: random, seed {arguments.seed}"), file=sys.stderr)
    return given


def _list(arguments: argparse.Namespace) -> int:
    environment = backplane.environment()
    report = environment.report()

    def text() -> str:
        lines = [f"{device.name:12} {device.kind:6} {device.description}" for device in environment.devices]
        refused = [candidate for candidate in environment.candidates if not candidate.accepted]
        return "\n".join(lines + [f"refused: {candidate.text}" for candidate in refused])

    _print(report, arguments.json, text)
    return 0 if environment.devices else 1


def _info(arguments: argparse.Namespace) -> int:
    model = backplane.load(arguments.model)
    report = model.report()

    def text() -> str:
        lines = [f"input   {value!r}" for value in model.inputs] + [f"output  {value!r}" for value in model.outputs]
        opsets = ", ".join(f"{domain} {version}" for domain, version in report["opsets"].items())
        operators = ", ".join(f"{name} {count}" for name, count in report["operators"].items())
        weights = report["weights"]
        lines += [f"opsets  {opsets}", f"nodes   {report['nodes']}: {operators}"]
        lines += [f"weights {weights['count']}, {weights['bytes']} bytes"]
        return "\n".join(lines + [f"problem {problem}" for problem in report["problems"]])

    _print(report, arguments.json, text)
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    explanation = backplane.load(arguments.model).explain(**_options(arguments))
    _print(explanation.report, arguments.json, lambda: str(explanation))
    return 1 if explanation.uncovered else 0


def _run(arguments: argparse.Namespace) -> int:
    import numpy

    session = backplane.load(arguments.model).compile(**_options(arguments))
    results = session.run(_inputs(session, arguments), timeout=arguments.timeout)
    report: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for name, value in results.items():
        report[name] = {"type": type(value).__name__}
        if isinstance(value, numpy.ndarray):
            first = [str(element) for element in value.ravel()[:8]]
            report[name] = {"dtype": str(value.dtype), "shape": list(value.shape), "first": first}
            if arguments.output:
                os.makedirs(arguments.output, exist_ok=True)
                stem = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:200]
                while stem in used:  # taken by another output: a/b and a_b have the same stem
                    stem += "_"
                used.add(stem)
                numpy.save(os.path.join(arguments.output, stem + ".npy"), value)

    def text() -> str:
        lines = []
        for name, value in report.items():
            lines.append(f"{name}: {value.get('dtype', value.get('type'))}{value.get('shape', '')} {' '.join(value.get('first', []))}")
        return "\n".join(lines)

    _print({"outputs": report}, arguments.json, text)
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    start = time.perf_counter()
    session = backplane.load(arguments.model).compile(**_options(arguments))
    created = time.perf_counter()
    run = session.bind(_inputs(session, arguments))
    run()
    first = time.perf_counter()
    times = []
    for _ in range(3 + arguments.runs):
        before = time.perf_counter()
        run()
        times.append((time.perf_counter() - before) * 1e3)
    times = sorted(times[3:])
    report = {
        "create_ms": (created - start) * 1e3,
        "first_ms": (first - created) * 1e3,
        "min_ms": times[0],
        "mean_ms": statistics.fmean(times),
        "median_ms": statistics.median(times),
        "p90_ms": times[int(0.9 * (len(times) - 1))],
        "islands": len(session.explain().islands),
        "runs": len(times),
    }
    _print(report, arguments.json, lambda: "\n".join(f"{name:10} {value:.6g}" for name, value in report.items()))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m backplane", description="Runs ONNX models on the devices of this machine.")
    parser.add_argument(
        "--version", action="version", version=f"backplane {backplane.__version__}, loader {backplane.loader_version()}, ABI {backplane.abi_version()}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, function: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--json", action="store_true", help="one JSON object on standard output")
        sub.set_defaults(function=function)
        return sub

    command("list", _list, "backends, devices, and why a candidate was refused")
    command("info", _info, "inputs, outputs, operators, problems").add_argument("model")
    for name, function, text in (
        ("explain", _explain, "which device runs which node, and why"),
        ("run", _run, "runs a model once"),
        ("bench", _bench, "runs a model often and measures"),
    ):
        sub = command(name, function, text)
        sub.add_argument("model")
        sub.add_argument("--device", metavar="NAME,…", help="the devices that may be used, preferred first")
        sub.add_argument("--fallback", choices=("allow", "prefer", "forbid"), default="allow")
        sub.add_argument("--pin", metavar="PATTERN=DEVICE", action="append", default=[], help="puts nodes on a device")
        if name == "explain":
            continue
        sub.add_argument("--input", metavar="NAME=FILE", action="append", default=[], help="an input from a .npy or .npz file")
        sub.add_argument("--dim", metavar="NAME=EXTENT", action="append", default=[], help="the extent of a named dimension; 1 by default")
        sub.add_argument("--seed", type=int, default=1, help="for the inputs that are not given")
        if name == "run":
            sub.add_argument("--output", metavar="FOLDER", help="where outputs are written as .npy")
            sub.add_argument("--timeout", type=float, help="in seconds")
        else:
            sub.add_argument("--runs", type=_count, default=50)
    return parser


def main(words: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    arguments = _parser().parse_args(words)
    try:
        return arguments.function(arguments)
    except (backplane.Error, MemoryError, OSError, ValueError, TypeError) as error:
        status = error.status if isinstance(error, backplane.Error) else "failure"
        if arguments.json:
            print(json.dumps({"error": {"status": status, "text": str(error)}}))
        else:
            print(f"backplane: {_printable(str(error))}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
