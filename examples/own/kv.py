#!/usr/bin/env python3
"""kv.py serve ADDR PORT LOG | count SERVER... | clear SERVER... | client

A key-value server, and a client that speaks Skerry's protocol of lines. Between them goes
one JSON object a line; values stay in Base64, as they come from Skerry. Every write is in
the server's log before it is acknowledged, and read back from it at the next start.
"""
import json, os, socket, socketserver, sys, threading, zlib


def pick(row, q):
    return {f: row[f] for f in q.get("fields") or row if f in row}


def serve(addr, port, path):
    rows, lock = {}, threading.Lock()

    def apply(op, key, values):
        if op == "insert":
            rows[key] = dict(values)
        elif op == "update":
            rows[key].update(values)
        elif op == "delete":
            del rows[key]
        elif op == "clear":
            rows.clear()

    if os.path.exists(path):
        whole = open(path).read()
        whole = whole[: whole.rfind("\n") + 1]  # a last line that was cut off counts for nothing
        with open(path, "w") as f:
            f.write(whole)
        for line in whole.splitlines():
            apply(*json.loads(line))
    log = open(path, "a")

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                q = json.loads(line)
                with lock:
                    answer = self.answer(q)
                self.wfile.write(json.dumps(answer).encode() + b"\n")

        def answer(self, q):
            op, table = q["op"], q.get("table", "") + "/"
            key = table + q.get("key", "")
            if op == "count":
                return {"count": len(rows)}
            if op == "scan":
                found = sorted(k for k in rows if k.startswith(table) and k >= key)[: q["count"]]
                return {"status": "ok", "records": [{"key": k[len(table):], "values": pick(rows[k], q)} for k in found]}
            if op in ("read", "update", "delete") and key not in rows:
                return {"status": "not_found"}
            if op == "read":
                return {"status": "ok", "values": pick(rows[key], q)}
            log.write(json.dumps([op, key, q.get("values")]) + "\n")
            log.flush()
            apply(op, key, q.get("values"))
            return {"status": "ok"}

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads = True, True

    Server((addr, int(port)), Handler).serve_forever()


class Connection:
    def __init__(self, server):
        host, port = server.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, q):
        self.socket.sendall(json.dumps(q).encode() + b"\n")
        line = self.file.readline()
        if not line:
            raise ConnectionError("the server ended the connection")
        return json.loads(line)


def client():
    servers, open_ = [], {}
    for line in sys.stdin:
        q = json.loads(line)
        if q["op"] == "close":
            return
        if q["op"] == "open":
            servers = q["properties"]["servers"].split()
            a = {"status": "ok"}
        elif q["op"] == "scan":
            a = scan(q, servers, open_)
        else:
            a = operate(q, servers[zlib.crc32(q["key"].encode()) % len(servers)], open_)
        print(json.dumps(dict(a, id=q["id"])), flush=True)


def scan(q, servers, open_):
    records = []
    for server in servers:
        a = operate(q, server, open_)
        if a["status"] != "ok":
            return a
        records += a["records"]
    return {"status": "ok", "records": sorted(records, key=lambda r: r["key"])[: q["count"]]}


def operate(q, server, open_):
    try:
        if server not in open_:
            open_[server] = Connection(server)
    except OSError as e:  # nothing was sent: it certainly was not done
        return {"status": "failed", "class": "refused", "node": server, "message": str(e)}
    try:
        return open_[server].ask(q)
    except OSError as e:
        del open_[server]
        return {"status": "unknown", "class": "eof", "node": server, "message": str(e)}


if __name__ == "__main__":
    command, args = sys.argv[1], sys.argv[2:]
    if command == "serve":
        serve(*args)
    elif command == "client":
        client()
    else:
        for s in args:
            print(Connection(s).ask({"op": command}).get("count", ""))
