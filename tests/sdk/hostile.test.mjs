// SPDX-License-Identifier: Apache-2.0
//
// What a hostile, broken or overloaded server can do to the client: waste a bounded amount of its time and memory.
import assert from "node:assert/strict";
import test from "node:test";
import util from "node:util";
import { answer, CALL, DONE, endless, header, KEY, load, problem, serve } from "./support.mjs";

const sdk = await load("index.js");
const { Coffer } = sdk;
const call = (coffer) => coffer.call("python", { code: "1" });

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The client fails with `kind`, and the key is nowhere in what it throws. */
async function refused(said, kind, ask = call, options = {}) {
  const server = await serve(said);
  try {
    const coffer = new Coffer({ url: server.url, key: KEY, retries: 0, ...options });
    const error = await ask(coffer).then(() => assert.fail(`it was believed: ${String(said).slice(0, 80)}`), (caught) => caught);
    assert.ok(error instanceof kind, `${error.stack}\n${String(said).slice(0, 80)}`);
    for (const text of [error.message, error.stack, util.inspect(error, { depth: 10, showHidden: true }), util.inspect(coffer, { depth: 10, showHidden: true }), String(coffer), JSON.stringify(coffer)]) {
      assert.ok(!text.includes(KEY));
    }
    return error;
  } finally {
    server.close();
  }
}

test("a call that was cut is made again with its own key", async () => {
  const server = await serve((connection) => connection.end(answer(200, DONE).subarray(0, -20)), (connection) => connection.destroy(), answer(200, DONE));
  assert.equal((await call(new Coffer({ url: server.url, key: KEY }))).stdout, "4\n");
  assert.equal(server.requests.length, 3);
  assert.equal(new Set(server.requests.map((request) => header(request, "Idempotency-Key"))).size, 1);
  await call(new Coffer({ url: server.url, key: KEY }));
  assert.notEqual(header(server.requests[3], "Idempotency-Key"), header(server.requests[0], "Idempotency-Key"));
  server.close();
});

test("what would be done twice is not made again", async () => {
  const server = await serve((connection) => connection.destroy());
  await assert.rejects(new Coffer({ url: server.url, key: KEY }).newSession(), sdk.ConnectionLost);
  assert.equal(server.requests.length, 1);
  server.close();
  for (const [said, times] of [[Buffer.from("HTTP/1.1 504 X\r\n\r\n"), 1], [Buffer.from("HTTP/1.1 503 X\r\n\r\n<html>"), 1], [problem(503, "busy", { retry_after: 0 }), 2]]) {
    const other = await serve(said);
    await assert.rejects(new Coffer({ url: other.url, key: KEY, retries: 1 }).newSession(), sdk.BusyError);
    assert.equal(other.requests.length, times, "only the daemon can say that nothing was done");
    other.close();
  }
});

test("a call in flight is waited for, a busy server asked again, but not in a thousand years", async () => {
  let server = await serve(problem(409, "idempotency.in_flight", { retry_after: 1, call_id: CALL }), answer(200, DONE, "Idempotency-Replayed: true"));
  assert.ok((await new Coffer({ url: server.url, key: KEY, retries: 0 }).call("python", {}, { idempotencyKey: 'a"b' })).replayed);
  assert.deepEqual(server.requests.map((request) => header(request, "Idempotency-Key")), ['"a\\"b"', '"a\\"b"']);
  server.close();
  server = await serve(problem(503, "busy", { retry_after: 0 }), Buffer.from("HTTP/1.1 502 X\r\n\r\n<html>"), answer(200, DONE));
  assert.ok((await call(new Coffer({ url: server.url, key: KEY }))).ok);
  server.close();
  server = await serve(problem(503, "busy", { retry_after: 1e9 }));
  await assert.rejects(call(new Coffer({ url: server.url, key: KEY })), sdk.BusyError);
  assert.equal(server.requests.length, 1);
  server.close();
  await assert.rejects(call(new Coffer({ url: "http://127.0.0.1:1", key: KEY, retries: 1 })), sdk.ConnectFailed);
});

test("a redirect is not followed", async () => {
  const other = await serve(answer(200, DONE));
  for (const status of [301, 302, 303, 307, 308]) {
    await refused(answer(status, "", `Location: ${other.url}/v1/calls`), sdk.ProtocolError);
  }
  assert.equal(other.requests.length, 0);
  const server = await serve(answer(307, "", `Location: ${other.url}/`));
  await (await fetch(server.url, { headers: { "X-Key": KEY } })).text();
  assert.ok(other.requests[0].includes(KEY), "NO-CONTROL: fetch follows it, with the header");
  server.close();
  other.close();
});

test("the key is not sent in the clear, nor with anything behind it", () => {
  assert.throws(() => new Coffer({ url: "http://coffer.example:7433", key: KEY }), (error) => !error.message.includes(KEY));
  new Coffer({ url: "http://coffer.example:7433", key: KEY, allowPlainHttp: true });
  for (const key of [KEY + "\r\nX: y", KEY + " ", "\u00e9" + KEY]) {
    assert.throws(() => new Coffer({ url: "https://coffer.example", key }), (error) => !error.message.includes(KEY));
  }
  for (const url of ["http://a@127.0.0.1:1", "http://127.0.0.1:1/x", "ftp://127.0.0.1", "unix:relative", "127.0.0.1:7433"]) {
    assert.throws(() => new Coffer({ url, key: KEY }), TypeError);
  }
});

test("a key of the environment goes where the environment says", async () => {
  const server = await serve(answer(200, { tools: [] })), other = await serve(answer(200, { tools: [] }));
  Object.assign(process.env, { COFFER_URL: server.url, COFFER_KEY: KEY });
  try {
    await new Coffer().tools();
    await new Coffer({ url: other.url }).tools();
  } finally {
    delete process.env.COFFER_URL;
    delete process.env.COFFER_KEY;
  }
  assert.deepEqual([header(server.requests[0], "Authorization"), header(other.requests[0], "Authorization")], [`Bearer ${KEY}`, null]);
  server.close();
  other.close();
});

test("a server that says the key is not quoted", async () => {
  const error = await refused(problem(401, "auth.key", { detail: `your key ${KEY} is \x1b[31mold\u202e\nx`, hint: KEY }), sdk.AuthError);
  assert.equal(error.errorClass, "auth.key");
  assert.ok(!/[\x00-\x1f\u202e]/.test(error.message));
  const spelled = [...KEY].map((letter) => `\\u${letter.codePointAt(0).toString(16).padStart(4, "0")}`).join("");
  const denied = JSON.stringify({ ...DONE, outcome: "denied", result: null, error: { class: "policy.x", message: "KEY" } });
  for (const key of [KEY, spelled]) {
    assert.match((await refused(answer(200, denied.replace("KEY", key)), sdk.CallDenied)).message, /<key>/);
  }
  assert.ok((await refused(problem(400, "x".repeat(5000), { detail: "y".repeat(1e6) }), sdk.CofferError)).message.length < 5000);
});

test("answers that are none", async () => {
  for (const said of [Buffer.from("<html>"), answer(200, "<html>"), answer(200, "[]"), answer(200, Buffer.from([0xff])), answer(200, {}),
    answer(200, '{"a":'.repeat(100000)), answer(404, "gone"), answer(200, { ...DONE, call_id: "../../keys" }),
    answer(200, { ...DONE, denials: [1] }), answer(200, { ...DONE, result: { stdout: 5 } }), answer(200, { ...DONE, outcome: "fine" }),
    answer(202, { call_id: CALL, outcome: null }), answer(200, DONE, "Content-Encoding: gzip"),
    Buffer.from("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")]) {
    await refused(said, sdk.CofferError);
  }
});

test("too much is bounded", async () => {
  const head = "HTTP/1.1 200 X\r\n\r\n", piece = "x".repeat(65536);
  await refused(endless("HTTP/1.1 200 X\r\nX: ", piece), sdk.CofferError);
  await refused(endless(head, piece), sdk.ProtocolError, (coffer) => coffer.readCallFile(CALL, "a", { maxBytes: 1 << 20 }));
  await refused(endless("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n", `10000\r\n${piece}\r\n`), sdk.ProtocolError,
    (coffer) => coffer.readCallFile(CALL, "a", { maxBytes: 1 << 20 }));
  const server = await serve(answer(202, { call_id: CALL, outcome: null, state: "running" }), endless(head + "data: ", piece));
  const stream = await new Coffer({ url: server.url, key: KEY }).stream("python");
  await assert.rejects(all(stream), sdk.ProtocolError);
  server.close();
});

test("a server that drips is left", async () => {
  const drip = (connection) => {
    const timer = setInterval(() => connection.write("HTTP/1.1 100 X\r\n\r\n"), 50);
    connection.on("close", () => clearInterval(timer));
  };
  await refused(drip, sdk.CofferError, call, { timeout: 1000 });
});

test("ids and paths of a server are no way out", async () => {
  const info = { session_id: "../keys", state: "open", agent: "a", label: null, expires_at: null, calls: 0, max_calls: null, files: { max_bytes: 1 } };
  await refused(answer(201, info), sdk.ProtocolError, (coffer) => coffer.newSession());
  for (const encoded_path of ["../../keys", "a/../b", "%2e%2E/x", "a?x=1", "a#b", "a b", "a\r\nX: y", "", "/etc", "a//b", "é"]) {
    const file = { path: "x", encoded_path, size: 1, sha256: null, modified_at: null };
    await refused(answer(200, { files: [file], next: null }), sdk.ProtocolError, (coffer) => all(coffer.callFiles(CALL)));
  }
  for (const next of ["\u{1f600}", "x".repeat(3000), "a\r\nb", ""]) {
    await refused(answer(200, { files: [], next }), sdk.ProtocolError, (coffer) => all(coffer.callFiles(CALL)));
  }
  await refused(answer(200, { files: [], next: "c" }), sdk.ProtocolError, (coffer) => all(coffer.callFiles(CALL)));
  const coffer = new Coffer({ url: "http://127.0.0.1:1", key: KEY });
  for (const path of ["../../keys", "a/../b", "", "/etc", "a//b", "a/."]) {
    await assert.rejects(async () => coffer.readCallFile(CALL, path), TypeError);
  }
  await refused(answer(200, { call_id: CALL.replace("0", "1") }), sdk.ProtocolError, (other) => other.receipt(CALL));
});

test("a call that waits for a person", async () => {
  const approval = { id: "a", digest: "d", url: "https://coffer.example/a", expires_at: null };
  const error = await refused(answer(202, { call_id: CALL, outcome: "gated", approval }), sdk.ApprovalRequired);
  assert.equal(error.approval.url, approval.url);
});

test("a person is waited for", async () => {
  const approval = { id: "a", digest: "d", url: "https://coffer.example/a", expires_at: null };
  const gated = answer(202, { call_id: CALL, outcome: "gated", approval });
  const waits = { call_id: CALL, outcome: "gated", state: "gated", tool: "python", approval, result: null, error: null, denials: [], log: null };
  const ended = { ...waits, outcome: "success", state: "finished", approval: null,
    result: { stdout: "42\n", stderr: "", truncated: false, exit: { code: 0, signal: null } } };
  const server = await serve(gated, answer(200, waits), answer(200, ended));
  const told = [];
  const result = await new Coffer({ url: server.url, key: KEY }).call("python", {}, { onApproval: (one) => told.push(one.url) });
  assert.deepEqual([told, result.stdout, server.requests.length], [[approval.url], "42\n", 3]);
  const refusal = { ...waits, outcome: "denied", state: "finished", error: { class: "policy.approval", message: "no" } };
  const denied = await serve(gated, answer(200, refusal));
  await assert.rejects(new Coffer({ url: denied.url, key: KEY }).call("python", {}, { onApproval: () => {} }), sdk.CallDenied);
  const slow = await serve(gated, ...Array(50).fill(answer(200, waits)));
  await assert.rejects(new Coffer({ url: slow.url, key: KEY }).call("python", {}, { timeout: 500, onApproval: () => {} }), sdk.ConnectionLost);
  for (const one of [server, denied, slow]) one.close();
});

test("events go on where they were cut", async () => {
  const event = (id, kind, data) => `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
  const head = "HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\nretry: 1000\n\n: hey\n\n";
  const first = event(1, "state", { state: "running" }) + event(2, "stdout", { text: "a\u00e9" });
  const second = event(3, "stderr", { base64: "/w==" }) + "event: gap\ndata: {}\n\n" + event(9, "new-kind", {}) + event(4, "state", { state: "finished" });
  const pieces = [...Buffer.from(second)].map((byte) => Buffer.from([0x31, 13, 10, byte, 13, 10]));
  const server = await serve(answer(202, { call_id: CALL, outcome: null, state: "running" }),
    Buffer.from(head + first + event(3, "stderr", { text: "half" }).slice(0, -4)),
    Buffer.concat([Buffer.from("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"), ...pieces]));
  const events = await all(await new Coffer({ url: server.url, key: KEY }).stream("python"));
  assert.deepEqual(events.map((one) => [one.kind, one.state ?? Buffer.from(one.data).toString("latin1")]),
    [["state", "running"], ["stdout", "a\u00c3\u00a9"], ["stderr", "\u00ff"], ["gap", ""], ["state", "finished"]]);
  assert.deepEqual(server.requests.slice(1).map((request) => header(request, "Last-Event-ID")), [null, "2"]);
  server.close();
});
