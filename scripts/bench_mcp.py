#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What MCP costs: the first answer, a call over stdio against the same call in process, a wrapped server against the bare one,
and whether 64 clients at the same time lose anything.

usage: bench_mcp.py BUILD [SAMPLES]      BUILD has coffer and bench/call_in_process; writes Markdown to stdout
"""
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

COFFER = os.path.abspath(sys.argv[1] + "/coffer")
IN_PROCESS = os.path.abspath(sys.argv[1] + "/bench/call_in_process")
# What `make mcp-clients` has installed, if it has run.
PACKAGES = pathlib.Path(os.path.abspath(sys.argv[1])) / "tests/mcp_clients/node_modules"
SAMPLES = int(sys.argv[2]) if len(sys.argv) > 2 else 200
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
# The smallest server that answers: what it takes itself is small beside what is measured.
SERVER = '''import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "echo", "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}}}]}
    else:
        r = {"content": [{"type": "text", "text": m["params"]["arguments"]["words"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
'''


class Client:
    def __init__(self, words, env):
        self.began = time.perf_counter()
        self.program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.next = 0

    def ask(self, method, params):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": {**params, "_meta": META}}
        self.program.stdin.write((json.dumps(message) + "\n").encode())
        self.program.stdin.flush()
        while True:
            line = self.program.stdout.readline()
            if not line:
                raise SystemExit(f"{method}: the server has ended")
            answer = json.loads(line)
            if answer.get("id") == self.next:
                return answer["result"]

    def call(self, tool, args):
        began = time.perf_counter()
        result = self.ask("tools/call", {"name": tool, "arguments": args})
        assert result.get("isError") is not True, result
        return (time.perf_counter() - began) * 1000, result

    def leave(self):
        self.program.stdin.close()
        return self.program.wait()


def p50_p99(values):
    values = sorted(values)
    return f"{statistics.median(values):.2f} | {values[min(len(values) - 1, len(values) * 99 // 100)]:.2f}"


def first_answers(env):
    taken = []
    for _ in range(max(5, SAMPLES // 10)):
        client = Client([COFFER, "mcp"], env)
        client.ask("server/discover", {})
        taken.append((time.perf_counter() - client.began) * 1000)
        client.leave()
    return taken


def calls(env):
    """Pairs of a call over stdio and the same call in process: one session, one ladder, one record."""
    session = subprocess.run([COFFER, "sessions", "new"], env=env, stdout=subprocess.PIPE, check=True, text=True).stdout.split()[0]
    client = Client([COFFER, "mcp", "--session", session], env)
    args = {"command": "true"}
    inside = subprocess.Popen([IN_PROCESS, session, "bash", json.dumps(args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def in_process():
        inside.stdin.write(b"\n")
        inside.stdin.flush()
        return float(inside.stdout.readline())

    pairs = []
    for i in range(SAMPLES + 5):
        pair = (client.call("bash", args)[0], in_process()) if i % 2 else tuple(reversed((in_process(), client.call("bash", args)[0])))
        pairs.append(pair)
    client.leave()
    inside.stdin.close()
    inside.wait()
    return [a for a, _ in pairs[5:]], [b for _, b in pairs[5:]]


def echo_server(place):
    """What it is, the command, the flags that it needs inside, the name of its echo and the argument."""
    everything = PACKAGES / "@modelcontextprotocol/server-everything/dist/index.js"
    if everything.exists():
        node = next(map(str, PACKAGES.glob("node-linux-*/bin/node")), "node")
        return "server-everything", [node, str(everything)], ["--ro", str(PACKAGES.parent)], {"message": "x"}
    script = place / "server" / "server.py"
    script.parent.mkdir()
    script.write_text(SERVER)
    return "a server of ten lines", ["python3", str(script)], ["--ro", str(script.parent)], {"words": "x"}


def wrapped(env, place):
    what, command, flags, args = echo_server(place)
    bare = Client(command, env)
    inside = Client([COFFER, "mcp", "wrap", "--name", "echo", *flags, "--", *command], env)
    bare.call("echo", args)
    inside.call("echo-echo", args)
    pairs = [(bare.call("echo", args)[0], inside.call("echo-echo", args)[0]) for _ in range(SAMPLES)]
    bare.leave()
    inside.leave()
    return what, [a for a, _ in pairs], [b for _, b in pairs]


def clients(env, config, number=64, each=2):
    def one(index):
        client = Client([COFFER, "mcp", "--config", config], env)
        got = [client.call("bash", {"command": f"echo {index}-{i}"})[1]["structuredContent"]["stdout"] for i in range(each)]
        return got == [f"{index}-{i}\n" for i in range(each)] and client.leave() == 0
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        good = sum(pool.map(one, range(number)))
    return good, number, each, time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory() as place:
        env = {"PATH": "/usr/bin:/bin", "HOME": place, "COFFER_STATE": place + "/state"}
        load = os.getloadavg()[0]
        first = first_answers(env)
        outside, in_process = calls(env)
        server, bare, inside = wrapped(env, pathlib.Path(place))
        # The usual storage of a tenant has room for 40 sessions of the usual size.
        config = pathlib.Path(place) / "coffer.toml"
        config.write_text('[storage]\nsession = "10MiB"\n')
        good, number, each, took = clients(env, str(config))
        print("# What MCP costs\n")
        print(f"Written by `make bench-mcp`: {SAMPLES} samples, {os.cpu_count()} processors, load average {load:.1f} when it began. "
              "Milliseconds. A machine that is not at rest shows larger figures.\n")
        print("| what | p50 | p99 | aim |\n|---|---|---|---|")
        print(f"| first answer of `coffer mcp` after its start | {p50_p99(first)} | p50 50 |")
        print(f"| `tools/call` of `bash` (`true`) over stdio | {p50_p99(outside)} | |")
        print(f"| the same call made in process: ladder, boundary, record | {p50_p99(in_process)} | |")
        print(f"| what stdio and MCP add to it, pair by pair | {p50_p99([a - b for a, b in zip(outside, in_process)])} | p50 1 |")
        print(f"| an echo of {server}, bare | {p50_p99(bare)} | |")
        print(f"| the same echo wrapped, checked and recorded | {p50_p99(inside)} | |")
        print(f"| what wrapping adds, pair by pair | {p50_p99([b - a for a, b in zip(bare, inside)])} | p50 2 |")
        print("\nMost of what wrapping adds is the record: log and store are written and synced before the call and after it, four times "
              "fdatasync in all.")
        print(f"\n{number} clients at the same time, each its own `coffer mcp` and {each} calls: {good} had every answer, in {took:.1f} s.")
        sys.exit(0 if good == number else 1)


main()
