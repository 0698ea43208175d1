#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends 1600 requests to the server over 1 and over 16 connections, compares each answer with NumPy's, and prints throughput and batch sizes.
Then sends requests that the server must refuse.

Before that, one request of each of 16 connections arrives during the first run, or before it: at most two runs may serve them.
"""
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import server

WIDTH, REQUESTS, CONNECTIONS = 256, 1600, 16
NO_LENGTH = "needs a Content-Length"
WRONG = [  # a header, the body, and what the answer says
    (None, "[1, 2]", "must have the shape"),
    (None, f"[{10**400}]", "too large"),
    (None, "[" * 100000, ""),
    (None, "", "Expecting value"),
    (None, "[NaN]", "'NaN' is not a number of JSON"),
    (("Content-Length", "-1"), "[1]", NO_LENGTH),
    (("Content-Length", "many"), "[1]", NO_LENGTH),
    (("Content-Length", "99999999999"), "[1]", NO_LENGTH),
    (("Transfer-Encoding", "chunked"), "3\r\n[1]\r\n0\r\n\r\n", NO_LENGTH),
]


class Held:
    """Wraps a batcher's run. The first run waits, for half a minute at most, until the requests of all connections are in its batch or in the queue."""

    def __init__(self, batcher):
        self.batcher, self.run = batcher, batcher.run

    def set_dim(self, dimension, rows):
        end = time.monotonic() + 30
        while self.batcher.runs == 0 and rows + self.batcher.queue.qsize() < CONNECTIONS and time.monotonic() < end:
            time.sleep(0.001)
        self.run.set_dim(dimension, rows)

    def __call__(self):
        self.run()


def serve():
    """Runs server.py, with a first run that is held."""

    class Batcher(server.Batcher):
        def __init__(self, *how):
            super().__init__(*how)
            self.run = Held(self)

    server.Batcher = Batcher
    server.main()


def make_model(path):
    """Two wide layers, so a batch costs little more than a row."""
    rng = numpy.random.default_rng(1)
    weights = [rng.standard_normal((a, b), dtype=numpy.float32) / 16 for a, b in ((WIDTH, 2048), (2048, 4))]
    value = lambda name, width: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("Relu", ["h"], ["r"]), helper.make_node("MatMul", ["r", "w1"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", WIDTH)], [value("y", 4)],
                              [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return weights


def load(port, connections, rows, expected):
    """Returns the requests per second. Exits if an answer is wrong or missing."""
    failures = []

    def client(first):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            for i in range(first, len(rows), connections):
                connection.request("POST", "/", json.dumps(rows[i].tolist()))
                response = connection.getresponse()
                answer = json.loads(response.read())
                if response.status != 200 or not numpy.allclose(answer, expected[i], rtol=1e-3, atol=1e-4):
                    failures.append((i, response.status, answer))
        except OSError as error:
            failures.append((first, error))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(connections)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"14_server: {len(failures)} wrong answers, first {failures[0]}")
    return len(rows) / (time.perf_counter() - start)


def counts(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    return json.loads(connection.getresponse().read())


def main():
    with tempfile.TemporaryDirectory() as work:
        w0, w1 = make_model(work + "/model.onnx")
        rows = numpy.random.default_rng(2).standard_normal((REQUESTS, WIDTH), dtype=numpy.float32)
        expected = numpy.maximum(rows @ w0, 0) @ w1
        process = subprocess.Popen([sys.executable, "-B", __file__, work + "/model.onnx", "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(process.stdout.readline().rstrip("/\n").rsplit(":", 1)[1])
            load(port, CONNECTIONS, rows[:CONNECTIONS], expected)
            if (runs := counts(port)["runs"]) > 2:
                sys.exit(f"14_server: {CONNECTIONS} requests that arrived during a run took {runs} runs: they were not batched")
            for connections in (1, CONNECTIONS):
                before = counts(port)
                rate = load(port, connections, rows, expected)
                after = counts(port)
                batch = (after["requests"] - before["requests"]) / (after["runs"] - before["runs"])
                print(f"{connections:2} connections: {rate:.0f} requests/s, {batch:.1f} rows in a batch")
            for head, body, text in WRONG:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.putrequest("POST", "/")
                connection.putheader(*(head or ("Content-Length", len(body))))
                connection.endheaders(body.encode())
                response = connection.getresponse()
                answer = response.read().decode()
                if response.status != 400 or text not in answer:
                    sys.exit(f"14_server: {head} {body[:20]} got {response.status} {answer}")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    serve() if sys.argv[1:] else main()
