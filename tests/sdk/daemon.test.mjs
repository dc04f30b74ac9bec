// SPDX-License-Identifier: Apache-2.0
//
// The TypeScript client against a real daemon, which Coffer.local() starts.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { load, source } from "./support.mjs";

const sdk = await load("index.js");
const adapters = await load("adapters.js");
const { ed25519Verify } = await load("canonical.js");
const { Coffer } = sdk;
const coffer = await Coffer.local({ private: true });
test.after(() => coffer.close());

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

test("a call, its errors, and the same key", async () => {
  const result = await coffer.call("python", { code: "print(2 + 2)" }, { reason: "sums" });
  assert.deepEqual([result.stdout, result.ok, result.exitCode], ["4\n", true, 0]);
  assert.equal((await coffer.call("python", { code: "import sys; sys.exit(3)" })).exitCode, 3);
  assert.equal((await coffer.transcript(result.callId)).stdout, "4\n");
  await assert.rejects(coffer.call("python", { cod: 1 }), (error) =>
    error instanceof sdk.CallDenied && error.errorClass === "policy.args.schema" && error.denials[0].rule === "policy.args.schema");
  assert.equal((await coffer.call("no-such-tool", {}, { check: false })).outcome, "denied");
  await assert.rejects(coffer.call("bash", { command: "sleep 600" }, { limits: { wall: "1s" } }), (error) =>
    error instanceof sdk.CallTerminated && error.errorClass === "limit.wall");
  const [first, again] = [await coffer.call("python", { code: "1" }, { idempotencyKey: 'a"b' }), await coffer.call("python", { code: "1" }, { idempotencyKey: 'a"b' })];
  assert.deepEqual([again.callId, again.replayed, first.replayed], [first.callId, true, false]);
  await assert.rejects(coffer.call("python", { code: "2" }, { idempotencyKey: 'a"b' }), (error) =>
    error instanceof sdk.ConflictError && error.errorClass === "idempotency.mismatch" && error.status === 422);
  await assert.rejects(coffer.get("01a1ddf1-a908-7323-9069-8724c9a25bb1"), (error) => error instanceof sdk.NotFoundError && error.errorClass === "call.unknown");
});

test("a stream", async () => {
  const stream = await coffer.stream("python", { code: "for n in range(3): print(n, flush=True)" });
  const events = await all(stream);
  assert.equal(events.filter((one) => one.kind === "stdout").map((one) => one.text).join(""), "0\n1\n2\n");
  assert.equal(events.at(-1).state, "finished");
  assert.equal((await stream.result()).stdout, "0\n1\n2\n");
  const long = await coffer.stream("bash", { command: "echo up; sleep 600" });
  for await (const event of long) if (event.text) await long.cancel();
  await assert.rejects(long.result(), (error) => error.errorClass === "policy.cancelled");
});

test("a session, its files and a process", async () => {
  const session = await coffer.newSession({ label: "x" });
  const strange = "in/a b?#%2e\u00e9.txt";
  await session.write(strange, "hey");
  assert.equal(Buffer.from(await session.read(strange)).toString(), "hey");
  await session.call("bash", { command: "printf x > $'a\\xffb'" });
  const files = await all(session.files());
  const odd = files.find((file) => file.encodedPath === "a%FFb");
  assert.equal(Buffer.from(await session.read(odd)).toString(), "x");
  await session.remove(odd);
  assert.deepEqual((await all(session.files({ prefix: "in/" }))).map((file) => file.path), [strange]);
  assert.deepEqual([(await session.info()).label, (await session.extend(900)).state], ["x", "open"]);
  const server = await session.start("bash", { command: "echo up; exec sleep 600" });
  for await (const page of server.follow()) {
    assert.equal(page.text, "up\n");
    await server.kill();
  }
  assert.equal((await server.info()).state, "ended");
  assert.equal((await session.processes()).length, 1);
  await assert.rejects(session.start("python", { code: "1" }), sdk.CallDenied);
  await session.end();
  await session.end();
});

test("receipts are verified offline, and nothing in one can be changed", async () => {
  const results = [];
  for (let n = 0; n < 2; ++n) results.push(await coffer.call("python", { code: `print(${n})` }, { reason: "\u00e9\u20ac" }));
  const [receipt, other] = await Promise.all(results.map((result) => coffer.receipt(result.callId)));
  const { key } = await coffer.checkpoint();
  receipt.verify(key);
  const document = JSON.parse(Buffer.from(receipt.raw).toString());
  assert.equal(sdk.verifyReceipt(JSON.stringify(document), key), receipt.callId);
  let tried = 0;
  const change = (value, put) => {
    if (Array.isArray(value)) {
      value.forEach((item, n) => change(item, (made) => put(value.map((kept, m) => (m === n ? made : kept)))));
      put([...value, null]);
    } else if (value !== null && typeof value === "object") {
      for (const name of Object.keys(value)) {
        const { [name]: gone, ...rest } = value;
        put(rest);
        change(gone, (made) => put({ ...value, [name]: made }));
      }
      put({ ...value, more: null });
    } else {
      put(typeof value === "string" ? value + "x" : typeof value === "number" ? value + 1 : value === null ? 0 : !value);
    }
  };
  change(document, (made) => {
    ++tried;
    assert.throws(() => sdk.verifyReceipt(JSON.stringify(made), key), sdk.VerificationError);
  });
  assert.ok(tried > 200);
  assert.throws(() => sdk.verifyReceipt(receipt.raw, key, other.callId), sdk.VerificationError);
  const compact = JSON.stringify(document);
  for (const data of ["", "{}", "[]", "[".repeat(100000), compact + "x", compact.slice(0, -1), compact.replace('{"', '{"outcome":"success","'),
    compact.replace('"leaf":"', '"leaf":"\\ud800'), compact.replace(/:0,/, ":0.0,"), compact.replace(/:0,/, ":-0,")]) {
    assert.notEqual(data, compact);
    assert.throws(() => sdk.verifyReceipt(data, key), sdk.VerificationError);
  }
  for (const wrong of ["", "x", key.replace("coffer-log", "other-log"), key.slice(0, -4) + "AAAA"]) {
    assert.throws(() => sdk.verifyReceipt(receipt.raw, wrong), sdk.VerificationError);
  }
});

test("the vectors of Ed25519", () => {
  const { vectors } = JSON.parse(fs.readFileSync(path.join(source, "tests/sdk/vectors.json"), "utf8"));
  assert.equal(vectors.filter((one) => one.good).length, 4);
  for (const one of vectors) {
    assert.equal(ed25519Verify(...["key", "message", "signature"].map((name) => Buffer.from(one[name], "hex"))), one.good, one.why);
  }
});

test("shapes of agent frameworks", async () => {
  const tools = await adapters.described(coffer, ["python"]);
  const schema = tools[0].inputSchema;
  assert.deepEqual(schema.required, ["code"]);
  const [chat] = adapters.openaiChatTools(tools), [response] = adapters.openaiResponseTools(tools), [anthropic] = adapters.anthropicTools(tools);
  assert.deepEqual([Object.keys(chat), Object.keys(chat.function)], [["type", "function"], ["name", "description", "parameters"]]);
  assert.deepEqual(Object.keys(response), ["type", "name", "description", "parameters", "strict"]);
  assert.deepEqual(Object.keys(anthropic), ["name", "description", "input_schema"]);
  for (const found of [chat.function.parameters, response.parameters, anthropic.input_schema]) assert.deepEqual(found, schema);
  const [langchain] = adapters.langchainTools(coffer, tools);
  assert.deepEqual(Object.keys(langchain), ["name", "description", "schema", "func"]);
  assert.equal(JSON.parse(await langchain.func({ code: "print(1)" })).stdout, "1\n");
  const ai = adapters.aiSdkTools(coffer, tools, (made) => ({ made }));
  assert.deepEqual([Object.keys(ai), Object.keys(ai.python), ai.python.inputSchema.made], [["python"], ["description", "inputSchema", "execute"], schema]);
  assert.equal((await ai.python.execute({ code: "print(2)" })).stdout, "2\n");
});

test("a model asks, for what was offered and for something else", async () => {
  const args = JSON.stringify({ code: "print(6 * 7)" });
  const told = await adapters.answerOpenai(coffer, { id: "c1", type: "function", function: { name: "python", arguments: args } }, ["python"]);
  assert.deepEqual([told.role, told.tool_call_id, JSON.parse(told.content).stdout], ["tool", "c1", "42\n"]);
  const item = await adapters.answerOpenai(coffer, { type: "function_call", call_id: "c2", name: "python", arguments: args }, ["python"]);
  assert.deepEqual([item.type, item.call_id, JSON.parse(item.output).exit_code], ["function_call_output", "c2", 0]);
  const use = await adapters.answerAnthropic(coffer, { id: "t1", name: "python", input: { code: "import sys; sys.exit(2)" } }, ["python"]);
  assert.deepEqual([use.type, use.tool_use_id, use.is_error], ["tool_result", "t1", true]);
  for (const [name, input] of [["bash", { command: "true" }], ["../../keys", {}], [null, {}], ["python", "{"], ["python", "[]"],
    ["python", null], ["python", { cod: 1 }], ["toString", {}], ["__proto__", {}]]) {
    const answer = await adapters.answerAnthropic(coffer, { id: "x", name, input }, ["python"]);
    assert.ok(answer.is_error);
    assert.notEqual(JSON.parse(answer.content).outcome, "success");
  }
});

// ---- A private daemon ends with its program -------------------------------------------------------------------------

const PROGRAM = `
  const { Coffer } = await import(process.argv[1]);
  const coffer = await Coffer.local({ private: true });
  console.log(/unix:(.*)\\)/.exec(String(coffer))[1]);
  const stream = await coffer.stream("bash", { command: "echo runs; sleep 600" });
  for await (const event of stream) if (event.text) console.log("runs");
`;

async function until(condition, what) {
  for (const end = Date.now() + 60_000; !condition();) {
    assert.ok(Date.now() < end, `did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const processesOf = (state) => fs.readdirSync("/proc").filter((name) => {
  try {
    return /^\d+$/.test(name) && fs.readFileSync(`/proc/${name}/cmdline`, "utf8").includes(state);
  } catch {
    return false;
  }
});

for (const signal of ["SIGINT", "SIGKILL"]) {
  test(`the daemon ends when its program gets ${signal}`, async () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, path.join(source, "sdk/typescript/src/index.js")],
      { stdio: ["ignore", "pipe", "inherit"], detached: true });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (piece) => (said += piece));
    await until(() => said.includes("runs\n"), "the program runs");
    const state = path.dirname(said.split("\n")[0]);
    assert.ok(processesOf(state).length > 1);
    process.kill(-child.pid, signal);
    await once(child, "exit");
    await until(() => !fs.existsSync(state) && processesOf(state).length === 0, "nothing is left");
  });
}

test("a program that forgets to close ends, and its daemon with it", async () => {
  const program = `const { Coffer } = await import(process.argv[1]); const coffer = await Coffer.local({ private: true });
    console.log(/unix:(.*)\\)/.exec(String(coffer))[1]); console.log((await coffer.call("python", { code: "print(1)" })).stdout);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, path.join(source, "sdk/typescript/src/index.js")], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (piece) => (said += piece));
  const [code] = await once(child, "close");
  assert.equal(code, 0);
  const state = path.dirname(said.split("\n")[0]);
  assert.equal(said.split("\n")[1], "1");
  await until(() => !fs.existsSync(state) && processesOf(state).length === 0, "nothing is left");
});

test("a program that cannot be started", async () => {
  const before = process.env.COFFER_BIN;
  try {
    for (const program of ["/bin/false", "/nonexistent/coffer"]) {
      process.env.COFFER_BIN = program;
      await assert.rejects(Coffer.local({ private: true }), sdk.LocalDaemonError);
    }
  } finally {
    process.env.COFFER_BIN = before;
  }
});

test("the quick start of the README", async () => {
  const page = fs.readFileSync(path.join(source, "sdk/typescript/README.md"), "utf8");
  const blocks = [...page.matchAll(/```js\n(.*?)```/gs)].map((found) => found[1]);
  assert.equal(blocks[0].trimEnd().split("\n").length, 3, "the quick start has three lines");
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "sdk-readme-"));
  try {
    fs.mkdirSync(path.join(place, "node_modules"));
    fs.symlinkSync(path.join(source, "sdk/typescript"), path.join(place, "node_modules/cofferdam"));
    for (const [number, block] of blocks.entries()) {
      const file = path.join(place, `example${number}.mjs`);
      fs.writeFileSync(file, block);
      const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"], cwd: place });
      let said = "";
      child.stdout.setEncoding("utf8").on("data", (piece) => (said += piece));
      assert.equal((await once(child, "close"))[0], 0, block);
      const wanted = [...block.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map((found) => found[1]);
      assert.ok(wanted.length > 0);
      assert.deepEqual(said.trimEnd().split("\n"), wanted, block);
    }
  } finally {
    fs.rmSync(place, { recursive: true });
  }
});
