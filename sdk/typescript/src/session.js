// SPDX-License-Identifier: Apache-2.0
//
// What belongs to one session, one process or one running call.
import { Buffer } from "node:buffer";
import * as errors from "./errors.js";
import * as read from "./reading.js";
import { sleep } from "./requests.js";
import { MAX_FILE } from "./transport.js";
import { callOf, fileOf, logPageOf, processOf, sessionOf } from "./values.js";

/** @typedef {import("./client.js").Coffer} Coffer */
/** @typedef {import("./client.js").CallOptions} CallOptions */
/** @typedef {import("./requests.js").Requests} Requests */
/** @typedef {import("./values.js").CallResult} CallResult */
/** @typedef {import("./values.js").CallEvent} CallEvent */
/** @typedef {import("./values.js").FileInfo} FileInfo */
/** @typedef {import("./values.js").LogPage} LogPage */
/** @typedef {import("./values.js").ProcessInfo} ProcessInfo */
/** @typedef {import("./values.js").SessionInfo} SessionInfo */
/** @typedef {{ [name: string]: unknown }} Args */
/** @typedef {"TERM" | "INT" | "QUIT" | "HUP" | "USR1" | "USR2"} Signal */

/** A running call. Iterating gives its events until it has ended. */
export class CallStream {
  #coffer;
  #requests;

  /** @param {Coffer} coffer @param {Requests} requests @param {string} callId */
  constructor(coffer, requests, callId) {
    this.#coffer = coffer;
    this.#requests = requests;
    this.callId = callId;
  }

  /** @returns {AsyncGenerator<CallEvent>} */
  [Symbol.asyncIterator]() {
    return this.#requests.events(this.callId);
  }

  /** Waits for the end. @param {{ timeout?: number, check?: boolean }} [options] @returns {Promise<CallResult>} */
  result(options = {}) {
    return this.#coffer.wait(this.callId, options);
  }

  /** @returns {Promise<void>} */
  cancel() {
    return this.#coffer.cancel(this.callId);
  }
}

/** A process in the background of a session. */
export class Process {
  #requests;
  #place;

  /** @param {Requests} requests @param {string} sessionId @param {string} processId */
  constructor(requests, sessionId, processId) {
    this.#requests = requests;
    this.#place = `/v1/sessions/${read.givenId(sessionId)}/processes/${read.givenId(processId)}`;
    this.processId = processId;
  }

  /** @returns {Promise<ProcessInfo>} */
  async info() {
    return processOf(await this.#requests.get(this.#place));
  }

  /** What it printed from `offset` on; `follow` waits so many seconds (at most 30) for something.
   * @param {number} [offset] @param {{ follow?: number }} [options] @returns {Promise<LogPage>} */
  async log(offset = 0, options = {}) {
    return logPageOf(await this.#requests.get(`${this.#place}/log`, { offset, follow: options.follow ?? 0 }));
  }

  /** What it prints, until it has ended. @param {number} [offset] @returns {AsyncGenerator<LogPage>} */
  async *follow(offset = 0) {
    for (;;) {
      const page = await this.log(offset, { follow: 10 });
      if (page.text !== "") yield page;
      if (page.ended) return;
      if (page.next < offset) throw new errors.ProtocolError("the server's log goes backwards");
      offset = page.next;
      if (page.text === "") await sleep(50); // a server that does not wait is not asked all the time
    }
  }

  /** @param {Signal} name @returns {Promise<void>} */
  async signal(name) {
    await this.#requests.post(`${this.#place}/signal`, { signal: name });
  }

  /** @returns {Promise<void>} */
  async kill() {
    await ignoring("process.ended", this.#requests.send({ method: "DELETE", target: this.#place }, false));
  }
}

/** Files that live as long as the session; calls and processes that share them. */
export class Session {
  #coffer;
  #requests;
  #place;

  /** @param {Coffer} coffer @param {Requests} requests @param {string} sessionId */
  constructor(coffer, requests, sessionId) {
    this.#coffer = coffer;
    this.#requests = requests;
    this.sessionId = sessionId;
    this.#place = `/v1/sessions/${read.givenId(sessionId)}`;
  }

  /** @returns {Promise<SessionInfo>} */
  async info() {
    return sessionOf(await this.#requests.get(this.#place));
  }

  /** @param {number} lifetimeSeconds @returns {Promise<SessionInfo>} */
  async extend(lifetimeSeconds) {
    const answer = await this.#requests.post(`${this.#place}/extend`, { lifetime_seconds: lifetimeSeconds }, true);
    return sessionOf(this.#requests.parse(answer.body));
  }

  /** Kills what runs in it and removes its files. @returns {Promise<void>} */
  async end() {
    await ignoring("session.ended", this.#requests.send({ method: "DELETE", target: this.#place }, false));
  }

  /** For `await using`. @returns {Promise<void>} */
  [Symbol.asyncDispose]() {
    return this.end();
  }

  /** @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallResult>} */
  call(tool, args = {}, options = {}) {
    return this.#coffer.call(tool, args, { ...options, sessionId: this.sessionId });
  }

  /** @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallStream>} */
  stream(tool, args = {}, options = {}) {
    return this.#coffer.stream(tool, args, { ...options, sessionId: this.sessionId });
  }

  /** @param {{ prefix?: string }} [options] @returns {AsyncGenerator<FileInfo>} */
  files(options = {}) {
    return this.#requests.pages(`${this.#place}/files`, "files", fileOf, { prefix: options.prefix });
  }

  /** @param {string | FileInfo} path @param {{ maxBytes?: number }} [options] @returns {Promise<Uint8Array>} */
  read(path, options = {}) {
    return readFile(this.#requests, this.#place, path, options.maxBytes);
  }

  /** @param {string} path @param {Uint8Array | string} data @returns {Promise<FileInfo>} */
  async write(path, data) {
    const answer = await this.#requests.send({ method: "PUT", target: `${this.#place}/files/${encoded(path)}`,
      headers: { "Content-Type": "application/octet-stream" }, body: typeof data === "string" ? Buffer.from(data) : data }, true);
    return fileOf(this.#requests.parse(answer.body));
  }

  /** @param {string | FileInfo} path @returns {Promise<void>} */
  async remove(path) {
    await this.#requests.send({ method: "DELETE", target: `${this.#place}/files/${encoded(path)}` }, false);
  }

  /**
   * Starts a process in the background; the session's later calls reach the `ports` that it listens on.
   * @param {string} tool @param {Args} [args]
   * @param {{ ports?: number[], limits?: { [name: string]: string | number }, reason?: string }} [options]
   * @returns {Promise<Process>}
   */
  async start(tool, args = {}, options = {}) {
    const answer = await this.#requests.post(`${this.#place}/processes`, { ...options, tool: read.givenTool(tool), args });
    const value = this.#requests.parse(answer.body);
    if (answer.status !== 201) throw new errors.CallDenied(callOf(value));
    return new Process(this.#requests, this.sessionId, processOf(value).processId);
  }

  /** @returns {Promise<ProcessInfo[]>} */
  async processes() {
    return read.objects(await this.#requests.get(`${this.#place}/processes`), "processes").map(processOf);
  }
}

/** @param {Requests} requests @param {string} place @param {string | FileInfo} path @param {number} [maxBytes] @returns {Promise<Uint8Array>} */
export async function readFile(requests, place, path, maxBytes = MAX_FILE) {
  return (await requests.send({ method: "GET", target: `${place}/files/${encoded(path)}`, maxBody: maxBytes }, true)).body;
}

/** @param {string | FileInfo} path */
const encoded = (path) => (typeof path === "string" ? read.givenPath(path) : path.encodedPath);

/** @param {string} errorClass @param {Promise<unknown>} work */
async function ignoring(errorClass, work) {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof errors.ConflictError && error.errorClass === errorClass)) throw error;
  }
}
