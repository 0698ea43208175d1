#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves a model over HTTP and runs requests in batches: server.py MODEL [--port N] [--batch N] [--wait-ms MS]

The model has one input and one output, whose first dimension is named and is the batch. POST / with one row as JSON returns one row. Requests that
arrive during a run form the next batch, so batches grow with the load, and a lone request waits only for --wait-ms.
"""
import argparse
import http.server
import json
import queue
import threading
import time

import backplane
import numpy

LONGEST = 1 << 24  # bytes of a request's body
PATIENCE = 60  # seconds for which a connection may stay silent; each open connection occupies a thread


class Batcher:
    """Runs the rows of many threads as one batch, with one bound run."""

    def __init__(self, model, batch, wait_ms):
        self.input, self.output = model.inputs[0], model.outputs[0]
        self.dimension = self.input.shape[0]
        self.batch, self.wait = batch, wait_ms / 1e3
        self.rows = numpy.zeros((batch, *self.input.shape[1:]), numpy.float32)
        self.results = numpy.zeros((batch, *self.output.shape[1:]), numpy.float32)
        session = model.compile(dims={self.dimension: (1, batch)})
        self.run = session.bind({self.input.name: self.rows}, {self.output.name: self.results})
        self.queue = queue.Queue(maxsize=16 * batch)  # further requests wait in their connections
        self.runs = self.count = 0
        threading.Thread(target=self.work, daemon=True).start()

    def __call__(self, row):
        """The result of a row; called from any thread."""
        request = {"row": row, "done": threading.Event()}
        self.queue.put(request)
        request["done"].wait()
        if "error" in request:
            raise request["error"]
        return request["result"]

    def work(self):
        while True:
            requests = [self.queue.get()]
            end = time.monotonic() + self.wait
            while len(requests) < self.batch:
                try:
                    requests.append(self.queue.get(timeout=max(0, end - time.monotonic())))
                except queue.Empty:
                    break
            try:
                for i, request in enumerate(requests):
                    self.rows[i] = request["row"]
                self.run.set_dim(self.dimension, len(requests))
                self.run()
                for request, result in zip(requests, self.results):
                    request["result"] = result.copy()
            except Exception as error:  # all rows of the batch fail; the next batch runs
                for request in requests:
                    request["error"] = error
            self.runs += 1
            self.count += len(requests)
            for request in requests:
                request["done"].set()


def not_json(word):
    raise ValueError(f"'{word}' is not a number of JSON")


def make_server(batcher, port):
    shape = tuple(batcher.input.shape[1:])

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open
        wbufsize = -1  # sends head and body in one packet: with two, the second would wait for an acknowledgment
        timeout = PATIENCE

        def body(self):
            length = self.headers.get("Content-Length", "")
            if "Transfer-Encoding" in self.headers or not length.isdecimal() or len(length) > 8 or int(length) > LONGEST:
                self.close_connection = True  # a body that is not read would be taken for the next request
                raise ValueError(f"a request needs a Content-Length of at most {LONGEST} bytes, and no other encoding")
            return self.rfile.read(int(length))

        def do_POST(self):
            try:
                row = numpy.asarray(json.loads(self.body(), parse_constant=not_json), numpy.float32)
                if row.shape != shape:
                    raise ValueError(f"a row must have the shape {list(shape)}, and this has {list(row.shape)}")
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                return self.answer(400, {"error": str(error)})
            try:
                result = batcher(row)
                if not numpy.isfinite(result).all():
                    return self.answer(500, {"error": "the result has infinities or NaN, which JSON does not have"})
                return self.answer(200, result.tolist())
            except backplane.Error as error:
                return self.answer(503 if isinstance(error, backplane.RetryError) else 500, {"error": str(error)})

        def do_GET(self):
            self.answer(200, {"requests": batcher.count, "runs": batcher.runs})

        def answer(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words):
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128

    return Server(("127.0.0.1", port), Handler)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--wait-ms", type=float, default=0.0)
    options = parser.parse_args()
    server = make_server(Batcher(backplane.load(options.model), options.batch, options.wait_ms), options.port)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
