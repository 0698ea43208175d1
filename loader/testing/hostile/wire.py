# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX's protobuf messages byte by byte, including messages that no library would write.

Each function returns the bytes of a message or of some of its fields. Only `varint`, `field`, `number`, `real` and `packed` know the wire
format.
"""
import struct

FLOAT, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, COMPLEX128 = 1, 6, 7, 8, 9, 10, 11, 15


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag, content):
    """A length-delimited field; text is written as UTF-8."""
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogateescape")
    return varint(tag << 3 | 2) + varint(len(content)) + content


def number(tag, value):
    return varint(tag << 3) + varint(value)


def real(tag, value):
    return varint(tag << 3 | 5) + struct.pack("<f", value)


def packed(values):
    return b"".join(map(varint, values))


# ---- tensors and types ----


def tensor(name, dtype, dims, raw=None, extra=b""):
    out = field(8, name) if name else b""
    out += b"".join(number(1, extent) for extent in dims) + number(2, dtype)
    return out + (field(9, raw) if raw is not None else b"") + extra


def int64s(name, values, dims=None):
    return tensor(name, INT64, [len(values)] if dims is None else dims, struct.pack(f"<{len(values)}q", *values))


def floats(name, values, dims=None):
    return tensor(name, FLOAT, [len(values)] if dims is None else dims, struct.pack(f"<{len(values)}f", *values))


def sparse(values, indices, dims):
    return field(1, values) + field(2, indices) + b"".join(number(3, extent) for extent in dims)


def external(name, dtype, dims, **entries):
    pairs = b"".join(field(13, field(1, key) + field(2, text)) for key, text in entries.items())
    return tensor(name, dtype, dims, extra=pairs + number(14, 1))


def shape(dims):
    """Extents are numbers, names, or None if unknown."""
    out = b""
    for dim in dims:
        out += field(1, b"" if dim is None else field(2, dim) if isinstance(dim, str) else number(1, dim))
    return out


def tensor_type(dtype, dims=None):
    return field(1, number(1, dtype) + (b"" if dims is None else field(2, shape(dims))))


def value(name, dtype=None, dims=None):
    return field(1, name) + (b"" if dtype is None else field(2, tensor_type(dtype, dims)))


# ---- attributes and nodes ----


def attribute(name, content):
    """By the type of `content`: int, float, str, a list of one of them, or the bytes of the message's own fields."""
    head = field(1, name)
    if isinstance(content, bytes):
        return head + content
    if isinstance(content, int):
        return head + number(20, 2) + number(3, content)
    if isinstance(content, float):
        return head + number(20, 1) + real(2, content)
    if isinstance(content, str):
        return head + number(20, 3) + field(4, content)
    if content and isinstance(content[0], str):
        return head + number(20, 8) + b"".join(field(9, text) for text in content)
    if content and isinstance(content[0], float):
        return head + number(20, 6) + b"".join(real(7, x) for x in content)
    return head + number(20, 7) + field(8, packed(content))


def of_tensor(message):
    return number(20, 4) + field(5, message)


def of_graph(message):
    return number(20, 5) + field(6, message)


def node(op_type, inputs=(), outputs=(), name="", domain="", **attributes):
    out = b"".join(field(1, text) for text in inputs) + b"".join(field(2, text) for text in outputs)
    out += (field(3, name) if name else b"") + field(4, op_type) + (field(7, domain) if domain else b"")
    return out + b"".join(field(5, attribute(key, content)) for key, content in attributes.items())


def constant(output, message):
    return node("Constant", [], [output], value=of_tensor(message))


# ---- graphs, functions, models ----


def graph(nodes=(), inputs=(), outputs=(), initializers=(), name="g", extra=b""):
    out = b"".join(field(1, n) for n in nodes) + field(2, name)
    out += b"".join(field(5, t) for t in initializers)
    out += b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs)
    return out + extra


def opset(version, domain=""):
    return (field(1, domain) if domain else b"") + number(2, version)


def function(name, inputs, outputs, nodes, domain="fn", attributes=(), extra=b""):
    out = field(1, name) + b"".join(field(4, text) for text in inputs) + b"".join(field(5, text) for text in outputs)
    out += b"".join(field(6, text) for text in attributes) + b"".join(field(7, n) for n in nodes)
    return out + field(9, opset(17)) + field(9, opset(1, "fn")) + field(10, domain) + extra


def model(main, functions=(), opsets=((17, ""), (1, "fn")), extra=b""):
    out = number(1, 8) + field(7, main) + b"".join(field(8, opset(*each)) for each in opsets)
    return out + b"".join(field(25, f) for f in functions) + extra


def simple(nodes, inputs=None, outputs=None, **more):
    """A model whose graph reads float x[2,3] and writes y, by default."""
    inputs = [value("x", FLOAT, [2, 3])] if inputs is None else inputs
    outputs = [value("y")] if outputs is None else outputs
    main = {key: more.pop(key) for key in ("initializers", "name") if key in more}
    return model(graph(nodes, inputs, outputs, **main), **more)
