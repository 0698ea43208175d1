#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_test.py BACKPLANE MANIFESTS [--only REGEX] [--keep FOLDER] [--sanitizer]

Runs `backplane` with the backends of MANIFESTS (those of cpu and null, separated by a colon) on every case of corpus.py, with a stack of
256 KB for every thread. Each must end by itself, with a documented exit status, within 5 s of processor time and 1 GB, and write only
printable text, in which an error names its cause. Prints a table by class, and the cases that failed.
With --sanitizer the limits and the stack are 4 times as large, because a sanitizer's stack frames, shadow memory and quarantine need more.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

STACK = 256 << 10
MOST_BYTES = 1 << 30
MOST_SECONDS = 5
SCALE = 1  # factor for the three limits above
# Characters that the output must not contain: control characters except line feeds and tabs, changes of direction, invisible ones.
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def limit():
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (STACK * SCALE, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


Result = collections.namedtuple("Result", "case words status seconds bytes fault said")


def judge(case, status, seconds, peak, said):
    if seconds > MOST_SECONDS * SCALE:
        return f"took {seconds:.1f} s"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    if status not in (0, 1, 2):
        return f"exit status {status}"
    if peak > MOST_BYTES * SCALE:
        return f"took {peak >> 20} MB"
    if case["fails"] and status == 0:
        return "should have failed"
    if found := ACTIVE.search(said):
        return f"wrote {found.group()!r}"
    if "bad_alloc" in said or "length_error" in said or "vector::" in said or "basic_string" in said:
        return "the error names no cause"
    if len(said) > 4 << 20:
        return f"wrote {len(said)} characters"
    return ""


def run(program, case, words):
    path = case["path"]
    command = [program, words[0], path] + [word.replace("@", os.path.dirname(path)) for word in words[1:]]
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=limit, start_new_session=True)
        killer = threading.Timer(6 * MOST_SECONDS * SCALE, os.killpg, (child.pid, signal.SIGKILL))
        killer.start()
        _, code, usage = os.wait4(child.pid, 0)
        killer.cancel()
        child.returncode = os.waitstatus_to_exitcode(code)
        # Counts the child's own processor time, because the machine may be busy. A child that waits forever is killed, and its
        # wall-clock time counts.
        seconds = time.monotonic() - start
        if child.returncode != -signal.SIGKILL:
            seconds = min(seconds, usage.ru_utime + usage.ru_stime)
        output.seek(0)
        said = output.read().decode("utf-8", "replace")
    peak = usage.ru_maxrss << 10
    return Result(case, words, child.returncode, seconds, peak, judge(case, child.returncode, seconds, peak, said), said)


def run_case(program, case):
    results = [run(program, case, words) for words in case["commands"]]
    if all(not result.fault for result in results):
        shutil.rmtree(os.path.dirname(case["path"]))
    return results


def cases(folder, only, room):
    """Generates the cases in a separate process, because a child's memory includes that of its parent until it starts its program."""
    generator = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus.py"), folder, only]
    with subprocess.Popen(generator, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        while True:
            room.acquire()
            try:
                # Unbuffered, because closing `stdin` would flush a buffer, which fails if the writer has ended.
                os.write(writer.stdin.fileno(), b"next\n")
            except BrokenPipeError:
                pass
            line = writer.stdout.readline()
            if not line:
                break
            yield json.loads(line)
    if writer.returncode != 0:
        sys.exit("corpus.py failed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("manifests")
    parser.add_argument("--only", default="")
    parser.add_argument("--sanitizer", action="store_true")
    parser.add_argument("--keep", help="where the files of the cases that fail are left")
    arguments = parser.parse_args()
    if arguments.sanitizer:
        global SCALE
        SCALE = 4
    for name in list(os.environ):
        if name.startswith("BACKPLANE_"):
            del os.environ[name]
    work = arguments.keep or tempfile.mkdtemp()
    os.makedirs(work, exist_ok=True)
    os.environ.update(BACKPLANE_BACKEND_FILES=arguments.manifests, XDG_CACHE_HOME=os.path.join(work, "cache"))
    subprocess.run([arguments.program, "list"], stdout=subprocess.DEVNULL, check=True)  # probes the backend now, not during the first cases

    results, room = [], threading.Semaphore(6)  # number of cases that are written ahead
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = []
        for case in cases(work, arguments.only, room):
            future = pool.submit(run_case, arguments.program, case)
            future.add_done_callback(lambda _: room.release())
            futures.append(future)
        for future in futures:
            results += future.result()

    families = {}
    for result in results:
        families.setdefault(result.case["family"], []).append(result)
    print(f"{'class':20} {'cases':>6} {'runs':>6} {'errors':>7} {'results':>8} {'slowest':>9} {'largest':>9} {'bad':>5}")
    for name, members in families.items():
        print(f"{name:20} {len({r.case['name'] for r in members}):6} {len(members):6} {sum(r.status != 0 for r in members):7} "
              f"{sum(r.status == 0 for r in members):8} {max(r.seconds for r in members):7.2f} s {max(r.bytes for r in members) >> 20:6} MB "
              f"{sum(bool(r.fault) for r in members):5}")
    bad = [result for result in results if result.fault]
    for result in bad:
        print(f"BAD {result.case['family']}/{result.case['name']} ({' '.join(result.words)}): {result.fault}: {result.said[:200]!r}")
    print(f"{len({(r.case['family'], r.case['name']) for r in results})} cases, {len(results)} runs, {len(bad)} bad")
    if not arguments.keep:
        shutil.rmtree(work)
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
