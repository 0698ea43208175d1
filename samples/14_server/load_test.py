#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends 1600 requests to the server over 1 and over 16 connections, compares each answer with NumPy's, and prints throughput and batch sizes."""
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, REQUESTS = 256, 1600
NO_LENGTH = "needs a Content-Length"
WRONG = [  # a header, the body, and what the answer says
    (None, "[1, 2]", "must have the shape"),
    (None, f"[{10**400}]", "too large"),
    (None, "[" * 100000, ""),
    (None, "", "Expecting value"),
    (("Content-Length", "-1"), "[1]", NO_LENGTH),
    (("Content-Length", "many"), "[1]", NO_LENGTH),
    (("Content-Length", "99999999999"), "[1]", NO_LENGTH),
    (("Transfer-Encoding", "chunked"), "3\r\n[1]\r\n0\r\n\r\n", NO_LENGTH),
]


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
    """Requests per second. Raises the first failure."""
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
        server = subprocess.Popen([sys.executable, "-B", pathlib.Path(__file__).with_name("server.py"), work + "/model.onnx", "--port", "0"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline().rstrip("/\n").rsplit(":", 1)[1])
            for connections in (1, 16):
                before = counts(port)
                rate = load(port, connections, rows, expected)
                after = counts(port)
                batch = (after["requests"] - before["requests"]) / (after["runs"] - before["runs"])
                print(f"{connections:2} connections: {rate:.0f} requests/s, {batch:.1f} rows in a batch")
            if batch <= 1.2:
                sys.exit("14_server: requests of 16 connections were not batched")
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
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
