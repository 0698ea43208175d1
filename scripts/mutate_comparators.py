#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the harness's comparators in one place at a time; some test must fail each time.

mutate_comparators.py [--build build/dev] [--part I/N] [--only TEXT] [--list]

Needs the tests judge_test, bounds_test and compare_test of that build folder. A mutation is compiled into its own folder, with the
compiler commands of the build, and linked before the libraries of the build. Exit status: 0 if every mutation was found.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFORMANCE = ROOT / "conformance"

# By changed file: the sources to compile and the tests to run.
JUDGES = ["judge_test", "bounds_test"]
AFFECTED = {
    "judge/judge.cpp": (["judge/judge.cpp"], JUDGES),
    "judge/bounds.cpp": (["judge/bounds.cpp"], JUDGES),
    "judge/bounds.h": (["judge/judge.cpp", "judge/bounds.cpp"], JUDGES),
    "judge/compare.cpp": (["judge/compare.cpp"], ["compare_test"]),
}
TEST_SOURCES = {
    "judge_test": "cases/judge_test.cpp",
    "bounds_test": "judge/bounds_test.cpp",
    "compare_test": "judge/compare_test.cpp",
}

# By file: (the rule that the mutation breaks, a text that occurs once in the file, its replacement)
MUTATIONS = {
    "judge/judge.cpp": [
        ("NaN matches NaN alone", "std::isnan(e.expected) && std::isnan(e.seen) ? 0", "true ? 0"),
        ("infinity is no finite number", "if (std::isinf(e.expected)) return HUGE_VAL", "if (std::isinf(e.expected)) return 0"),
        ("an overflow keeps its sign", " && std::signbit(e.expected) == std::signbit(e.seen)", ""),
        ("only what overflows is infinite", "std::fabs(e.expected) + e.bound >= over && ", ""),
        ("the error is measured against its bound", "HUGE_VAL : error / allowed", "HUGE_VAL : error / allowed / 2"),
        ("no bound is no number", "!(e.bound > 0)", "e.bound == 0"),
        ("the error has two sides", "error = std::fabs(e.seen - e.expected)", "error = e.seen - e.expected"),
        ("the squares of a dot product's errors", "squares > 1.6 * ksb", "squares > 160 * ksb"),
        ("the bias of a dot product", "unbiased && std::fabs(sum) > 4 *", "unbiased && std::fabs(sum) > 400 *"),
        ("a bias to either side", "unbiased && std::fabs(sum) >", "unbiased && sum >"),
        ("a bias where the inputs are around zero", "type, options.drawn_around_zero)", "type, false)"),
        ("a whole dot product is looked at", "reference.rule.kind == Rule::kDot) {", "false) {"),
        ("a whole graph is looked at", "reference.rule.kind == Rule::kGraph) {", "false) {"),
        ("the squares of a graph's errors", "if (squares <= elements)", "if (squares <= 100 * elements)"),
        ("the sign of a zero that is moved", "reference.rule.kind != Rule::kBits ||", "true ||"),
        ("a NaN that is moved", "? std::isnan(b)", "? true"),
        ("exact numbers", ": a == b && (", ": std::fabs(a - b) < 1 && ("),
        ("exact integers", "onnx::integer_at(seen, i) == integer_of(expected.values[i])",
         "std::abs(onnx::integer_at(seen, i) - integer_of(expected.values[i])) <= 1"),
        ("the last exact element", "i < expected.values.size(); ++i) {\n    if (is_float", "i + 1 < expected.values.size(); ++i) {\n    if (is_float"),
        ("the shape", " || seen.extents != expected.extents", ""),
        ("the type", "seen.dtype != expected.dtype || ", ""),
        ("flushing only where it is declared", "if (options.flushes) e.bound", "e.bound"),
        ("beyond the bound is wrong", "if (part > 1) {", "if (part > 2) {"),
        ("the first element", "for (size_t i = 0; i < numbers.size(); ++i) {", "for (size_t i = 1; i < numbers.size(); ++i) {"),
        ("the last element", "for (size_t i = 0; i < numbers.size(); ++i) {", "for (size_t i = 0; i + 1 < numbers.size(); ++i) {"),
        ("zeros that should not be are mistrusted", "missing > std::max<size_t>(1, numbers.size() / 4)", "missing > numbers.size()"),
        ("half a step of a rounded number", "allowed = 0.5 + reference.scale[i]", "allowed = 1.5 + reference.scale[i]"),
        ("a rounded number beyond its step is wrong", "if (part <= 1) continue;", "if (part <= 2) continue;"),
        ("what is close", "1e-7 + 1e-3 * std::fabs(expected)", "1e-7 + 1e-1 * std::fabs(expected)"),
    ],
    "judge/bounds.cpp": [
        ("ULPs", "return rule.ulps * ulp", "return 2 * rule.ulps * ulp"),
        ("smooth functions", "return 16 * ulp + (3", "return 32 * ulp + (3"),
        ("cancellation in smooth functions", "(3 + ksb) * type.epsilon() / 2 * scale", "(3 + ksb) * type.epsilon() * scale"),
        ("exp", "relative * (2 * argument +", "relative * (4 * argument +"),
        ("exp near zero", "== 23 ? 3 : 1", "== 23 ? 6 : 2"),
        ("sigmoid", "relative * 2 * (1 + argument)", "relative * 4 * (1 + argument)"),
        ("power", "7.5 * argument + 3", "15 * argument + 3"),
        ("arguments of exp in BFLOAT16", "? 0x1p-16 : 1", "? 1 : 1"),
        ("products", "rule.terms * std::log1p", "2 * rule.terms * std::log1p"),
        ("dot products", "return 2 * ksb * dot_unit(type, scale);", "return 4 * ksb * dot_unit(type, scale);"),
        ("sums", "dot_unit(type, scale) + 16 * ulp", "dot_unit(type, scale) + 64 * ulp"),
        ("resize", "std::max(0.006 * scale, 20", "std::max(0.06 * scale, 20"),
        ("resize of small numbers", "scale, 20 * ulp)", "scale, 200 * ulp)"),
        ("the unit of a dot product", "type.epsilon() / 2 * scale, type.min_normal()", "type.epsilon() * scale, type.min_normal()"),
        ("roundings that pile up", "- type.fraction_bits) / 2.0)", "- type.fraction_bits) / 4.0)"),
        ("the accumulator", "std::max(type.fraction_bits, 23)", "type.fraction_bits"),
        ("subnormal results", "< type.min_normal() ? ulp : 0", "< type.min_normal() ? 0 : 0"),
    ],
    "judge/bounds.h": [
        ("ULPs are those that the rule says", "return {kUlps, 1, ulps}", "return {kUlps, 1, 2 * ulps}"),
        ("data that is moved is compared by its bits", "static Rule bits() { return {kBits}; }", "static Rule bits() { return {kExact}; }"),
        ("what is exact is compared exactly", "static Rule exact() { return {kExact}; }", "static Rule exact() { return {kUlps, 1, 1}; }"),
        ("the terms of a rule", "return {kind, terms}", "return {kind, 2 * terms}"),
    ],
    "judge/compare.cpp": [
        ("NaN matches NaN alone", "return std::isnan(expected) && std::isnan(seen)", "return true"),
        ("infinities are exact", "return expected == seen;", "return true;"),
        ("the relative tolerance", "tolerance.relative * std::abs(expected)", "10 * tolerance.relative * std::abs(expected)"),
        ("the absolute tolerance", "<= tolerance.absolute +", "<= 10 * tolerance.absolute +"),
        ("the error has two sides", "std::abs(seen - expected) <=", "seen - expected <="),
        ("texts", "return expected.text(i) == seen.text(i)", "return true"),
        ("integers", "return onnx::integer_at(expected, i) == onnx::integer_at(seen, i)", "return true"),
        ("imaginary parts", " && is_close(a.imag(), b.imag(), tolerance)", ""),
        ("types", "expected.dtype != seen.dtype || ", ""),
        ("shapes", " || expected.extents != seen.extents", ""),
        ("the last element", "i < count; ++i) {", "i + 1 < count; ++i) {"),
        ("the first element", "uint64_t i = 0; i < count", "uint64_t i = 1; i < count"),
        ("one wrong element", "if (wrong > 0)", "if (wrong > 1)"),
        ("zeros that should not be are mistrusted", "zeros * 2 > count", "zeros > count"),
        ("zeros that should be are right", " && expected_zeros * 10 < count", ""),
        ("kinds", "if (expected.kind != seen.kind)", "if (false)"),
        ("the length of a sequence", "if (expected.elements.size() != seen.elements.size())", "if (expected.elements.size() > seen.elements.size())"),
        ("keys of maps", "found == by_key.end() || ", ""),
        ("keys that come twice", " || by_key.size() != expected.keys.size()", ""),
        ("elements of sequences", "if (element.answer != Comparison::kEqual)", "if (element.answer == Comparison::kMistrusted)"),
    ],
}


class Build:
    """The compiler's calls of a build folder."""

    def __init__(self, folder):
        self.folder = folder
        entries = json.loads((folder / "compile_commands.json").read_text())
        self.compile_calls = {entry["file"]: shlex.split(entry["command"]) for entry in entries}

    def call(self, words):
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True)

    def compile(self, source, text_folder, output):
        """Compiles `source` to `output`: the copy in `text_folder` if there is one, otherwise the tree's. Headers in `text_folder` come first."""
        words = list(self.compile_calls[str(CONFORMANCE / source)])
        mutated = text_folder / source
        words[words.index("-o") + 1] = str(output)
        words[words.index(str(CONFORMANCE / source))] = str(mutated if mutated.exists() else CONFORMANCE / source)
        first = next(i for i, word in enumerate(words) if word.startswith("-I") or word == "-isystem")
        words.insert(first, f"-I{text_folder}")
        return self.call(words)

    def link(self, test, objects, output):
        """Links `test` to `output`, with `objects` in place of the test's own object and in front of the libraries."""
        commands = self.call(["ninja", "-t", "commands", "-s", f"tests/{test}"]).stdout
        words = shlex.split(commands.split(" && ")[1])
        words[words.index("-o") + 1] = str(output)
        own = next(i for i, word in enumerate(words) if word.endswith(pathlib.Path(TEST_SOURCES[test]).name + ".o"))
        if test in objects:
            words[own] = str(objects[test])
        words[own + 1 : own + 1] = [str(path) for name, path in objects.items() if name not in TEST_SOURCES]
        return self.call(words)


def require(result, failure):
    if result.returncode != 0:
        sys.exit(f"{failure}: {(result.stderr or result.stdout).strip()[:2000]}")


def finders(build, file, old, new, folder):
    """The tests that fail with `old` replaced in `file`."""
    text = (CONFORMANCE / file).read_text()
    if text.count(old) != 1:
        sys.exit(f"'{old}' occurs {text.count(old)} times in {file} instead of once: correct the mutation")
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text(text.replace(old, new))
    sources, tests = AFFECTED[file]
    objects = {}
    for source in sources + [TEST_SOURCES[test] for test in tests if file.endswith(".h")]:
        name = next((test for test, its in TEST_SOURCES.items() if its == source), source)
        objects[name] = folder / (source.replace("/", "_") + ".o")
        require(build.compile(source, folder, objects[name]), f"'{new}' does not compile")
    found = []
    for test in tests:
        require(build.link(test, objects, folder / test), f"{test} does not link")
        try:
            if subprocess.run([folder / test, "--gtest_brief=1"], capture_output=True, timeout=120).returncode != 0:
                found.append(test)
        except subprocess.TimeoutExpired:
            found.append(test)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--part", default="1/1", help="I/N: only every Nth mutation, starting with the Ith")
    parser.add_argument("--only", default="", help="only mutations whose file or text contains this")
    parser.add_argument("--list", action="store_true", help="print the mutations and exit")
    options = parser.parse_args()

    part, parts = map(int, options.part.split("/"))
    chosen = [(file, *one) for file, rows in MUTATIONS.items() for one in rows if options.only in file + " " + one[0]]
    chosen = chosen[part - 1 :: parts]
    if options.list:
        print("\n".join(f"{file}: {what}" for file, what, _, _ in chosen))
        return 0
    build = Build(options.build.resolve())
    for test in sorted({test for file, *_ in chosen for test in AFFECTED[file][1]}):
        require(build.call([build.folder / "tests" / test, "--gtest_brief=1"]), f"{test} fails without a mutation")
    survivors = 0
    for number, (file, what, old, new) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory(prefix="mutant_") as folder:
            found = finders(build, file, old, new, pathlib.Path(folder))
        survivors += not found
        print(f"{number}/{len(chosen)} {file}: {what}: {', '.join(found) or 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants were killed")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
