# SPDX-License-Identifier: Apache-2.0
"""Hostile files by class: what an attacker can put into a model, its data and the inputs of a run.

Each function with @family("class") yields (name, bytes) or (name, bytes, {options of Case}). Run as
"corpus.py FOLDER REGEX", this writes one case whose "class/name" matches REGEX into FOLDER for each line on its standard input, and prints
a line of JSON with the case's path and commands. With --seeds it writes all matching files of at most 16 KB as CLASS.NAME.onnx, as seeds
for a fuzzer.

With these sizes, a loader that does what the file requests needs gigabytes or minutes; a loader with limits needs neither.
"""
import dataclasses
import json
import os
import random
import re
import struct
import sys

from long_graphs import changing_values, long_graphs
from wire import *  # noqa: F403: this file uses most of its names


@dataclasses.dataclass
class Case:
    family: str
    name: str
    content: bytes
    commands: tuple = (("info",), ("run", "--device", "cpu"))  # of each, the first word goes before the model
    files: dict = dataclasses.field(default_factory=dict)  # next to the model; a number stands for that many zero bytes
    links: dict = dataclasses.field(default_factory=dict)  # symbolic links next to the model: name and target
    fails: bool = False  # every command must end with status 1 or 2


FAMILIES = []
INFO = (("info",),)
RUN = (("run", "--device", "cpu"),)
EXPLAIN = (("explain", "--device", "cpu"),)


def family(name):
    def add(make):
        FAMILIES.append((name, make))
        return make

    return add


def cases():
    for name, make in FAMILIES:
        for made in make():
            yield Case(name, made[0], made[1], **(made[2] if len(made) > 2 else {}))


def relu(x="x", y="y"):
    return node("Relu", [x], [y])


# ---- memory: a few bytes that request much memory ----


@family("memory.sparse")
def sparse_tensors():
    for dtype, width in ((FLOAT, 4), (DOUBLE, 8), (FLOAT16, 2), (BOOL, 1)):
        big = (1 << 30) // width

        def one(name, dims, dtype=dtype, width=width):
            return sparse(tensor(name, dtype, [0], b""), int64s("", []), dims)

        head = graph([relu()], [value("x", FLOAT, [2])], [value("y")])
        many = b"".join(field(15, one(f"s{i}", [big])) for i in range(12))
        yield f"initializers_{dtype}", model(head + many)
        square = b"".join(field(15, one(f"s{i}", [1 << 14, big >> 14])) for i in range(12))
        yield f"squares_{dtype}", model(head + square)
        nodes = [node("Constant", [], [f"c{i}"], sparse_value=number(20, 11) + field(22, one("", [big]))) for i in range(12)]
        yield f"constants_{dtype}", simple(nodes + [relu()])


@family("memory.functions")
def functions():
    names = [f"v{i}" for i in range(20000)]
    wide = function("F", ["x"], ["y"], [node("Split", ["x"], names), relu()])
    calls = [node("F", [f"x{i}" if i else "x"], [f"x{i + 1}"], domain="fn") for i in range(3000)]
    yield "values", simple(calls, outputs=[value("x3000")], functions=[wide])
    body = [node("Resize", ["x"], ["y"], axes=list(range(100)) * 4000)]
    yield "attributes", simple(calls, outputs=[value("x3000")], functions=[function("F", ["x"], ["y"], body)])
    body = [node("Sum", ["x"] * 100000, ["y"])]
    yield "operands", simple(calls, outputs=[value("x3000")], functions=[function("F", ["x"], ["y"], body)])
    body = [node("Relu", ["x"], ["t" * 2000000]), relu("t" * 2000000)]
    yield "names", simple(calls, outputs=[value("x3000")], functions=[function("F", ["x"], ["y"], body)])
    named = [node("F", [f"x{i}" if i else "x"], [f"x{i + 1}"], domain="fn", name="n" * 2000) for i in range(3000)]
    body = [node("Relu", [f"a{i}" if i else "x"], [f"a{i + 1}" if i < 299 else "y"]) for i in range(300)]
    yield "node_names", simple(named, outputs=[value("x3000")], functions=[function("F", ["x"], ["y"], body)])
    strings = [node("StringNormalizer", ["x"], ["y"], stopwords=["s" * 50] * 20000)]
    yield "strings", simple(calls, outputs=[value("x3000")], functions=[function("F", ["x"], ["y"], strings)])
    inner = graph([relu(f"w{i}", f"r{i}") for i in range(3000)], [], [value("r0")], [floats(f"w{i}", [1]) for i in range(3000)])
    body = [constant("c", tensor("", BOOL, [], b"\1")), node("If", ["c"], ["y"], then_branch=of_graph(inner), else_branch=of_graph(inner))]
    yield "branches", simple(calls, outputs=[value("x3000")], functions=[function("F", ["x"], ["y"], body)])
    for levels in (16, 30, 63):
        tower = [
            function(f"F{i}", ["x"], ["y"], [node(f"F{i + 1}", ["x"], ["t"], domain="fn"), node(f"F{i + 1}", ["t"], ["y"], domain="fn")])
            for i in range(levels)
        ]
        tower.append(function(f"F{levels}", ["x"], ["y"], [relu()]))
        yield f"doubling_{levels}", simple([node("F0", ["x"], ["y"], domain="fn")], functions=tower)
    long = "d" * 100000
    deep = [function(f"F{i}", ["x"], ["y"], [node(f"F{i + 1}", ["x"], ["y"], domain="fn", name=long)]) for i in range(60)]
    deep.append(function("F60", ["x"], ["y"], [node("Relu", ["x"], ["y"], name=long)]))
    many = [node("F0", ["x"], [f"y{i}"], domain="fn") for i in range(100)]
    yield "nested_names", simple(many, outputs=[value("y0")], functions=deep)


@family("memory.folding")
def folding():
    ones = constant("a0", int64s("", [1] * 1024))
    for name, op in (("add", "Add"), ("multiply", "Mul"), ("concat", "Concat")):
        size = 40000
        more = {"axis": 0} if op == "Concat" else {}
        nodes = [ones, constant("b", int64s("", [1] * 1024 if op != "Concat" else []))]
        nodes += [node(op, [f"a{i}", "b"], [f"a{i + 1}"], **more) for i in range(size)]
        yield f"chain_{name}", simple(nodes, outputs=[value(f"a{size}")]), {"commands": INFO}
    nodes = [constant("n", int64s("", [1024]))] + [node("ConstantOfShape", ["n"], [f"a{i}"], value=of_tensor(int64s("", [7]))) for i in range(60000)]
    nodes += [node("Identity", [f"a{i}"], [f"y{i}"]) for i in range(2)]
    yield "fills", simple(nodes, outputs=[value("y0")]), {"commands": INFO}
    nodes = [constant("n", int64s("", [1024], [])), constant("o", int64s("", [1], [])), constant("z", int64s("", [0], []))]
    nodes += [node("Range", ["z", "n", "o"], [f"a{i}"]) for i in range(60000)]
    yield "ranges", simple(nodes + [node("Identity", ["a0"], ["y"])]), {"commands": INFO}
    nodes = [ones, node("Concat", ["a0"] * 300000, ["y"], axis=0)]
    yield "concat", simple(nodes), {"commands": INFO}
    nodes = [ones, node("Sum", ["a0"] * 300000, ["y"])]
    yield "sum", simple(nodes), {"commands": INFO}
    nodes = [ones] + [node("Shape", ["a0"], [f"y{i}"]) for i in range(100000)]
    yield "shapes", simple(nodes, outputs=[value("y0")]), {"commands": INFO}
    count = node("Shape", ["x"], ["n"])
    for op in ("Add", "Mul", "Max", "Div"):
        steps = [node(op, [f"a{i}" if i else "n", "k"], [f"a{i + 1}"]) for i in range(4000)]
        more = {"inputs": [value("x", FLOAT, ["N"])], "initializers": [int64s("k", list(range(1, 1025)))]}
        yield f"symbols_{op.lower()}", simple([count] + steps, outputs=[value("a4000")], **more), {"commands": INFO}
    nodes = [constant("n", int64s("", [1 << 24]))] + [node("ConstantOfShape", ["n"], [f"a{i}"]) for i in range(200)]
    nodes.append(node("Sum", [f"a{i}" for i in range(200)], ["y"]))
    yield "big_fills", simple(nodes), {"commands": EXPLAIN}


@family("memory.messages")
def messages():
    """Many objects that take two bytes of the file each."""
    empty = 1000000
    head = graph([relu()], [value("x", FLOAT, [2])], [value("y")])
    for tag, name in ((1, "nodes"), (5, "initializers"), (11, "inputs"), (12, "outputs"), (13, "value_infos"), (14, "annotations"), (15, "sparse"), (16, "metadata")):
        yield f"graph_{name}", model(head + field(tag, b"") * empty), {"commands": INFO}
    for tag, name in ((8, "opsets"), (14, "metadata"), (20, "training_info"), (25, "functions"), (26, "configurations"), (99, "unknown")):
        yield f"model_{name}", model(head) + field(tag, b"") * (3 * empty if tag == 20 else empty), {"commands": INFO}
    for tag, name in ((5, "tensor"), (6, "graph"), (9, "strings"), (10, "tensors"), (11, "graphs"), (14, "type"), (15, "types"), (22, "sparse"), (23, "sparses")):
        bomb = node("Bomb", ["x"], ["y"], domain="fn", a=field(tag, b"") * empty)
        yield f"attribute_{name}", simple([bomb]), {"commands": INFO}
    for tag, name in ((1, "inputs"), (2, "outputs"), (5, "attributes")):
        yield f"node_{name}", simple([node("Bomb", ["x"], ["y"], domain="fn") + field(tag, b"") * empty]), {"commands": INFO}
    for tag, name in ((4, "inputs"), (5, "outputs"), (6, "attributes"), (7, "nodes"), (9, "opsets"), (11, "defaults"), (12, "values")):
        bomb = function("F", ["x"], ["y"], [relu()], extra=field(tag, b"") * empty)
        yield f"function_{name}", simple([node("F", ["x"], ["y"], domain="fn")], functions=[bomb]), {"commands": INFO}
    bomb = node("Bomb", ["x"], ["y"], domain="fn", a=number(20, 7) + field(8, bytes(4 * empty)))
    yield "packed_ints", simple([bomb]), {"commands": INFO}
    yield "packed_dims", simple([relu()], initializers=[tensor("w", FLOAT, []) + field(1, bytes(4 * empty))]), {"commands": INFO}
    yield "packed_data", simple([relu()], initializers=[tensor("w", INT64, [4 * empty]) + field(7, bytes(4 * empty))]), {"commands": INFO}
    yield "strings", simple([relu()], initializers=[tensor("w", STRING, [empty]) + field(6, b"") * empty]), {"commands": INFO}
    yield "dims", simple([relu()], inputs=[field(1, "x") + field(2, field(1, number(1, 1) + field(2, field(1, b"") * empty)))]), {"commands": INFO}


@family("memory.containers")
def containers():
    """Values of a few bytes that share elements: the copy that becomes the result has each of them many times."""
    bounded = ("run", "--device", "cpu", "--set", "cpu.max_bytes=200000000")
    fails = {"commands": (bounded,), "fails": True}
    for depth, width in ((3, 100), (8, 10), (20, 10), (29, 20)):
        nodes = [node("SequenceConstruct", ["x"] * width, ["s0"])]
        for i in range(depth):  # s[i + 1] is a sequence with s[i] for each element of s0
            body = graph([node("Identity", [f"s{i}"], ["r"])], [value("e")], [value("r")])
            nodes.append(node("SequenceMap", ["s0"], [f"s{i + 1}"], body=of_graph(body)))
        yield f"nested_{depth}_{width}", simple(nodes, outputs=[value(f"s{depth}")]), fails
    large = node("ConstantOfShape", ["four_million"], ["large"])
    sizes = [int64s("four_million", [4000000]), int64s("rounds", [400], []), int64s("zero", [0], [])]
    sequence = field(1, "s") + field(2, field(4, field(1, tensor_type(FLOAT))))
    inputs = [value("i", INT64, []), value("c", BOOL, []), sequence]
    grown = [node("Identity", ["c"], ["d"]), node("SequenceAt", ["s", "zero"], ["e"]), node("SequenceInsert", ["s", "e"], ["t"])]
    body = graph(grown, inputs, [value("d"), value("t")])
    loop = [large, node("SequenceConstruct", ["large"], ["s0"]), node("Loop", ["rounds", "", "s0"], ["y"], body=of_graph(body))]
    yield "loop", simple(loop, initializers=sizes), fails
    body = graph([node("Identity", ["large"], ["r"])], [value("e")], [value("r")])
    mapped = [large, node("SequenceConstruct", ["x"] * 400, ["s0"]), node("SequenceMap", ["s0"], ["y"], body=of_graph(body))]
    yield "map", simple(mapped, initializers=sizes), fails
    table = [node("Expand", ["x", "n"], ["table"]), node("ZipMap", ["table"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a" * 100000] * 100)]
    yield "labels", simple(table, inputs=[value("x", FLOAT, [1])], initializers=[int64s("n", [2000, 100])], opsets=[(17, ""), (3, "ai.onnx.ml")]), fails


@family("memory.texts")
def texts():
    long = "k" * 1000000
    pairs = b"".join(field(14, field(1, f"k{i}") + field(2, "v")) for i in range(10000))
    yield "metadata_key", simple([relu()], extra=field(14, field(1, long) + field(2, "v")) + pairs)
    nodes = [node(long, ["x"], ["y"], domain="fn")] + [node(f"Op{i}", ["x"], [f"y{i}"], domain="fn") for i in range(5000)]
    yield "operators", simple(nodes)
    yield "inputs", simple([relu()], inputs=[value("x", FLOAT, [2])] + [value(f"i{i}", FLOAT, [2]) for i in range(5000)] + [value(long, FLOAT, [2])])
    for i, field_number in enumerate((2, 3, 4, 6)):
        yield f"header_{i}", simple([relu()], extra=field(field_number, long))
    yield "operator", simple([node(long, ["x"], ["y"])]), {"fails": True}
    yield "domain", simple([node("Relu", ["x"], ["y"], domain=long)]), {"fails": True}
    yield "node", simple([node("Relu", ["x", "x"], ["y"], name=long)]), {"fails": True}
    yield "attribute", simple([node("Relu", ["x"], ["y"], **{long: 1})]), {"fails": True}
    yield "value", simple([relu(long)]), {"fails": True}
    yield "graph", simple([relu("z")], name=long), {"fails": True}
    yield "output", simple([relu()], outputs=[value(long)]), {"fails": True}
    yield "symbol", simple([node("Reshape", ["x", "s"], ["y"])], inputs=[value("x", FLOAT, [long]), value("s", INT64, [1])])
    nodes = [node("Relu", [f"a{i}" if i else "x"], [f"a{i + 1}"]) for i in range(2000)]
    yield "symbols", simple(nodes, inputs=[value("x", FLOAT, [long[:50000], long[:60000]])], outputs=[value("a2000")])
    unknown = "".join(chr(0x4E00 + i % 2000) for i in range(300000))
    yield "wide_characters", simple([node(unknown, ["x"], ["y"])]), {"fails": True}


# ---- depth ----


def nested_if(depth):
    body = graph([relu("x", "r0")], [], [value("r0")])
    for i in range(1, depth):
        body = graph([node("If", ["c"], [f"r{i}"], then_branch=of_graph(body), else_branch=of_graph(body if i < 2 else graph([relu("x", "q")], [], [value("q")])))], [], [value(f"r{i}")])
    last = node("If", ["c"], ["y"], then_branch=of_graph(body), else_branch=of_graph(graph([relu("x", "q")], [], [value("q")])))
    return simple([last], inputs=[value("x", FLOAT, [2]), value("c", BOOL, [])])


@family("depth.graphs")
def deep_graphs():
    for depth in (8, 16, 24, 32, 33, 48, 64, 65, 500, 3000):
        yield f"if_{depth}", nested_if(depth)
    for depth in (8, 31, 63, 1000):
        body = graph([relu("x", "r0")], [], [value("r0")])
        for i in range(depth):
            body = graph([node("Bomb", ["x"], [f"r{i + 1}"], domain="fn", g=of_graph(body))], [], [value(f"r{i + 1}")])
        yield f"foreign_{depth}", simple([node("Bomb", ["x"], ["y"], domain="fn", g=of_graph(body))])
    for depth in (4, 31):
        body = graph([relu("s", "t")], [value("i"), value("c"), value("s")], [value("c"), value("t")])
        for i in range(depth):
            loop = node("Loop", ["n", "", "s"], ["t"], body=of_graph(body))
            body = graph([loop], [value("i"), value("c"), value("s")], [value("c"), value("t")])
        loop = node("Loop", ["n", "", "x"], ["y"], body=of_graph(body))
        yield f"loop_{depth}", simple([loop], initializers=[int64s("n", [1], [])])
    raw = b""
    for _ in range(20000):
        raw = field(1, field(5, field(6, raw)))
    yield "raw_20000", model(raw), {"fails": True}


@family("depth.functions")
def deep_functions():
    for levels, ifs in ((4, 4), (8, 8), (10, 3), (16, 16), (31, 1), (32, 31), (40, 2), (63, 1), (64, 62), (64, 0), (100, 5)):
        made = []
        for i in range(levels):
            body = [node(f"F{i + 1}", ["x"], ["r0"], domain="fn")]
            for k in range(ifs):
                branch = of_graph(graph(body, [], [value(f"r{k}")]))
                body = [node("If", ["c"], [f"r{k + 1}"], then_branch=branch, else_branch=of_graph(graph([relu("x", "q")], [], [value("q")])))]
            body.append(node("Identity", [f"r{ifs}"], ["y"]))
            made.append(function(f"F{i}", ["x"], ["y"], [constant("c", tensor("", BOOL, [], b"\1"))] + body))
        made.append(function(f"F{levels}", ["x"], ["y"], [relu()]))
        yield f"{levels}_of_{ifs}", simple([node("F0", ["x"], ["y"], domain="fn")], functions=made)
    itself = function("F", ["x"], ["y"], [node("F", ["x"], ["y"], domain="fn")])
    yield "itself", simple([node("F", ["x"], ["y"], domain="fn")], functions=[itself]), {"fails": True}
    pair = [function("A", ["x"], ["y"], [node("B", ["x"], ["y"], domain="fn")]), function("B", ["x"], ["y"], [node("A", ["x"], ["y"], domain="fn")])]
    yield "each_other", simple([node("A", ["x"], ["y"], domain="fn")], functions=pair), {"fails": True}


@family("depth.types")
def deep_types():
    for depth in (4, 31, 63, 64, 1000, 50000):
        for kind, tag in (("sequence", 4), ("optional", 9)):
            inner = tensor_type(FLOAT, [2])
            for _ in range(depth):
                inner = field(tag, field(1, inner))
            yield f"{kind}_{depth}", simple([relu()], inputs=[value("x", FLOAT, [2]), field(1, "s") + field(2, inner)])
    inner = tensor_type(FLOAT)
    for _ in range(2000):
        inner = field(5, number(1, INT64) + field(2, inner))
    yield "map_2000", simple([relu()], inputs=[value("x", FLOAT, [2]), field(1, "m") + field(2, inner)]), {"fails": True}
    inner = tensor_type(FLOAT)
    for _ in range(60):
        inner = field(4, field(1, inner))
    attribute_type = number(20, 13) + field(14, inner)
    yield "attribute", simple([node("Optional", [], ["o"], type=attribute_type), relu()])


@family("depth.chains")
def chains():
    for depth in (20, 40, 5000):
        nodes = [node("SequenceConstruct", ["x"], ["s0"])]
        for i in range(depth):  # s[i + 1] is a sequence with s[i] for each element of s0
            body = graph([node("Identity", [f"s{i}"], ["r"])], [value("e")], [value("r")])
            nodes.append(node("SequenceMap", ["s0"], [f"s{i + 1}"], body=of_graph(body)))
        yield f"types_{depth}", simple(nodes, outputs=[value(f"s{depth}")]), {"commands": INFO}
    long = 20000
    yield "relu", simple([node("Relu", [f"a{i}" if i else "x"], [f"a{i + 1}"]) for i in range(long)], outputs=[value(f"a{long}")]), {"commands": INFO}
    yield "identity", simple([node("Identity", [f"a{i}" if i else "x"], [f"a{i + 1}"]) for i in range(long)], outputs=[value(f"a{long}")]), {"commands": INFO}
    yield "backwards", simple([node("Relu", [f"a{i}" if i else "x"], [f"a{i + 1}"]) for i in reversed(range(long))], outputs=[value(f"a{long}")]), {"commands": INFO}
    ring = [node("Relu", [f"a{i}"], [f"a{(i + 1) % long}"]) for i in range(long)]
    yield "ring", simple(ring, outputs=[value("a0")]), {"fails": True}
    for op in ("Div", "Mul", "Add", "Sub", "Min", "Max", "Mod"):
        nodes = [node("Shape", ["x"], ["a0"])] + [node(op, [f"a{i}", "two" if i % 2 else "a0"], [f"a{i + 1}"]) for i in range(5000)]
        nodes += [node("ConstantOfShape", ["a5000"], ["y"])]
        yield f"extents_{op.lower()}", simple(nodes, inputs=[value("x", FLOAT, ["N"])], initializers=[int64s("two", [2])]), {"commands": INFO}
    nodes = [node("SequenceConstruct", ["x"], ["a0"])] + [node("SequenceInsert", [f"a{i}", "x"], [f"a{i + 1}"]) for i in range(3000)]
    yield "sequence", simple(nodes, outputs=[value("a3000")]), {"commands": INFO}


# ---- time ----


@family("time.quadratic")
def quadratic():
    many = 100000
    yield "metadata", simple([relu()], extra=b"".join(field(14, field(1, f"key{i}") + field(2, "v")) for i in range(many)))
    yield "metadata_twins", simple([relu()], extra=field(14, field(1, "key") + field(2, "v")) * many)
    yield "opsets", simple([relu()], opsets=[(17, "")] + [(1, f"domain{i}") for i in range(many)])
    operators = [node(f"Op{i}", ["x"], [f"y{i}"], domain="fn") for i in range(30000)]
    yield "operators", simple(operators, outputs=[value("y0")]), {"commands": INFO}
    yield "twin_inputs", simple([relu()], inputs=[value("x", FLOAT, [2])] * many), {"fails": True}
    yield "twin_initializers", simple([relu()], initializers=[floats("w", [1])] * many), {"fails": True}
    yield "twin_outputs", simple([relu()], outputs=[value("y")] * 20000), {"commands": INFO}
    yield "unread_inputs", simple([relu()], inputs=[value("x", FLOAT, [2])] + [value(f"x{i}", FLOAT, [2]) for i in range(many)]), {"commands": INFO}
    yield "attributes", simple([node("Bomb", ["x"], ["y"], domain="fn", **{f"a{i}": 1 for i in range(many)})]), {"commands": INFO}
    yield "operands", simple([node("Sum", ["x"] * many, ["y"])]), {"commands": INFO}
    yield "results", simple([node("Split", ["x"], [f"y{i}" for i in range(20000)], axis=0)], outputs=[value("y0")]), {"commands": INFO}
    yield "deprecated", simple([node("Upsample", ["x", "s"], [f"y{i}"]) for i in range(20000)], inputs=[value("x", FLOAT, [2]), value("s", FLOAT, [1])], outputs=[value("y0")], opsets=[(10, "")]), {"commands": INFO}
    default = graph([relu("x", "r")], [value("d", FLOAT, [1])], [value("r")], [floats("d", [1])])
    nodes = [node("If", ["c"], [f"y{i}"], then_branch=of_graph(default), else_branch=of_graph(default)) for i in range(5000)]
    yield "problems", simple(nodes, inputs=[value("x", FLOAT, [2]), value("c", BOOL, [])], outputs=[value("y0")]), {"commands": INFO}
    body = graph([node("Sum", [f"w{i}" for i in range(2000)], ["r"])], [], [value("r")])
    nodes = [node("If", ["c"], [f"y{i}"], then_branch=of_graph(body), else_branch=of_graph(body)) for i in range(100)]
    yield "captures", simple(nodes, inputs=[value("c", BOOL, [])], outputs=[value("y0")], initializers=[floats(f"w{i}", [1]) for i in range(2000)]), {"commands": INFO}
    yield "symbols", simple([relu()], inputs=[value("x", FLOAT, [f"n{i}" for i in range(8)])] + [value(f"x{k}", FLOAT, [f"m{k}", f"o{k}"]) for k in range(30000)]), {"commands": INFO}
    many_functions = [function(f"F{i}", ["x"], ["y"], [relu()]) for i in range(20000)]
    yield "functions", simple([node(f"F{i}", ["x"], [f"y{i}"], domain="fn") for i in range(20000)], outputs=[value("y0")], functions=many_functions), {"commands": INFO}
    one = function("F", ["x"], ["y"], [relu()])
    yield "calls", simple([node("F", ["x"], [f"y{i}"], domain="fn") for i in range(30000)], outputs=[value("y0")], functions=[one]), {"commands": INFO}
    wide = function("F", [f"x{i}" for i in range(3000)], [f"y{i}" for i in range(3000)], [relu(f"x{i}", f"y{i}") for i in range(3000)])
    call = node("F", ["x"] * 3000, [f"z{i}" for i in range(3000)], domain="fn")
    call = node("F", ["x"] * 30000, [f"z{i}" for i in range(30000)], domain="fn")
    wider = function("F", [f"x{i}" for i in range(30000)], [f"y{i}" for i in range(30000)], [relu(f"x{i}", f"y{i}") for i in range(30000)])
    yield "wider_function", simple([call], outputs=[value(f"z{i}") for i in range(30000)], functions=[wider]), {"commands": INFO}
    defaults = b"".join(field(11, attribute(f"a{i}", 1)) for i in range(10000))
    references = b"".join(field(5, field(1, f"b{i}") + number(20, 2) + field(21, f"a{9999 - i}")) for i in range(10000))
    given = function("F", ["x"], ["y"], [node("Bomb", ["x"], ["y"], domain="fn") + references], extra=defaults)
    calls = [node("F", ["x"], [f"y{i}"], domain="fn") for i in range(50)]
    yield "defaults", simple(calls, outputs=[value("y0")], functions=[given]), {"commands": INFO}
    call = node("F", ["x"] * 3000, [f"z{i}" for i in range(3000)], domain="fn")
    yield "wide_function", simple([call], outputs=[value(f"z{i}") for i in range(3000)], functions=[wide]), {"commands": INFO}
    nodes = [node("Gradient", ["x"], [f"g{i}"], domain="ai.onnx.preview.training", xs=["x"], y="y") for i in range(3000)]
    yield "gradients", simple([relu()] + nodes, outputs=[value("g0")], opsets=[(17, ""), (1, "ai.onnx.preview.training")]), {"commands": INFO}
    consumers = [relu("x", f"y{i}") for i in range(20000)]
    yield "readers", simple(consumers, outputs=[value(f"y{i}") for i in range(20000)]), {"commands": INFO}
    twins = [relu("x", "y")] * 20000
    yield "twin_makers", simple(twins), {"fails": True}
    wrong = [node("Reshape", ["x", "s"], [f"y{i}"]) for i in range(10000)]
    infos = b"".join(field(13, value(f"y{i}", FLOAT, [7, 7])) for i in range(10000))
    yield "contradictions", model(graph(wrong, [value("x", FLOAT, [6])], [value("y0")], [int64s("s", [2, 3])]) + infos), {"commands": INFO}


family("time.compiling")(long_graphs)
family("time.values")(changing_values)


@family("time.endless")
def endless():
    stop = ("run", "--device", "cpu", "--timeout", "1")
    body = graph([node("Add", ["s", "s"], ["t"]), node("Identity", ["c"], ["d"])], [value("i", INT64, []), value("c", BOOL, []), value("s", FLOAT, [2, 3])], [value("d"), value("t")])
    loop = node("Loop", ["n", "", "x"], ["y"], body=of_graph(body))
    yield "loop", simple([loop], initializers=[int64s("n", [1 << 62], [])]), {"commands": (stop,), "fails": True}
    scanned = graph([node("Add", ["s", "s"], ["t"]), node("Identity", ["t"], ["u"]), node("Identity", ["c"], ["d"])], [value("i", INT64, []), value("c", BOOL, []), value("s", FLOAT, [2, 3])], [value("d"), value("t"), value("u")])
    loop = node("Loop", ["n", "", "x"], ["z", "y"], body=of_graph(scanned))
    yield "scanned_loop", simple([loop], initializers=[int64s("n", [1 << 62], [])]), {"commands": (stop,), "fails": True}
    inner = graph([node("Loop", ["n", "", "s"], ["t"], body=of_graph(body)), node("Identity", ["c"], ["d"])], [value("i", INT64, []), value("c", BOOL, []), value("s", FLOAT, [2, 3])], [value("d"), value("t")])
    yield "loop_in_loop", simple([node("Loop", ["n", "", "x"], ["y"], body=of_graph(inner))], initializers=[int64s("n", [1 << 20], [])]), {"commands": (stop,), "fails": True}


@family("time.kernels")
def kernels():
    """Much arithmetic requested by a few bytes, most of it while constants are folded, and tensors of 2^40 rows without elements."""

    def on_empty(op, *more, outputs=1, **attributes):
        fill = [constant("n", int64s("", [1 << 40, 0])), node("ConstantOfShape", ["n"], ["e"])]
        results = ["y"] + [f"z{i}" for i in range(1, outputs)]
        return simple(fill + [node(op, ["e", *more], results, **attributes)], initializers=[int64s("k", [0], []), int64s("k1", [0]), int64s("n1", [1])])

    for op in ("Relu", "Exp", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "Flatten", "Shape", "Identity", "ReduceSum", "ReduceMax", "ArgMax", "Transpose", "NonZero"):
        yield f"empty_{op}", on_empty(op), {"commands": RUN}
    for op, more in (("Trilu", ()), ("CumSum", ("k",)), ("TopK", ("k1",)), ("Gather", ("k1",)), ("Add", ("e",)), ("MatMul", ("e",)), ("Slice", ("k1", "n1")), ("Tile", ("n",))):
        yield f"empty_{op}", on_empty(op, *more, outputs=2 if op == "TopK" else 1), {"commands": RUN}
    yield "empty_Concat", on_empty("Concat", "e", axis=0), {"commands": RUN}
    yield "empty_Split", on_empty("Split", outputs=2, num_outputs=2, axis=0), {"commands": RUN}
    sizes = {"fold_Einsum": (node("Einsum", ["a", "b", "c"], ["y"], equation="ij,kl,mn->"), [256, 256]), "fold_MatMul": (node("MatMul", ["a", "b"], ["y"]), [1 << 13, 1 << 13])}
    for name, (last, dims) in sizes.items():
        fills = [constant("n", int64s("", dims))] + [node("ConstantOfShape", ["n"], [x]) for x in "abc"]
        yield name, simple(fills + [last]), {"commands": (("run", "--device", "cpu", "--timeout", "3"),)}
    fft = [constant("n", int64s("", [1, 1000003, 1])), node("ConstantOfShape", ["n"], ["a"]), node("DFT", ["a"], ["y"])]
    yield "dft_prime", simple(fft, opsets=[(20, "")]), {"commands": RUN}
    pads = [constant("n", int64s("", [1])), node("ConstantOfShape", ["n"], ["a"]), node("Pad", ["a", "p"], ["y"])]
    yield "pad", simple(pads, initializers=[int64s("p", [0, (1 << 31) - 1])]), {"commands": (("run", "--device", "cpu", "--set", "cpu.max_bytes=1000000000"),), "fails": True}
    rois = [constant("n", int64s("", [1, 1, 4, 4])), node("ConstantOfShape", ["n"], ["a"]), node("RoiAlign", ["a", "r", "i"], ["y"], sampling_ratio=100000, output_height=4, output_width=4)]
    yield "roialign", simple(rois, initializers=[floats("r", [0.0, 0.0, 4.0, 4.0], [1, 4]), int64s("i", [0])]), {"commands": (("run", "--device", "cpu", "--timeout", "3"),)}


# ---- terminal ----

ESCAPES = {
    "csi": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;title\x07",
    "c1": "\x9b31m",
    "bidi": "a\u202eb\u2066c",
    "feed": "line\nbackplane: a lie\r\x08\x0b",
    "invisible": "a\u200bb\ufeffc\u2028d",
}


@family("terminal")
def terminal():
    for name, text in ESCAPES.items():
        commands = (("info",), ("explain", "--device", "cpu"), ("run", "--device", "cpu"))
        yield f"operator_{name}", simple([node(text, ["x"], ["y"], domain="fn")]), {"commands": commands}
        yield f"unknown_{name}", simple([node(text, ["x"], ["y"])]), {"commands": commands, "fails": True}
        yield f"domain_{name}", simple([node("Relu", ["x"], ["y"], domain=text)], opsets=[(17, ""), (1, text)]), {"commands": commands}
        yield f"graph_{name}", simple([relu("z")], name=text), {"commands": commands, "fails": True}
        yield f"values_{name}", simple([relu(text, text + "y")], inputs=[value(text, FLOAT, [2])], outputs=[value(text + "y")]), {"commands": commands}
        yield f"node_{name}", simple([node("Relu", ["x"], ["y"], name=text)]), {"commands": commands}
        yield f"symbol_{name}", simple([relu()], inputs=[value("x", FLOAT, [text])]), {"commands": commands}
        pairs = field(14, field(1, text) + field(2, text)) + field(2, text) + field(3, text) + field(6, text)
        yield f"texts_{name}", simple([relu()], extra=pairs), {"commands": commands}
        location = external("w", FLOAT, [1], location=text)
        yield f"location_{name}", simple([relu()], initializers=[location]), {"commands": INFO, "fails": True}
        strings = tensor("w", STRING, [1]) + field(6, text)
        yield f"strings_{name}", simple([node("Identity", ["w"], ["y"])], initializers=[strings]), {"commands": commands}


# ---- sizes ----


@family("sizes")
def sizes():
    for name, dims in {
        "2^62": [1 << 62], "2^64": [1 << 32, 1 << 32], "2^66": [1 << 33, 1 << 33], "max": [(1 << 63) - 1], "minus": [-1],
        "least": [-(1 << 63)], "rank_65": [1] * 65, "rank_1000": [1] * 1000, "wrap_0": [1 << 32, 1 << 32, 4], "2^60": [1 << 60],
    }.items():
        yield f"weight_{name}", simple([relu()], initializers=[tensor("w", FLOAT, dims, b"")]), {"fails": True}
        yield f"input_{name}", simple([relu()], inputs=[value("x", FLOAT, dims)])
    for name, dims in {"2^60": [1 << 60], "2^30_2^30": [1 << 30, 1 << 30]}.items():  # 2^64 bytes
        yield f"weight_complex128_{name}", simple([relu()], initializers=[tensor("w", COMPLEX128, dims, b"")]), {"fails": True}
    for name, dims in {"first": [0, 1 << 40], "last": [1 << 40, 0], "middle": [1 << 29, 0, 1 << 29], "order": [1 << 29, 1 << 29, 0], "both": [1 << 40, 1 << 40, 0]}.items():
        yield f"empty_{name}", simple([relu()], inputs=[value("x", FLOAT, dims)])
        yield f"empty_weight_{name}", simple([relu("w")], initializers=[tensor("w", FLOAT, dims, b"")])
        yield f"empty_sparse_{name}", model(graph([relu()], [value("x", FLOAT, [2])], [value("y")]) + field(15, sparse(tensor("s", FLOAT, [0], b""), int64s("", []), dims)))
    for have, dims in ((0, [1]), (3, [1]), (5, [1]), (400, [101]), (400, [10, 11]), (8, [])):
        yield f"raw_{have}_{'x'.join(map(str, dims))}", simple([relu()], initializers=[tensor("w", FLOAT, dims, bytes(have))]), {"fails": True}
    for dtype in (0, 17, 99, 1 << 31, (1 << 32) + 1):
        yield f"dtype_{dtype}", simple([relu()], initializers=[tensor("w", dtype, [1], bytes(4))])
    for extents in ([1 << 40], [1 << 31, 1 << 31], [1 << 62], [1 << 20, 1 << 20]):
        text = "x".join(str(extent) for extent in extents)
        fill = [constant("n", int64s("", extents)), node("ConstantOfShape", ["n"], ["y"])]
        yield f"fill_{text}", simple(fill), {"fails": True, "commands": RUN}
        yield f"expand_{text}", simple([node("Expand", ["w", "n"], ["y"])], initializers=[floats("w", [1]), int64s("n", extents)]), {"fails": True, "commands": RUN}
    yield "range", simple([node("Range", ["a", "b", "c"], ["y"])], initializers=[int64s("a", [0], []), int64s("b", [1 << 40], []), int64s("c", [1], [])]), {"fails": True, "commands": RUN}


# ---- external data ----


@family("external")
def external_data():
    def with_weight(**entries):
        return simple([node("Add", ["x", "w"], ["y"])], inputs=[value("x", FLOAT, [4])], initializers=[external("w", FLOAT, [4], **entries)])

    bad = {
        "missing": "none.bin", "absolute": "/etc/passwd", "parent": "../secret", "inside_parent": "a/../../secret", "device": "/dev/zero",
        "empty": "", "folder": ".", "nul": "a\0b", "long": "n" * 100000, "slashes": "/" * 5000, "dots": "./" * 3000 + "..", "proc": "/proc/self/mem",
    }
    for name, location in bad.items():
        yield f"location_{name}", with_weight(location=location), {"fails": True}
    data = {"w.bin": bytes(16)}
    for name, entries in {
        "offset_end": {"offset": "16"}, "offset_max": {"offset": str((1 << 64) - 1)}, "offset_more": {"offset": "9" * 40}, "offset_minus": {"offset": "-4"},
        "offset_text": {"offset": "four"}, "length_more": {"length": "17"}, "length_less": {"length": "15"}, "length_max": {"length": str((1 << 64) - 1)},
        "wrap": {"offset": str((1 << 64) - 8), "length": "16"}, "long_offset": {"offset": "1" * 100000},
    }.items():
        yield name, with_weight(location="w.bin", **entries), {"files": data, "fails": True}
    yield "link_out", with_weight(location="w.bin"), {"links": {"w.bin": "/etc/passwd"}, "fails": True}
    yield "link_loop", with_weight(location="w.bin"), {"links": {"w.bin": "w.bin"}, "fails": True}
    yield "link_device", with_weight(location="w.bin"), {"links": {"w.bin": "/dev/zero"}, "fails": True}
    yield "huge", with_weight(location="w.bin", offset=str(1 << 40)), {"files": {"w.bin": 1 << 30}, "fails": True}
    flags = external("w", BOOL, [1 << 28], location="w.bin")
    yield "flags", simple([relu()], initializers=[flags]), {"files": {"w.bin": 1 << 28}, "commands": INFO}
    many = [external(f"w{i}", FLOAT, [4], location=f"w{i}.bin") for i in range(300)]
    yield "many_large", simple([relu()], initializers=many), {"files": {f"w{i}.bin": 1 << 27 for i in range(300)}, "commands": INFO}
    names = [external(f"w{i}", FLOAT, [4], location=f"w{i}.bin") for i in range(2000)]
    yield "many_missing", simple([relu()], initializers=names), {"fails": True}
    yield "itself", with_weight(location="model.onnx")


# ---- bytes ----


@family("bytes")
def broken_bytes():
    good = simple([node("Conv", ["x", "w"], ["t"], kernel_shape=[3, 3]), relu("t")], inputs=[value("x", FLOAT, [1, 3, 8, 8])],
                  initializers=[tensor("w", FLOAT, [4, 3, 3, 3], bytes(432))])
    step = max(1, len(good) // 24)
    for end in range(0, len(good), step):
        yield f"cut_{end}", good[:end], {"fails": True}
    chance = random.Random(19)
    for i in range(60):
        changed = bytearray(good)
        for _ in range(1 + i % 7):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        yield f"changed_{i}", bytes(changed)
    for i in range(8):
        yield f"random_{i}", chance.randbytes(1 << (2 * i)), {"fails": True}
    for name, text in {"gzip": b"\x1f\x8b\x08" + bytes(100), "text": b"hello\n" * 100, "zeros": bytes(10000), "ones": b"\xff" * 10000,
                       "overlong": b"\x80" * 11, "length": b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "group": b"\x3b" * 5000, "zip": b"PK\3\4" + bytes(100)}.items():
        yield name, text, {"fails": True}
    two = good + field(7, graph())
    yield "two_graphs", two, {"fails": True}
    yield "not_utf8", simple([relu()], extra=field(2, b"\xff\xfe\x80")), {"fails": True}


# ---- arrays of a run ----


@family("arrays")
def arrays():
    relu_model = simple([relu()])

    def npy(header, body=b""):
        text = header if isinstance(header, bytes) else header.encode()
        return b"\x93NUMPY\1\0" + struct.pack("<H", min(len(text), 65535)) + text + body

    describe = "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n".format
    for name, content in {
        "empty": b"", "magic": b"\x93NUMPY", "version": b"\x93NUMPY\x09\0\0\0", "text": b"text", "short": npy(describe("<f4", "2, 3"), bytes(20)),
        "wrap": npy(describe("<f4", f"{1 << 62}, 8"), bytes(8)), "minus": npy(describe("<f4", "-1,"), bytes(8)), "many": npy(describe("<f4", "1," * 1000), bytes(4)),
        "brackets": npy("(" * 60000), "braces": npy("{" * 60000), "quotes": npy("'" * 60000), "escape": npy(describe("\x1b[31m", "2, 3"), bytes(24)),
        "object": npy(describe("|O", "2, 3"), bytes(24)), "zero": npy(describe("<f4", f"{1 << 40}, 0")), "number": npy(describe("<f4", "9" * 5000)),
        "long": b"\x93NUMPY\2\0" + struct.pack("<I", (1 << 32) - 1) + b"{", "nested": npy(describe("[('a', " * 5000, "2, 3")),
    }.items():
        yield f"npy_{name}", relu_model, {"commands": (("run", "--device", "cpu", "--input", "x=@/x.npy"),), "files": {"x.npy": content}, "fails": True}
    for name, content in {
        "empty": b"", "cut": tensor("x", FLOAT, [2, 3], bytes(24))[:20], "wrap": tensor("x", FLOAT, [1 << 62, 8], bytes(8)), "random": bytes(range(256)),
        "huge": tensor("x", FLOAT, [1 << 40], b""), "rank": tensor("x", FLOAT, [1] * 1000, bytes(4)), "external": external("x", FLOAT, [2, 3], location="/etc/passwd"),
    }.items():
        yield f"pb_{name}", relu_model, {"commands": (("run", "--device", "cpu", "--input", "x=@/x.pb"),), "files": {"x.pb": content}, "fails": True}
    yield "dim_huge", simple([relu()], inputs=[value("x", FLOAT, ["N"])]), {"commands": (("run", "--device", "cpu", "--dim", "N=1000000000000"),), "fails": True}
    yield "dim_wrap", simple([relu()], inputs=[value("x", FLOAT, ["N", "M"])]), {"commands": (("run", "--device", "cpu", "--dim", f"N={1 << 33}", "--dim", f"M={1 << 33}"),), "fails": True}


def write(case, folder):
    os.makedirs(folder)
    path = os.path.join(folder, "model.onnx")
    for name, content in {"model.onnx": case.content, **case.files}.items():
        with open(os.path.join(folder, name), "wb") as file:
            if isinstance(content, int):
                file.truncate(content)
            else:
                file.write(content)
    for name, target in case.links.items():
        os.symlink(target, os.path.join(folder, name))
    return path


def main():
    folder, only = sys.argv[1:3]
    for case in cases():
        if not re.search(only, f"{case.family}/{case.name}"):
            continue
        if "--seeds" in sys.argv:
            if len(case.content) <= 1 << 14:
                with open(os.path.join(folder, f"{case.family}.{case.name}.onnx"), "wb") as file:
                    file.write(case.content)
            continue
        if not sys.stdin.readline():
            return
        path = write(case, os.path.join(folder, f"{case.family}.{case.name}"))
        print(json.dumps({"family": case.family, "name": case.name, "path": path, "commands": case.commands, "fails": case.fails}), flush=True)


if __name__ == "__main__":
    main()
