#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""new_operator_test.py BUILD: adds an operator to a scratch copy of the tree, with one new file and one word in a list, and
runs a model with it.

Only the sources that the two edits affect are compiled: the new file and the table. The library is then linked with the other objects
of BUILD.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
BUILD = Path(sys.argv[1]).resolve()

KERNEL = """// SPDX-License-Identifier: Apache-2.0
// Hypotenuse: of right triangles, from their legs.
#include <cmath>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"

namespace backplane::cpu {
namespace {

Verdict supports(const Node& node) {
  return accepts(node, 2, {just(BP_DTYPE_FLOAT), just(BP_DTYPE_FLOAT)});
}

std::unique_ptr<Kernel> create(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    if (inputs[0].shape != inputs[1].shape) return fail("the legs differ in shape");
    return make_plan({inputs[0].shape}, [](Tensors in, Tensors out) {
      const float *a = in[0].as<float>(), *b = in[1].as<float>();
      for (int64_t i = 0; i < out[0].shape.elements(); ++i) out[0].as<float>()[i] = std::hypot(a[i], b[i]);
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> hypotenuse_rows() {
  static constexpr Row kRows[] = {{"org.example", "Hypotenuse", 1, supports, create}};
  return kRows;
}

}  // namespace backplane::cpu
"""


def field(number: int, value: bytes | str | int) -> bytes:
    """Returns one field of a protobuf message: a number below 128, or fewer than 128 bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def model() -> bytes:
    """c = org.example.Hypotenuse(a, b), each float[3]."""
    shape = field(1, field(1, 3))
    tensor = field(1, field(1, 1) + field(2, shape))  # TypeProto.tensor_type: FLOAT, [3]
    value = {name: field(1, name) + field(2, tensor) for name in "abc"}
    node = field(1, "a") + field(1, "b") + field(2, "c") + field(4, "Hypotenuse") + field(7, "org.example")
    graph = field(1, node) + field(2, "triangles") + field(11, value["a"]) + field(11, value["b"]) + field(12, value["c"])
    return field(1, 8) + field(8, field(1, "org.example") + field(2, 1)) + field(7, graph)


def npy(values: list[float]) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


def run(*command: object, **more: object) -> str:
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))[:300]}: exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def configured(name: str) -> str:
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else ""


def build(scratch: Path) -> Path:
    """Adds the operator to a copy of the tree in `scratch`, compiles it and returns the library."""
    copy = scratch / "tree"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("build", ".git"))

    (copy / "backends/cpu/kernels/elementwise/hypotenuse.cpp").write_text(KERNEL)  # the new file
    lists = copy / "backends/cpu/CMakeLists.txt"
    before = lists.read_text()
    after = before.replace("(elementwise OPERATORS binary", "(elementwise OPERATORS hypotenuse binary")  # the edited line
    assert after != before, "the list of elementwise operators has changed"
    lists.write_text(after)

    settings = [f"-D{name}={configured(name)}" for name in
                ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "CMAKE_CXX_FLAGS", "BACKPLANE_SANITIZER")]
    run("cmake", "-G", "Ninja", "-S", copy, "-B", scratch / "build", "-DBACKPLANE_BACKENDS=cpu", *settings)
    objects = "backends/cpu/CMakeFiles/backplane_cpu.dir/"
    mine = [objects + "table.cpp.o", objects + "kernels/elementwise/hypotenuse.cpp.o"]
    run("ninja", "-C", scratch / "build", *mine)

    library = scratch / "libbackplane_cpu.so"
    usual = "lib/backplane/libbackplane_cpu.so"
    link = run("ninja", "-C", BUILD, "-t", "commands", usual).splitlines()[-1]
    assert f"-o {usual} " in link and f" {mine[0]} " in link, link
    link = link.replace(f"-o {usual} ", f"-o {library} ").replace(
        f" {mine[0]} ", " " + " ".join(str(scratch / "build" / each) for each in mine) + " ")
    run("sh", "-c", link, cwd=BUILD)
    return library


def main() -> None:
    if not (BUILD / "build.ninja").exists():
        print("SKIPPED: the build does not use Ninja")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="backplane_new_operator_") as folder:
        scratch = Path(folder)
        (scratch / "model.onnx").write_bytes(model())
        (scratch / "a.npy").write_bytes(npy([3, 5, 8]))
        (scratch / "b.npy").write_bytes(npy([4, 12, 15]))
        command = [BUILD / "bin/backplane", "run", scratch / "model.onnx", "--device", "cpu", "--input", f"a={scratch / 'a.npy'}",
                   "--input", f"b={scratch / 'b.npy'}", "--output", scratch / "out"]
        # The model is refused without the operator. This proves that the run below uses the new library.
        refused = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert refused.returncode == 1 and "Hypotenuse" in refused.stderr, refused.stderr
        library = build(scratch)
        print(run(*command, env={**os.environ, "BACKPLANE_BACKEND_FILES": str(library)}))
        result = (scratch / "out/c.npy").read_bytes()
        assert result.endswith(struct.pack("<3f", 5, 13, 17)), result


if __name__ == "__main__":
    main()
