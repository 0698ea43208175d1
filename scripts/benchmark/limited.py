# SPDX-License-Identifier: Apache-2.0
"""A copy of onnxruntime that uses no more than an instruction set, so that both sides of a comparison are limited. onnxruntime has no option for
this: its library learns with the instruction `xgetbv` which registers the system saves, and does not use those of AVX-512 if they are not among
them. In the copy, a constant takes the place of the instruction. The original is not changed."""
import importlib.util
import pathlib
import shutil

SAVED = {"SSE41": 0x3, "AVX2": 0x7}  # by instruction set, the bits of XCR0: x87 and SSE, and AVX
READ = b"\x0f\x01\xd0\x89\xc0"  # xgetbv; mov %eax, %eax


def folder(instructions, data):
    """The folder to put first in PYTHONPATH, or None if the instruction set needs no copy. The copy is made once per release of onnxruntime."""
    if instructions not in SAVED:
        return None
    package = pathlib.Path(importlib.util.find_spec("onnxruntime").origin).parent
    release = next(package.parent.glob("onnxruntime-*.dist-info")).name
    copy = data / "bench" / f"{release.removesuffix('.dist-info')}-{instructions}"
    if copy.exists():
        return copy
    new = copy.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(package, new / "onnxruntime")
    library = next((new / "onnxruntime/capi").glob("onnxruntime_pybind11_state*.so"))
    code = library.read_bytes()
    if READ not in code:
        raise SystemExit(f"bench: this release of onnxruntime cannot be limited to {instructions}: its library has no '{READ.hex(' ')}'")
    library.write_bytes(code.replace(READ, b"\xb8" + SAVED[instructions].to_bytes(4, "little")))  # mov $…, %eax
    new.rename(copy)
    return copy
