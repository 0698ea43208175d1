# SPDX-License-Identifier: Apache-2.0
"""Models of many nodes, values, weights, inputs, outputs, keys and elements. To compile them for a device may take no more than in proportion to these."""
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
    # Each body is queried for coverage too. An isolated backend must not be sent the whole graph for each body.
    bodies = [[of_graph(graph([node(op, ["x"], [f"{op}{i}"])], [], [value(f"{op}{i}")])) for op in ("Neg", "Abs")] for i in range(few // 3)]
    branches = [node("If", ["c"], [f"b{i}"], then_branch=one, else_branch=other) for i, (one, other) in enumerate(bodies)]
    branches += [node("Sum", [f"b{i}" for i in range(few // 3)], ["y"])]
    isolated = {"commands": (("run", "--device", "cpu"), ("run", "--device", "cpu", "--set", "loader.isolate=cpu"))}
    yield "bodies", simple(branches, inputs=[*x, value("c", 9, [])], outputs=y), isolated
    crossing = [node("Exp", ["x"], [f"a{i}"]) for i in range(few)] + [relu(f"a{i}", f"b{i}") for i in range(few)]
    crossing += [node("Sum", [f"b{i}" for i in range(few)], ["y"])]
    both = {"commands": (("run", "--device", "null,cpu", "--pin", "op=Relu=null", "--pin", "op=Exp=cpu"),)}
    yield "crossing", simple(crossing, inputs=x, outputs=y), both


def changing_values():
    """Keys with the same place in a hash table that is not keyed, long sequences that change at the front, and a match that nothing interrupts."""
    on_cpu = {"commands": (("run", "--device", "cpu"),)}
    many, some = 200000, 20000
    construct = node("SequenceConstruct", ["x"] * many, ["s"])
    length = node("SequenceLength", [f"t{some - 1}"], ["y"])
    for op, more in (("Erase", []), ("Insert", ["x"])):
        changes = [node(f"Sequence{op}", [f"t{i - 1}" if i else "s", *more, "p"], [f"t{i}"]) for i in range(some)]
        yield f"sequence_{op}", simple([construct, *changes, length], initializers=[int64s("p", [0], [])]), on_cpu
    # libstdc++'s table of 100,000 numbers has 172,933 buckets.
    keys = [i * 172933 for i in range(100000)]
    x = [value("x", INT64, [1])]
    grams = {"pool_int64s": keys, "ngram_counts": [0], "ngram_indexes": [0] * len(keys), "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "mode": "TF"}
    yield "grams", simple([node("TfIdfVectorizer", ["x"], ["y"], **grams)], inputs=x), on_cpu
    one_hot = node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_int64s=keys)
    yield "one_hot", simple([one_hot], inputs=x, opsets=[(17, ""), (3, "ai.onnx.ml")]), on_cpu
    repeated = node("RegexFullMatch", ["x"], ["y"], pattern="a{0,1000}" * 300)
    yield "match", simple([node("StringConcat", ["a", "a"], ["x"]), repeated], initializers=[tensor("a", 8, [1], extra=field(6, "a" * 25000))], opsets=[(20, "")]), {**on_cpu, "fails": True}
