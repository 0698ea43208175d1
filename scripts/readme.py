#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands and programs that the pages show.

readme.py [--build FOLDER] [--slow FOLDER] [PAGE...]

Takes each block of sh, python and c from README.md, docs/, samples/ and the READMEs of other folders (or from the given pages), in order, and runs
it unchanged: in a scratch folder with the content of this tree, with a separate home folder and an installation of the build on the PATH. The blocks
of a page share that folder; blocks of Python share their variables too, and run after the other blocks of the page. C++ is compiled by the
test docs.guides. As many pages run at a time as there are cores; with --slow one at a time.

Comments in front of a block, which are not visible on the page, name what a reader has and the tree lacks:

  <!-- run: model FILE INPUT[1,3] OUTPUT[1,4] -->   a model with this input and output; a name instead of an extent is a symbolic dimension
  <!-- run: npy FILE [1,3] -->                      an array of fp32
  <!-- run: replace WORD VALUE -->                  a word that stands for something that the reader supplies
  <!-- run: before CODE -->                         code that runs before the block, in its language; for C, inside main
  <!-- run: after CODE -->                          code that runs after the block
  <!-- run: needs NAME -->                          runs only if this is there: a file of $BACKPLANE_DATA, python:MODULE, or a program
  <!-- run: slow REASON -->                         runs with --slow only, in a clone of the tree: the block builds or installs
  <!-- run: skip REASON -->                         the block is not run

A block that is not run is counted and printed, with the reason.

Exit status: 0 if every block that is not skipped succeeds.
"""
import argparse
import importlib.util
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "samples/**/README.md", "api/python/README.md", "backends/*/README.md",
         "conformance/**/README.md"]
TIMEOUT = 900
SLOW_TIMEOUT = 7200


class Block:
    def __init__(self, page, line, language, code, marks):
        self.place = f"{page}:{line}"
        self.language = language
        self.code = code
        self.marks = marks

    def values(self, word):
        return [mark.partition(" ")[2] for mark in self.marks if mark.partition(" ")[0] == word]


def blocks(page):
    """The blocks of a page, each with the `run:` comments in front of it."""
    found, marks, code, language, start = [], [], None, "", 0
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if code is not None:
            if line.strip() == "```":
                found.append(Block(page, start, language, "\n".join(code) + "\n", marks))
                code, marks = None, []
            else:
                code.append(line)
        elif mark := re.match(r"\s*<!-- run: (.*?) -->$", line):
            marks.append(mark[1])
        elif fence := re.match(r"\s*```(\w*)$", line):
            code, language, start = [], fence[1], number
        elif line.strip():
            marks = []
    return [block for block in found if block.language in ("sh", "python", "c")]


def make_model(words):
    """FILE INPUT[extents] OUTPUT[extents]: the output is a product with weights where the last extents differ."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    file, *values = words.split(" ")
    infos = []
    for value in values:
        name, extents = re.fullmatch(r"(\w+)\[(.*)\]", value).groups()
        infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [int(e) if e.isdigit() else e for e in extents.split(",")]))
    x, y = infos
    last = [info.type.tensor_type.shape.dim[-1].dim_value for info in infos]
    if last[0] == last[1]:
        nodes, weights = [helper.make_node("Relu", [x.name], [y.name])], []
    else:
        nodes = [helper.make_node("MatMul", [x.name, "w"], [y.name])]
        weights = [numpy_helper.from_array(numpy.ones(last, numpy.float32), "w")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def make_array(words):
    import numpy
    file, extents = words.split(" ")
    numpy.save(file, numpy.zeros([int(e) for e in extents.strip("[]").split(",")], numpy.float32))


def why_not(block, slow):
    """Why a block is not run here, or None."""
    if block.values("skip"):
        return block.values("skip")[0]
    if block.values("slow") and not slow:
        return block.values("slow")[0] + " (--slow runs it)"
    for name in block.values("needs"):
        if name.startswith("python:"):
            found = importlib.util.find_spec(name.removeprefix("python:"))
        elif "/" in name:
            found = pathlib.Path(os.environ["BACKPLANE_DATA"], name).exists()
        else:
            found = shutil.which(name)
        if not found:
            return f"{name} is not here"
    return None


def run_shell(block, code):
    subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, timeout=TIMEOUT)


# The variables of an installation, which a reader of a block that builds does not have yet.
INSTALLATION = ("CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "PYTHONPATH")


def run_in_clone(block, code, clone):
    """Runs a block of shell in a clone of the tree, which the slow blocks of all pages share."""
    if not (clone / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {name: value for name, value in os.environ.items() if name not in INSTALLATION}
    subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, timeout=SLOW_TIMEOUT, cwd=clone, env=environment)


def run_c(block, code):
    includes = "".join(line + "\n" for line in code.splitlines() if line.startswith("#include"))
    rest = "".join(line + "\n" for line in code.splitlines() if not line.startswith("#include"))
    if not re.search(r"^\w.*\) \{$", rest, flags=re.M):  # statements
        rest = "int main(void) {\n" + rest + "return 0;\n}\n"
    pathlib.Path("block.c").write_text(includes + rest)
    libraries = subprocess.run(["pkg-config", "--cflags", "--libs", "backplane"], check=True, capture_output=True, text=True).stdout.split()
    has_main = "int main(" in rest
    subprocess.run(["cc", "-std=c11", "-Wall", *([] if has_main else ["-c"]), "-o", "block", "block.c", *(libraries if has_main else libraries[:1]), "-ldl"],
                   check=True)
    if has_main:
        subprocess.run(["./block"], check=True, timeout=TIMEOUT)


# Runs the blocks of a page in one interpreter, which reads each of them as a line of JSON from standard input.
INTERPRETER = """
import ast, asyncio, inspect, json, sys
sys.path.insert(0, sys.argv[1])
import readme
names = {"__name__": "__main__"}
loop = asyncio.new_event_loop()
for line in sys.stdin:
    place, code, models, arrays = json.loads(line)
    for words in models:
        readme.make_model(words)
    for words in arrays:
        readme.make_array(words)
    result = eval(compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(result):
        loop.run_until_complete(result)
    print("ran", place, flush=True)
"""


def run_python(page_blocks):
    """Runs a page's blocks of Python. Returns the text of the failure and the number of blocks that ran."""
    import json
    lines = "".join(json.dumps([block.place, code, block.values("model"), block.values("npy")]) + "\n" for block, code in page_blocks)
    done = subprocess.run([sys.executable, "-c", INTERPRETER, str(ROOT / "scripts")], input=lines, text=True, capture_output=True, timeout=TIMEOUT, check=False)
    return done.stderr, done.stdout.count("ran ")


def prepared(block):
    """The block's code, with the replacements and additional code of its `run:` comments; makes the files that they name."""
    if block.language != "python":  # the interpreter makes the files of Python blocks, just before each block runs
        for words in block.values("model"):
            make_model(words)
        for words in block.values("npy"):
            make_array(words)
    code = block.code
    for words in block.values("replace"):
        word, _, value = words.partition(" ")
        assert word in code, f"{block.place} has no {word}"
        code = re.sub(rf"(?<![\w./-]){re.escape(word)}(?![\w-])" if word[-1].isalnum() else re.escape(word), lambda _: value, code)
    before, after = "\n".join(block.values("before")), "\n".join(block.values("after"))
    code += after + "\n" if after else ""
    if block.language == "c":  # the additional code goes after the includes, to the other statements
        return re.sub(r"\A((?:#include.*\n|\n)*)", lambda includes: includes[1] + before + "\n", code)
    return before + "\n" + code if before else code


def run_page(page, build, prefix, clone):
    """Returns counts of blocks: run, skipped, failed."""
    all_blocks = blocks(page)
    counts = {"ran": 0, "skipped": 0, "failed": 0}
    if not all_blocks:
        return counts
    with tempfile.TemporaryDirectory(prefix="readme-") as work:
        tree = pathlib.Path(work, "tree")
        tree.mkdir()
        pathlib.Path(work, "home").mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in ("build", "out") and not entry.name.startswith("."):
                (tree / entry.name).symlink_to(entry)
        (tree / "build").mkdir()
        (tree / "build/dev").symlink_to(build)
        os.chdir(tree)
        os.environ.update(HOME=work + "/home", PATH=f"{prefix}/bin:{os.environ['PATH']}", CMAKE_PREFIX_PATH=str(prefix),
                          CMAKE_GENERATOR="Ninja", XDG_CACHE_HOME=work + "/cache", PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")
        scripts = []
        for block in all_blocks:
            reason = why_not(block, clone is not None)
            if reason is not None:
                print(f"skipped  {block.place}: {reason}", flush=True)
                counts["skipped"] += 1
                continue
            code = prepared(block)
            if block.language == "python":
                scripts.append((block, code))
                continue
            start = time.monotonic()
            output = open(work + "/out", "w+", encoding="utf-8")
            saved = os.dup(1), os.dup(2)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            error = None
            try:
                if block.values("slow"):
                    run_in_clone(block, code, clone)
                else:
                    {"sh": run_shell, "c": run_c}[block.language](block, code)
            except (subprocess.SubprocessError, OSError) as failure:
                error = failure
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            if error is None:
                print(f"ran      {block.place} ({time.monotonic() - start:.1f} s)", flush=True)
                counts["ran"] += 1
            else:
                print(f"FAILED   {block.place}: {type(error).__name__}\n{code}\n{pathlib.Path(work, 'out').read_text(errors='replace')[-3000:]}", flush=True)
                counts["failed"] += 1
        if scripts:
            error, done = run_python(scripts)
            counts["ran"] += done
            for block, _ in scripts[:done]:
                print(f"ran      {block.place}", flush=True)
            if done < len(scripts):
                print(f"FAILED   {scripts[done][0].place}, and with it the later ones of the page\n{error[-3000:]}", flush=True)
                counts["failed"] += len(scripts) - done
        os.chdir("/")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--slow", type=pathlib.Path, metavar="FOLDER", help="also the blocks that build or install, in a clone in this empty folder")
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    build = options.build.resolve()
    os.environ.setdefault("BACKPLANE_DATA", os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/backplane"))
    for name in ("numpy", "onnx"):
        if not importlib.util.find_spec(name):
            parser.error(f"this Python has no {name}: run it with {os.environ['BACKPLANE_DATA']}/venv/bin/python")
    pages = options.pages or sorted({str(path.relative_to(ROOT)) for pattern in PAGES for path in ROOT.glob(pattern)})
    clone = options.slow and options.slow.resolve()
    if clone and clone.exists() and any(clone.iterdir()):
        parser.error(f"--slow {clone}: the folder must be empty")
    total = {"ran": 0, "skipped": 0, "failed": 0}
    with tempfile.TemporaryDirectory(prefix="installed-") as prefix:
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        library = next(pathlib.Path(prefix).rglob("libbackplane.so.1")).parent
        os.environ["LD_LIBRARY_PATH"] = str(library)
        os.environ["PKG_CONFIG_PATH"] = str(library / "pkgconfig")
        for variable in ("BACKPLANE_BACKEND_FILES", "BACKPLANE_ADD_BACKEND_FILES"):
            os.environ.pop(variable, None)
        # Each page has a process of its own: it changes the environment and the folder.
        processes = 1 if clone else len(os.sched_getaffinity(0))
        with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
            pending = [pool.apply_async(run_page, (page, build, prefix, clone)) for page in pages]
            for counts in pending:
                for state, count in counts.get().items():
                    total[state] += count
    print(f"readme: {total['ran']} blocks ran, {total['skipped']} skipped, {total['failed']} failed")
    return 1 if total["failed"] or not total["ran"] else 0


if __name__ == "__main__":
    sys.exit(main())
