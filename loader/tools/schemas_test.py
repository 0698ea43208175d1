#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The output of every command with --json conforms to its schema.

schemas_test.py BACKPLANE SCHEMAS MODEL FAKE MANIFEST...

The validator in this file supports only the keywords that the schemas use, and rejects all others.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "testing" / "hostile"))
import wire as w

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
WORDS = {"$schema", "$comment", "title", "description", "type", "properties", "required", "items", "enum", "const", "minimum", "maximum",
         "minItems", "maxItems", "additionalProperties"}


def has_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def mistakes(value, schema, place):
    """The schema violations of a value, one line each."""
    unknown = set(schema) - WORDS
    if unknown:
        yield f"{place}: the schema has words that are not known: {sorted(unknown)}"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(has_type(value, name) for name in types):
        yield f"{place}: {json.dumps(value)[:60]} is no {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {value!r} is not {schema['const']!r}"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{place}: {value} is out of range"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield f"{place}: there is no '{key}'"
        properties = schema.get("properties", {})
        for key, member in value.items():
            if key in properties:
                yield from mistakes(member, properties[key], f"{place}.{key}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from mistakes(member, schema["additionalProperties"], f"{place}.{key}")
            elif properties:
                yield f"{place}: the schema does not have '{key}'"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{place}: it has {len(value)} elements"
        for i, element in enumerate(value):
            yield from mistakes(element, schema.get("items", {}), f"{place}[{i}]")


def check_validator():
    schema = {"type": "object", "properties": {"a": {"type": ["integer", "null"], "minimum": 0}, "b": {"enum": ["x"]}}, "required": ["a"]}
    assert not list(mistakes({"a": None, "b": "x"}, schema, ""))
    for wrong in ({}, {"a": -1}, {"a": "1"}, {"a": True}, {"a": 1, "b": "y"}, {"a": 1, "c": 1}, [1]):
        assert list(mistakes(wrong, schema, "")), wrong


def conditional_mistakes(program, schema, fake, env, work):
    """A device that supports a node only within ranges, which hold, counts as one that supports it."""
    model = work + "/conditional.onnx"
    pathlib.Path(model).write_bytes(w.simple([w.node("Relu", ["x"], ["y"], "r")], [w.value("x", w.FLOAT, ["n"])]))
    command = [program, "explain", model, "--backend", fake, "--set", "fake.ops=Relu", "--set", "fake.most=4", "--dim", "n=4", "--pin", "op=Relu=cpu"]
    done = subprocess.run([*command, "--json"], env=env, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    yield from mistakes(report, schema, "explain")
    answers = {verdict["device"]: verdict["answer"] for verdict in report["nodes"][0]["verdicts"]}
    if answers.get("fake") != "conditional":
        yield f"the answers are {answers}"
    text = subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout
    if "fake:" in text:
        yield f"the text has a refusal:\n{text}"


def verbs(program):
    """The commands that have --json, from the completion script that the program prints."""
    script = subprocess.run([program, "--completion", "fish"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"__fish_seen_subcommand_from ([\w-]+)' -l json ", script))


def main():
    program, folder, model, fake, *manifests = sys.argv[1:]
    check_validator()
    schemas = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.json")}
    tried, failures = set(), 0
    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "BACKPLANE_BACKEND_FILES": ":".join(manifests), "XDG_CACHE_HOME": work + "/cache"}
        y, bad = work + "/y.npz", work + "/bad.npy"
        uncovered = work + "/uncovered.onnx"
        pathlib.Path(uncovered).write_bytes(pathlib.Path(model).read_bytes().replace(b"Relu", b"Ceil"))
        calls = [
            ("list", 0, []), ("list", 0, ["--summary"]), ("why", 0, ["null"]), ("why", 1, ["nothing"]), ("info", 0, [model]),
            ("info", None, [uncovered]), ("explain", 0, [model]), ("explain", None, [uncovered, "--device", "null"]),
            ("explain", 0, [model, "--pin", "op=Relu=null"]), ("profile", 0, [model]), ("run", 0, [model, "--output", y]),
            ("run", 0, [model, "--output", work + "/out", "--expect", y]), ("run", 1, [model, "--seed", "9", "--expect", y]),
            ("run", 0, [model, "--input", "a=2x3xf32=nan"]), ("diff", 0, [model, "--device", "null,null"]),
            ("bench", 0, [model, "--runs", "3", "--streams", "2"]), ("trace", 0, [model, "--out", work + "/trace.json"]),
            ("new-backend", 0, ["acme", work + "/acme"]), ("error", 1, ["run", work + "/none.onnx"]), ("error", 2, ["run", model, "--no-such"]),
            ("error", 1, ["info", bad])]
        for name, status, words in calls:
            command = [program, *([] if name == "error" else [name]), *words, "--json"]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            found = [] if status is None or done.returncode == status else [f"exit status {done.returncode}"]
            found += mistakes(json.loads(done.stdout), schemas[name], name)
            tried.add(name)
            for mistake in found:
                print(f"{' '.join(command)}: {mistake}\n{done.stderr}", end="")
            failures += len(found)
        for mistake in conditional_mistakes(program, schemas["explain"], fake, env, work):
            print(f"explain, of a conditional verdict: {mistake}")
            failures += 1
    wanted = verbs(program) | {"error"}
    for name in sorted(wanted - set(schemas)):
        print(f"{name}: it has --json, and {folder} has no {name}.json")
        failures += 1
    for name in sorted(set(schemas) - wanted):
        print(f"{name}: the program has no command with --json of this name")
        failures += 1
    for name in sorted(set(schemas) - tried):
        print(f"{name}: no command was tried with this schema: add a call to this test")
        failures += 1
    print(f"schemas: {len(schemas)} tried, {failures} mistakes")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
