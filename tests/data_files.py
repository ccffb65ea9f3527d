"""Files of published formats, made up, and a server on loopback that hands files out."""

import functools
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


def write_cifar10(folder, train, test):
    """Batches of that many records each; gives the images and the labels by split."""
    rng = np.random.default_rng(0)
    images, labels = {}, {}
    batches = {"train": [f"data_batch_{n}.bin" for n in range(1, 6)], "test": ["test_batch.bin"]}
    for split, size in (("train", train), ("test", test)):
        count = size * len(batches[split])
        images[split] = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        labels[split] = np.arange(count) % 10
        planes = images[split].transpose(0, 3, 1, 2).reshape(count, -1)
        records = np.column_stack([labels[split], planes]).astype(np.uint8)
        for number, name in enumerate(batches[split]):
            records[number * size : (number + 1) * size].tofile(folder / name)
    return images, labels


class Handler(BaseHTTPRequestHandler):
    """Serves files whole, or from where it is asked; cut after a third under /cut/."""

    def __init__(self, files, requests, *arguments):
        self.files, self.requests = files, requests
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def do_GET(self):
        start = int(self.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
        self.requests.append((self.path, start))
        *folders, name = self.path.split("/")
        if name not in self.files:
            self.send_error(404)
            return
        if start >= len(self.files[name]):
            self.send_error(416)
            return
        start = 0 if "no-ranges" in folders else start
        body = self.files[name][start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(self.files[name]) // 3] if "cut" in folders else body)


@contextmanager
def serve(files):
    """A server with an `url`, and `requests`: (path, first byte) of each that it got."""
    requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, files, requests))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url, server.requests = f"http://127.0.0.1:{server.server_port}", requests
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
