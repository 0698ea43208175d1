#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vector_clones_test.py PLUGIN [--list]: disassembles the CPU plugin and fails if a clone of a loop computes one element at a time.

Every function Clones<…>::avx512, ::avx2 and ::baseline (kernels/simd/clones.h), and compute_floats_avx2 of each formula that has a name
(kernels/elementwise), must have a loop with vector instructions of the
clone's width (512 or 256 bits, 256 bits, 128 bits). No clone may call a libm function, which would keep its loop scalar. The clones
in EXCEPT are exempt. --list also prints the verdict on each clone.
"""
import re
import shutil
import subprocess
import sys

# Functions that may have clones without vector instructions, the reason, and these clones.
COPIES = "it copies"
BY_INDEX = "it loads by index, and compilers do not use gather instructions for it"
BLOCKS_OF_16 = "blocks of 16 channels are for AVX-512"
WIDE_INTEGERS = "SSE2 cannot compare 64-bit integers"
EXCEPT = {
    "weighted_sum_of_pairs": (BY_INDEX, "baseline avx2 avx512"),
    "add_neighbors": (BY_INDEX, "baseline avx2 avx512"),
    "shuffle_channels_8": (BY_INDEX, "baseline avx2 avx512"),
    "shuffle_channels_16": (BY_INDEX, "baseline avx2 avx512"),
    "twice_4": (COPIES, "baseline avx2 avx512"),
    "four_times_4": (COPIES, "baseline avx2 avx512"),
    "take_evens": (COPIES, "baseline avx2 avx512"),
    "interleave_3": (COPIES, "baseline avx2 avx512"),
    "affine_16": (BLOCKS_OF_16, "baseline avx2"),
    "extremes_of_wide": (WIDE_INTEGERS, "baseline"),
    "select_8": (WIDE_INTEGERS, "baseline"),
}
EXCEPT |= dict.fromkeys(("Mod", "RisingCelu"), ("fmod, and expm1 above 0, have no vector formula", "avx2"))
EXCEPT["Gelu"] = ("its floats are computed by gelu_row", "avx2")
REGISTERS = {"baseline": "xmm", "avx2": "ymm", "avx512": "[yz]mm"}
# Instructions on whole vectors: of floats, doubles and integers.
PACKED = (r"v?(?:(?:add|sub|mul|div|max|min|and|andn|or|xor|sqrt|blendv|cmp\w*|cvt\w*|fn?m(?:add|sub)\d+)p[sd]"
          r"|p(?:add|sub|mul|max|min|cmp|and|or|xor|sll|srl|sra|madd|blend|abs|tern)\w*)")
MATH = re.compile(r"<(?:exp|log|pow|tanh|erf|sin|cos)f?(?:@plt)?>")


def clones(plugin):
    """Returns the instructions of each clone: {(function, clone): [(address, instruction)…]}"""
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", plugin], capture_output=True, text=True, check=True).stdout
    found, lines = {}, None
    for line in text.splitlines():
        if line.endswith(">:"):
            head = re.search(r"<(?:\w+ )?backplane::cpu::Clones<(.*)>::(avx512|avx2|baseline)\(.*>:", line)
            formula = re.search(r"compute_floats_avx2<backplane::cpu::\(anonymous namespace\)::(\w+)>\(", line)
            lines = None
            if head:
                lines = found.setdefault((head[1], head[2]), [])
            elif formula:
                lines = found.setdefault((formula[1], "avx2"), [])
        elif lines is not None and (one := re.match(r"\s*([0-9a-f]+):\s*(.*)", line)):
            lines.append((int(one[1], 16), one[2]))
    return found


def has_vector_loop(instructions, registers):
    """Whether some loop, a jump backwards and what it jumps over, has packed instructions on registers of the clone's width."""
    packed = re.compile(PACKED + r"\s.*%" + registers)
    for end, instruction in instructions:
        jump = re.match(r"j\w+\s+([0-9a-f]+)", instruction)
        if jump and int(jump[1], 16) <= end:
            body = [i for at, i in instructions if int(jump[1], 16) <= at <= end]
            if any(packed.match(i) for i in body):
                return True
    return False


def short(signature):
    """Returns the name of the cloned function, the first of the template's arguments."""
    plain = signature.replace("backplane::cpu::", "").replace("(anonymous namespace)::", "").lstrip("&(")
    plain = re.sub(r"^(?:[\w:]+ )+(?=\w)", "", plain)
    return (re.match(r"\w+(?:<[^()]*?>)?(?=[(,>]|$)", plain) or re.match(r"\w+", plain))[0]


def main():
    if shutil.which("objdump") is None:
        print("skipped: no objdump (package binutils)")
        return 77
    found = clones(sys.argv[1])
    scalar = []
    for (signature, clone), instructions in sorted(found.items()):
        name = short(signature)
        vector = has_vector_loop(instructions, REGISTERS[clone]) and not any(MATH.search(i) for _, i in instructions)
        if "--list" in sys.argv:
            print(f"{'vector' if vector else 'SCALAR'} {clone:8} {name}")
        if not vector and clone not in EXCEPT.get(re.match(r"\w+", name)[0], ("", ""))[1].split():
            scalar.append(f"{name}, {clone}")
    print(f"{len(found)} clones, {len(scalar)} of them with scalar loops and not in EXCEPT")
    print("\n".join(scalar))
    if len(found) < 100:
        print("too few clones were found: is the plugin stripped?")
        return 1
    return 1 if scalar else 0


if __name__ == "__main__":
    sys.exit(main())
