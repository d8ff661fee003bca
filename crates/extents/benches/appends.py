"""Clients that append records to a log, one after the other: a file under a lock, a stream of Redis,
keys of etcd. Started by nodes.py with engine, place, name, appends, bytes of a record; prints the
seconds of each append as JSON."""

import base64
import fcntl
import http.client
import json
import os
import socket
import struct
import sys
import time

RECORD = b"r" * int(sys.argv[5])
LOCK = struct.Struct("hhqqi4x")


class File:
    """A file of a shared file system: docs/formats/nodes.md, "Protocols", without the decision."""

    def __init__(self, path, _):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self.known = 0
        self.parts = {"lock": [], "read": [], "append": [], "sync": [], "unlock": []}

    def lock(self, kind):
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLKW, LOCK.pack(kind, os.SEEK_SET, 1, 1, 0))

    def append(self):
        times = [time.monotonic()]
        for part in (self.take, self.read, self.write, lambda: os.fdatasync(self.fd), lambda: self.lock(fcntl.F_UNLCK)):
            part()
            times.append(time.monotonic())
        for name, begin, end in zip(self.parts, times, times[1:], strict=False):
            self.parts[name].append(end - begin)

    def take(self):
        self.lock(fcntl.F_WRLCK)

    def read(self):
        while tail := os.pread(self.fd, 1 << 20, self.known):
            self.known += len(tail)

    def write(self):
        self.known += os.pwrite(self.fd, RECORD, self.known)


class Redis:
    """A stream. Redis writes and syncs the records of all clients that wait at once."""

    def __init__(self, port, _):
        self.connection = socket.create_connection(("127.0.0.1", int(port)))
        self.answers = self.connection.makefile("rb")

    def call(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.answer()

    def answer(self):
        line = self.answers.readline()
        if line[:1] == b"-":
            raise SystemExit(f"redis: {line.decode()}")
        if line[:1] == b"$":
            return self.answers.read(int(line[1:]) + 2)[:-2]
        return line[1:-2]

    def append(self):
        self.call("XADD", "log", "*", "r", RECORD)


class RedisAfterReading(Redis):
    """As E1 asks: a record counts only if its author has read all earlier ones."""

    SCRIPT = "if redis.call('XLEN', 'log') == tonumber(ARGV[1]) then redis.call('XADD', 'log', '*', 'r', ARGV[2]) return -1 end return redis.call('XLEN', 'log')"

    known = 0

    def append(self):
        while (now := int(self.call("EVAL", self.SCRIPT, 0, self.known, RECORD))) >= 0:
            self.known = now
        self.known += 1


class Etcd:
    """Keys, whose revisions give the order. etcd syncs what all clients that wait have written."""

    def __init__(self, port, name):
        self.connection = http.client.HTTPConnection("127.0.0.1", int(port))
        self.name, self.count = name, 0

    def call(self, what, **body):
        self.connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"etcd: {text.decode()}")
        return json.loads(text)

    def append(self):
        self.count += 1
        key = base64.b64encode(f"log/{self.name}/{self.count}".encode()).decode()
        self.call("put", key=key, value=base64.b64encode(RECORD).decode())


ENGINES = {"file": File, "redis": Redis, "redis-e1": RedisAfterReading, "etcd": Etcd}


def main():
    engine, place, name, count = sys.argv[1:5]
    client = ENGINES[engine](place, name)
    print("ready", flush=True)
    sys.stdin.readline()
    begin, seconds = time.monotonic(), []
    for _ in range(int(count)):
        before = time.monotonic()
        client.append()
        seconds.append(time.monotonic() - before)
    print(json.dumps({"begin": begin, "end": time.monotonic(), "seconds": seconds, "parts": getattr(client, "parts", {})}))


if __name__ == "__main__":
    main()
