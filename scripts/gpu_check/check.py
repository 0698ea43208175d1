#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a bundle of scripts/gpu_check.sh: checks the CUDA backend on this machine's GPU, compares its times with PyTorch's, and writes one report.

The driver's library is found as the dynamic linker does. NVRTC is in the bundle; cuBLASLt and cuDNN come from LD_LIBRARY_PATH, from PyTorch's packages, or
from /usr/local/cuda. Exit status: 0 if no step failed, 1 if one did, 2 for wrong usage.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CUDA = HERE / "lib/backplane/libbackplane_cuda.so"
MODELS = ("resnet50", "bert_base", "vit_b16", "decoder_step")


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


class Check:
    def __init__(self, options):
        self.options = options
        self.out = options.report.resolve().parent / "out"
        self.out.mkdir(parents=True, exist_ok=True)
        folders = [str(folder) for place in (*site.getsitepackages(), site.getusersitepackages()) for folder in pathlib.Path(place).glob("nvidia/*/lib")]
        libraries = [os.environ.get("LD_LIBRARY_PATH", ""), str(HERE / "lib"), *folders, "/usr/local/cuda/lib64"]
        self.environment = os.environ | {
            "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
            "PATH": f"{HERE / 'bin'}:{os.environ['PATH']}",
            "BACKPLANE_CACHE_DIR": str(self.out / "cache"),
        }
        self.log, self.table = None, []

    def run(self, *command, limit, with_log=False, **variables):
        """The standard output of a command, and its log `with_log`. All that it prints is in the step's log. Raises Failed if it fails or takes longer than `limit` seconds."""
        words = list(map(str, command))
        self.log.write(f"$ {' '.join(words)}\n")
        self.log.flush()
        try:
            done = subprocess.run(words, env=self.environment | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{words[0]} took longer than {limit} s") from error
        printed = done.stdout + done.stderr
        self.log.write(printed)
        if done.returncode == 77:
            raise Skipped(last_line(printed) or f"{words[1] if len(words) > 1 else words[0]}: nothing to run it with")
        if done.returncode:
            raise Failed(f"{words[0]} ended with {done.returncode}: {last_line(printed)}")
        return printed if with_log else done.stdout

    def device(self, name):
        """What `backplane list` reports about a device, or None if there is none with this name."""
        devices = json.loads(self.run("backplane", "list", "--json", limit=60))["devices"]
        return next((device for device in devices if device["name"] == name), None)

    def bench(self, model, device, batch, runs, *more):
        return json.loads(self.run("backplane", "bench", HERE / f"models/{model}.onnx", "--device", device, "--fallback", "prefer", "--dim", f"batch={batch}",
                                   "--runs", runs, "--json", *more, limit=90))

    # ---- steps: each returns the text of its line in the report ----

    def machine(self):
        if shutil.which("nvidia-smi"):
            self.run("nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit", "--format=csv,noheader", limit=30)
        self.run("backplane", "why", "cuda", limit=60)
        found = self.device("cuda")
        if not found:
            raise Failed("there is no CUDA device: `backplane why cuda` gives the reason, which is in out/machine.txt; nothing else can be run")
        return f"{found['description']}, {found['driver']}"

    def conform(self, plugin, profile):
        shutil.rmtree(self.out / plugin.stem / profile, ignore_errors=True)  # of an earlier check: a journal is not overwritten
        chosen = ("--require-level", "L3") if self.options.cases == "*" else ("--filter", self.options.cases)
        return last_lines(self.run("backplane-conform", "--plugin", plugin, "--profile", profile, *chosen, "--out", self.out / plugin.stem / profile, limit=180), 5)

    def core(self):
        return self.conform(CUDA, "core")

    def fp16(self):
        return self.conform(CUDA, "fp16")

    def suite(self):
        return last_line(self.run("backplane-conform", "onnx", "--data", HERE / "node", "--device", "cuda", "--filter", self.options.suite, limit=120))

    def memcheck(self):
        tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
        if not tool:
            raise Skipped("compute-sanitizer is not here")
        return last_line(self.run(tool, "--error-exitcode", 9, "--target-processes", "all", HERE / "bin/backplane-conform", "onnx", "--data", HERE / "node",
                                  "--device", "cuda", "--filter", self.options.checked, limit=120))

    def agree(self):
        """Each model on the CPU and on the GPU; the results of every node are compared."""
        lines = [last_line(self.run("backplane", "diff", HERE / f"models/{model}_fp32.onnx", "--device", "cpu", "--device", "cuda", "--fallback", "prefer",
                                    "--dim", "batch=1", "--rtol", "1e-2", "--atol", "1e-3", limit=90)) for model in MODELS]
        return "; ".join(f"{model}: {line}" for model, line in zip(MODELS, lines))

    def leaks(self):
        """The peak memory of a process after all runs, which may hardly exceed that of another process after a tenth of them."""
        few, many = (self.bench("resnet50_fp16", "cuda", 1, runs, "--memory", "cuda")["peak_rss_mb"] for runs in (self.options.runs // 10, self.options.runs))
        if many > few + 32:
            raise Failed(f"peak memory {few:.0f} MiB after {self.options.runs // 10} runs, {many:.0f} after {self.options.runs}")
        return f"{self.options.runs} runs, peak memory {few:.0f} to {many:.0f} MiB"

    def speed(self):
        """The table: medians in milliseconds. Backplane is measured before and after PyTorch, and the better of its two medians counts."""
        known = json.loads((HERE / "models/models.json").read_text())
        rates, failed = self.rates(), []
        self.table = ["| model | batch | Backplane, ms | PyTorch eager | compiled | ÷ eager | ÷ compiled | ÷ floor |", "|---|---|---|---|---|---|---|---|"]
        for model in known:
            for batch in self.options.batches:
                try:
                    self.table.append(self.row(model, batch, known[model], rates))
                except Failed as error:
                    self.table.append(f"| {model} | {batch} | {error} |")
                    failed.append(f"{model} with batch {batch}")
        if failed:
            raise Failed(f"not measured: {', '.join(failed)}")
        return f"{len(self.table) - 2} rows; the floor is that of {rates['fp32'] / 1e12:.1f} TFLOP/s in fp32, {rates['fp16'] / 1e12:.1f} in fp16, {rates['bytes'] / 1e9:.0f} GB/s"

    def rates(self):
        """Operations per second of each type, and bytes per second: what PyTorch reaches or, without it, what the backend measures for its estimates."""
        try:
            return json.loads(last_line(self.run(sys.executable, HERE / "peer.py", "rates", limit=60)))
        except (Skipped, Failed):
            text = self.run("backplane", "explain", HERE / "models/resnet50_fp32.onnx", "--device", "cuda", "--dim", "batch=1", limit=60, with_log=True,
                            BACKPLANE_LOG="info", BACKPLANE_CACHE_DIR=str(self.out / "unmeasured"))
            found = re.search(r"measured (\S+) GFLOP/s, (\S+) GB/s", text)
            own = [1e9 * float(number) for number in found.groups()] if found else [float("nan")] * 2
            return {"fp32": own[0], "fp16": own[0], "bytes": own[1]}

    def row(self, model, batch, known, rates):
        allowed = ("--compute", "tf32") if model.endswith("fp32") else ()
        ours = [self.bench(model, "cuda", batch, self.options.bench, "--memory", "cuda", *allowed)["median_ms"]]
        peer, name = {}, model.rsplit("_", 1)
        try:
            peer = json.loads(last_line(self.run(sys.executable, HERE / "peer.py", *name, batch, limit=120)))
        except (Skipped, Failed) as error:
            peer["why"] = "no PyTorch" if isinstance(error, Skipped) else str(error)
        ours.append(self.bench(model, "cuda", batch, self.options.bench, "--memory", "cuda", *allowed)["median_ms"])
        best = min(ours)
        read = known["weight_bytes"] + batch * known["cache_bytes_per_batch"]
        floor = 1e3 * max(known["operations"][str(batch)] / rates[name[1]], read / rates["bytes"]) if str(batch) in known["operations"] else float("nan")
        times = [peer.get("eager_ms"), peer.get("compiled_ms")]
        cells = [f"{best:.3f}", *(f"{t:.3f}" if t else peer.get("why", "–") for t in times), *(f"{best / t:.2f}" if t else "–" for t in times), f"{best / floor:.2f}" if floor == floor else "–"]
        return f"| {model} | {batch} | " + " | ".join(cells) + " |"

    def opencl(self):
        found = self.device("opencl")
        if not found or "NVIDIA" not in found["description"] + found["vendor"]:
            raise Skipped("the driver has no OpenCL")
        lines = self.conform(CUDA.with_name("libbackplane_opencl.so"), "core")
        return f"{lines}; ResNet-50 {self.bench('resnet50_fp32', 'opencl', 1, self.options.bench)['median_ms']:.3f} ms"


STEPS = ("machine", "core", "fp16", "suite", "agree", "leaks", "speed", "memcheck", "opencl")


def last_lines(text, count):
    return "; ".join(line.strip() for line in text.strip().splitlines()[-count:])


def last_line(text):
    return last_lines(text, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=pathlib.Path, default=HERE / "report.md", help="the report; next to it is out/ with each step's output")
    parser.add_argument("--seconds", type=float, default=480, help="no step begins after this many seconds")
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS, metavar="STEP", help="only these of: " + " ".join(STEPS))
    parser.add_argument("--cases", default="*", help="only these cases of the harness")
    parser.add_argument("--suite", default="*", help="only these of ONNX's node cases")
    parser.add_argument("--checked", default="test_[a-c]*", help="ONNX's node cases that run in compute-sanitizer")
    parser.add_argument("--batches", type=int, nargs="+", default=(1, 32))
    parser.add_argument("--bench", type=int, default=100, help="runs of each measurement")
    parser.add_argument("--runs", type=int, default=10000, help="runs of the search for leaks")
    options = parser.parse_args()
    if not (HERE / "models/weights16.bin").exists():
        subprocess.run([sys.executable, HERE / "make_weights.py", HERE / "models"], check=True)
    check, begin, failed = Check(options), time.monotonic(), False
    lines = [f"# The CUDA backend, {datetime.date.today()}", "", "| step | | time | |", "|---|---|---|---|"]
    for name in options.steps:
        start = time.monotonic()
        print(f"{name} …", flush=True)
        with open(check.out / f"{name}.txt", "w", encoding="utf-8") as check.log:
            if start - begin > options.seconds:
                state, text = "not run", "the time is up"
            else:
                try:
                    state, text = "passed", getattr(check, name)()
                except Skipped as reason:
                    state, text = "skipped", str(reason)
                except Failed as reason:
                    state, text, failed = "FAILED", str(reason), True
        print(f"  {state}: {text}", flush=True)
        lines.append(f"| {name} | {state} | {time.monotonic() - start:.0f} s | {text.replace('|', '/')} |")
        options.report.write_text("\n".join([*lines, "", *check.table]) + "\n", encoding="utf-8")
        if name == "machine" and state == "FAILED":
            break  # the other steps would only fail for the same reason
    print(options.report)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
