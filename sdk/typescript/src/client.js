// SPDX-License-Identifier: Apache-2.0
//
// The client. Calls may run side by side: every operation has a connection of its own.
import { randomUUID } from "node:crypto";
import * as errors from "./errors.js";
import { defaultSocket, isListening, LocalDaemon } from "./local.js";
import * as read from "./reading.js";
import { Receipt } from "./receipts.js";
import { Requests, sleep } from "./requests.js";
import { CallStream, readFile, Session } from "./session.js";
import { Endpoint } from "./transport.js";
import { approvalOf, callOf, fileOf, sessionOf, toolOf } from "./values.js";

/** @typedef {import("./values.js").CallResult} CallResult */
/** @typedef {import("./values.js").FileInfo} FileInfo */
/** @typedef {import("./values.js").SessionInfo} SessionInfo */
/** @typedef {import("./values.js").ToolInfo} ToolInfo */
/** @typedef {{ [name: string]: unknown }} Args */
/** @typedef {import("./values.js").Approval} Approval */
/**
 * @typedef {object} CallOptions
 * @property {string} [sessionId]
 * @property {string} [parentId]
 * @property {boolean} [dryRun] decide, and run nothing
 * @property {{ [name: string]: string | number }} [limits] less than the manifest allows: { memory: "64MiB", wall: "5s" }
 * @property {string} [reason] what it is for; it is recorded and decides nothing
 * @property {string} [idempotencyKey] made if not given; all retries of the call use the same
 * @property {number} [timeout] milliseconds
 * @property {boolean} [check] false: a call that was refused or killed is a result, not an error
 * @property {(approval: Approval) => unknown} [onApproval] told where a person decides; then the call is waited for. Without it such a
 *   call is ApprovalRequired. Give it a `timeout` that a person can keep
 */
/**
 * @typedef {object} ClientOptions
 * @property {string} [url] http://HOST:PORT, https://HOST:PORT or unix:PATH; COFFER_URL (and COFFER_KEY) if not given
 * @property {string} [key]
 * @property {number} [timeout] milliseconds for one operation with all its retries
 * @property {number} [retries]
 * @property {string | Buffer} [ca] certificates to trust, in PEM
 * @property {boolean} [allowPlainHttp] something else encrypts the way
 */
/** @typedef {{ private?: boolean, state?: string, tools?: string[], timeout?: number, retries?: number }} LocalOptions */

const TIMEOUT = 300_000;
const RETRIES = 4;

/** The result; or, with `check`, an error if the tool did not come to its own end. @param {CallResult} result @param {boolean} check */
function judged(result, check) {
  if (!check) return result;
  if (result.outcome === "denied") throw new errors.CallDenied(result);
  if (result.outcome === "terminated") throw new errors.CallTerminated(result);
  if (result.outcome === "unknown") throw new errors.CallUnknown(result);
  if (result.outcome === "error" && result.error !== null) throw new errors.CallFailed(result);
  return result;
}

export class Coffer {
  #requests;
  /** @type {LocalDaemon | null} */
  #daemon = null;

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    const url = options.url ?? process.env["COFFER_URL"];
    if (!url) throw new TypeError("no URL: give one, set COFFER_URL and COFFER_KEY, or use Coffer.local()");
    // A key from the environment goes only where the environment says.
    const key = options.key ?? (options.url === undefined ? process.env["COFFER_KEY"] : undefined) ?? null;
    this.#requests = new Requests(new Endpoint(url, key, options), options.timeout ?? TIMEOUT, options.retries ?? RETRIES);
  }

  /**
   * The daemon of this user if one runs; otherwise a private one, which ends with this program. `private`, `state` or
   * `tools` always start one of its own. A private daemon's record is removed at its end; `state` names a directory that
   * keeps it. `tools` are directories of manifests.
   * @param {LocalOptions} [options] @returns {Promise<Coffer>}
   */
  static async local(options = {}) {
    const socket = defaultSocket();
    const own = options.private || options.state !== undefined || options.tools !== undefined;
    const daemon = !own && socket !== null && (await isListening(socket)) ? null : await LocalDaemon.start(options);
    /** @type {ClientOptions} */
    const made = { url: daemon === null ? `unix:${socket}` : daemon.url };
    if (options.timeout !== undefined) made.timeout = options.timeout;
    if (options.retries !== undefined) made.retries = options.retries;
    const coffer = new Coffer(made);
    coffer.#daemon = daemon;
    return coffer;
  }

  toString() {
    return `Coffer(${this.#requests.endpoint})`;
  }

  /** Ends the private daemon, if there is one. @returns {Promise<void>} */
  async close() {
    const daemon = this.#daemon;
    this.#daemon = null;
    await daemon?.close();
  }

  /** For `await using`. @returns {Promise<void>} */
  [Symbol.asyncDispose]() {
    return this.close();
  }

  /**
   * Runs a tool and waits for its end. A tool that ends with another status than 0 is a result (`ok` is false). A call that
   * was refused, killed or lost is an error: CallDenied, CallTerminated, CallUnknown, CallFailed.
   * @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallResult>}
   */
  call(tool, args = {}, options = {}) {
    return this.#call(tool, args, options, false);
  }

  /** Starts a call; what is returned gives its events as they come, then its result.
   * @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallStream>} */
  async stream(tool, args = {}, options = {}) {
    return new CallStream(this, this.#requests, (await this.#call(tool, args, options, true)).callId);
  }

  /** @param {string} tool @param {Args} args @param {CallOptions} options @param {boolean} later @returns {Promise<CallResult>} */
  async #call(tool, args, options, later) {
    const key = options.idempotencyKey ?? randomUUID();
    if (!/^[!-~]{1,255}$/.test(key)) throw new TypeError("an idempotency key has 1 to 255 visible ASCII characters");
    /** @type {Args} */
    const body = { tool: read.givenTool(tool), args };
    if (options.sessionId !== undefined) body["session_id"] = read.givenId(options.sessionId);
    if (options.parentId !== undefined) body["parent_id"] = read.givenId(options.parentId);
    if (options.dryRun) body["dry_run"] = true;
    if (options.limits !== undefined) body["limits"] = options.limits;
    if (options.reason !== undefined) body["reason"] = options.reason;
    /** @type {{ [name: string]: string }} */
    const headers = { "Idempotency-Key": `"${key.replace(/["\\]/g, "\\$&")}"` };
    if (later) headers["Prefer"] = "respond-async";
    const until = performance.now() + (options.timeout ?? this.#requests.timeout);
    const answer = await this.#requests.post("/v1/calls", body, true, headers, options.timeout);
    const value = this.#requests.parse(answer.body);
    if (value["outcome"] === "gated") {
      const callId = read.answeredId(value, "call_id");
      const approval = approvalOf(read.member(value, "approval"));
      if (options.onApproval === undefined) throw new errors.ApprovalRequired(callId, approval);
      await options.onApproval(approval);
      if (!later) return this.wait(callId, { timeout: until - performance.now(), check: options.check ?? true });
      return callOf({ call_id: callId, outcome: null });
    }
    if (answer.status === 202 && !later) {
      throw new errors.ProtocolError("the server answered before the call has ended, which was not asked for");
    }
    return judged(callOf(value, answer.headers["idempotency-replayed"] === "true"), options.check ?? true);
  }

  /** @param {string} callId @returns {Promise<CallResult>} */
  async get(callId) {
    return callOf(await this.#requests.get(placeOfCall(callId)));
  }

  /** Waits until a call that was started elsewhere has ended.
   * @param {string} callId @param {{ timeout?: number, check?: boolean }} [options] @returns {Promise<CallResult>} */
  async wait(callId, options = {}) {
    const until = performance.now() + (options.timeout ?? this.#requests.timeout);
    for (let pause = 20; ; pause = Math.min(pause * 1.5, 1000)) {
      const result = await this.get(callId);
      if (result.state === "finished") return judged(result, options.check ?? true);
      if (performance.now() + pause >= until) throw new errors.ConnectionLost("the call has not ended in time; it goes on");
      await sleep(pause);
    }
  }

  /** @param {string} callId @returns {Promise<void>} */
  async cancel(callId) {
    await this.#requests.post(`${placeOfCall(callId)}/cancel`, {}, true);
  }

  /** @param {string} callId @returns {Promise<Receipt>} */
  async receipt(callId) {
    const answer = await this.#requests.send({ method: "GET", target: `${placeOfCall(callId)}/receipt` }, true);
    return new Receipt(answer.body, callId);
  }

  /** What it ran and printed, or null if that is not kept. @param {string} callId @returns {Promise<Args | null>} */
  async transcript(callId) {
    const value = await this.#requests.get(`${placeOfCall(callId)}/transcript`);
    return read.has(value, "transcript") ? read.member(value, "transcript") : null;
  }

  /** @param {string} callId @returns {AsyncGenerator<FileInfo>} */
  callFiles(callId) {
    return this.#requests.pages(`${placeOfCall(callId)}/files`, "files", fileOf);
  }

  /** @param {string} callId @param {string | FileInfo} path @param {{ maxBytes?: number }} [options] @returns {Promise<Uint8Array>} */
  readCallFile(callId, path, options = {}) {
    return readFile(this.#requests, placeOfCall(callId), path, options.maxBytes);
  }

  /** The log's newest signed checkpoint, and the public key that the server says is the log's. @returns {Promise<{ checkpoint: string, key: string }>} */
  async checkpoint() {
    const value = await this.#requests.get("/v1/audit/checkpoint");
    return { checkpoint: read.text(value, "checkpoint"), key: read.text(value, "key") };
  }

  /** @returns {Promise<ToolInfo[]>} */
  async tools() {
    return read.objects(await this.#requests.get("/v1/tools"), "tools").map(toolOf);
  }

  /** @param {string} name @returns {Promise<ToolInfo>} */
  async tool(name) {
    return toolOf(await this.#requests.get(`/v1/tools/${read.givenTool(name)}`));
  }

  /** @param {{ lifetimeSeconds?: number, maxCalls?: number, label?: string }} [options] @returns {Promise<Session>} */
  async newSession(options = {}) {
    const body = { lifetime_seconds: options.lifetimeSeconds, max_calls: options.maxCalls, label: options.label };
    const answer = await this.#requests.post("/v1/sessions", body);
    return new Session(this, this.#requests, sessionOf(this.#requests.parse(answer.body)).sessionId);
  }

  /** A session that exists already. @param {string} sessionId @returns {Promise<Session>} */
  async session(sessionId) {
    const value = await this.#requests.get(`/v1/sessions/${read.givenId(sessionId)}`);
    return new Session(this, this.#requests, sessionOf(value).sessionId);
  }

  /** @returns {AsyncGenerator<SessionInfo>} */
  sessions() {
    return this.#requests.pages("/v1/sessions", "sessions", sessionOf);
  }
}

/** @param {string} callId */
const placeOfCall = (callId) => `/v1/calls/${read.givenId(callId)}`;
