# SPDX-License-Identifier: Apache-2.0
"""Models of many nodes, values, weights, inputs and outputs. To compile them for a device may take no more than in proportion to these."""
from wire import *  # noqa: F403: this file uses several of its names


def relu(x, y):
    return node("Relu", [x], [y])


def long_graphs():
    """Yields (name, bytes, {options of Case})."""
    x, y = [value("x", FLOAT, [1])], [value("y")]
    many = 100000
    chain = [relu(f"v{i - 1}" if i else "x", f"v{i}" if i < many - 1 else "y") for i in range(many)]
    on_each = {"commands": (("run", "--device", "null"), ("run", "--device", "cpu"))}
    yield "chain", simple(chain, inputs=x, outputs=y), on_each
    few = 60000
    yield "outputs", simple([relu("x", f"y{i}") for i in range(few)], inputs=x, outputs=[value(f"y{i}") for i in range(few)]), on_each
    many_inputs = [value(f"x{i}", FLOAT, [1]) for i in range(few)]
    pairs = [relu(f"x{i}", f"y{i}") for i in range(few)]
    yield "pairs", simple(pairs, inputs=many_inputs, outputs=[value(f"y{i}") for i in range(few)]), on_each
    passed = many_inputs[: few // 2]  # all are printed
    yield "passed", simple([relu("x0", "y")], inputs=passed, outputs=[*passed, value("y")]), on_each
    sums = [node("Add", [f"s{i - 1}" if i else "x", f"w{i}"], [f"s{i}" if i < few - 1 else "y"]) for i in range(few)]
    yield "weights", simple(sums, inputs=x, outputs=y, initializers=[floats(f"w{i}", [1.0]) for i in range(few)]), on_each
    # All results of the first half are live until the second half has read them, in the same order and in the opposite one.
    for name, order in (("queue", range(few)), ("stack", range(few - 1, -1, -1))):
        live = [relu("x", f"v{i}") for i in range(few)]
        live += [node("Add", [f"s{k - 1}" if k else "x", f"v{i}"], [f"s{k}" if k < few - 1 else "y"]) for k, i in enumerate(order)]
        yield name, simple(live, inputs=x, outputs=y), on_each
    crossing = [node("Exp", ["x"], [f"a{i}"]) for i in range(few)] + [relu(f"a{i}", f"b{i}") for i in range(few)]
    crossing += [node("Sum", [f"b{i}" for i in range(few)], ["y"])]
    both = {"commands": (("run", "--device", "null,cpu", "--pin", "op=Relu=null", "--pin", "op=Exp=cpu"),)}
    yield "crossing", simple(crossing, inputs=x, outputs=y), both
