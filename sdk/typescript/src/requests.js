// SPDX-License-Identifier: Apache-2.0
//
// Requests with retries. When a request is sent again:
//   - no connection could be made, or the daemon refused it for now (429 or 503, as a problem): any request;
//   - the connection was cut, or something before the daemon answered for it (502, 503, 504), so that it may have been
//     carried out: a request that does the same if it is made twice. GET and PUT do; a call does because every call has an
//     idempotency key, and all attempts use the same one, so that the tool runs once.
// A server cannot make the client wait longer than MAX_WAIT at a time, nor beyond the operation's timeout.
import { Buffer } from "node:buffer";
import * as errors from "./errors.js";
import { EventReader } from "./events.js";
import * as read from "./reading.js";
import { lost, whole } from "./transport.js";

/** @typedef {import("./transport.js").Endpoint} Endpoint */
/** @typedef {import("./transport.js").Request} Request */
/** @typedef {import("./transport.js").Answer} Answer */
/** @typedef {import("./reading.js").Json} Json */
/** @typedef {import("./values.js").CallEvent} CallEvent */

const MAX_WAIT = 30_000;
const STREAM_SILENCE = 60_000; // the server sends a comment every 15 s

/** @param {number} ms @returns {Promise<void>} */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Requests {
  /** @param {Endpoint} endpoint @param {number} timeout milliseconds for one operation @param {number} retries */
  constructor(endpoint, timeout, retries) {
    this.endpoint = endpoint;
    this.timeout = timeout;
    this.retries = retries;
  }

  /**
   * @param {Request} request @param {boolean} again it may be made twice @param {number} [timeout]
   * @returns {Promise<Answer>}
   */
  async send(request, again, timeout = this.timeout) {
    const until = performance.now() + timeout;
    for (let attempt = 1; ; ++attempt) {
      let wait = Math.min(100 * 2 ** attempt, 5000) * (0.5 + Math.random() / 2);
      /** @type {unknown} */
      let failure;
      try {
        const answer = await this.endpoint.send(request, until - performance.now());
        if (answer.status < 400) return answer;
        failure = this.problem(answer.status, answer.body);
      } catch (error) {
        failure = error;
      }
      if (failure instanceof errors.ConflictError && failure.errorClass === "idempotency.in_flight") {
        --attempt; // the first attempt still runs: its answer comes when it has ended
        wait = 1000 * (failure.retryAfter || 1);
      } else if (failure instanceof errors.BusyError && (again || failure.refused)) {
        wait = Math.max(wait, 1000 * (failure.retryAfter ?? 0));
      } else if (!(failure instanceof errors.ConnectFailed) && !(again && failure instanceof errors.ConnectionLost)) {
        throw failure;
      }
      if (attempt > this.retries || wait > MAX_WAIT || performance.now() + wait >= until) throw failure;
      await sleep(wait);
    }
  }

  /** The error that an answer is. @param {number} status @param {Buffer} body @returns {errors.CofferError} */
  problem(status, body) {
    const busy = [502, 503, 504].includes(status);
    let problem;
    try {
      const value = this.parse(body);
      const wait = read.optionalInteger(value, "retry_after");
      problem = {
        status, code: read.text(value, "code"), detail: read.text(value, "detail"), hint: read.optionalText(value, "hint"),
        retryAfter: wait === null ? null : Math.max(0, wait),
        callId: read.has(value, "call_id") ? read.answeredId(value, "call_id") : null,
      };
    } catch {
      if (!busy) return new errors.ProtocolError(`the server answered with status ${status} and something that is not a problem`);
      return new errors.BusyError({ status, code: "client.unavailable", detail: "something before the server answers for it",
        hint: null, retryAfter: null, callId: null });
    }
    if (status === 401 || status === 403) return new errors.AuthError(problem);
    if (status === 404) return new errors.NotFoundError(problem);
    if (status === 409 || status === 422) return new errors.ConflictError(problem);
    if (busy || (status === 429 && problem.retryAfter !== null)) return new errors.BusyError(problem);
    return new errors.ApiError(problem);
  }

  /** @param {string} target @param {{ [name: string]: string | number | null | undefined }} [query] @returns {Promise<Json>} */
  async get(target, query = {}) {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined) given.set(name, String(value));
    const answer = await this.send({ method: "GET", target: [...given].length > 0 ? `${target}?${given}` : target }, true);
    return this.parse(answer.body);
  }

  /** An answer's JSON, without the key: a server may send it back, and texts of answers end up in logs. @param {Buffer} body @returns {Json} */
  parse(body) {
    return read.parseObject(body, (text) => this.endpoint.hide(text));
  }

  /**
   * @param {string} target @param {{ [name: string]: unknown }} body @param {boolean} [again]
   * @param {{ [name: string]: string }} [headers] @param {number} [timeout] @returns {Promise<Answer>}
   */
  post(target, body, again = false, headers = {}, timeout = this.timeout) {
    return this.send({ method: "POST", target, headers: { "Content-Type": "application/json", ...headers },
      body: Buffer.from(JSON.stringify(body)) }, again, timeout);
  }

  /**
   * All items of a list, page by page.
   * @template T
   * @param {string} target @param {string} name @param {(value: Json) => T} make
   * @param {{ [name: string]: string | null | undefined }} [query]
   * @returns {AsyncGenerator<T>}
   */
  async *pages(target, name, make, query = {}) {
    /** @type {string | null} */
    let cursor = null;
    do {
      /** @type {Json} */
      const value = await this.get(target, { ...query, cursor });
      for (const item of read.objects(value, name)) yield make(item);
      const next = read.answeredCursor(value);
      if (next !== null && next === cursor) throw new errors.ProtocolError("the server's list goes round in a circle");
      cursor = next;
    } while (cursor !== null);
  }

  /**
   * Everything that a call says until it has ended; goes on where it was when the connection is cut.
   * @param {string} callId @returns {AsyncGenerator<CallEvent>}
   */
  async *events(callId) {
    const target = `/v1/calls/${read.givenId(callId)}/events`;
    /** @type {number | null} */
    let last = null;
    for (let idle = 0; ;) {
      /** @type {EventReader} */
      const reader = new EventReader(last);
      /** @type {unknown} */
      let failure = new errors.ConnectionLost("the events ended before the call did");
      try {
        /** @type {{ [name: string]: string }} */
        const headers = last === null ? {} : { "Last-Event-ID": String(last) };
        const opened = await this.endpoint.open({ method: "GET", target, headers }, STREAM_SILENCE);
        try {
          if (opened.status === 204) return;
          if (opened.status !== 200) throw this.problem(opened.status, await whole(opened.incoming, 1 << 20));
          for await (const data of bytesOf(opened)) {
            for (const event of reader.feed(data)) {
              yield event;
              if (event.state === "finished") return;
            }
          }
        } finally {
          clearTimeout(opened.timer);
          opened.incoming.destroy();
        }
      } catch (error) {
        failure = error;
        if (!(error instanceof errors.ConnectFailed || error instanceof errors.ConnectionLost || error instanceof errors.BusyError)) throw error;
      }
      idle = reader.lastId === last ? idle + 1 : 0;
      last = reader.lastId;
      if (idle > this.retries) throw failure;
      await sleep(Math.min(100 * 2 ** idle, 5000));
    }
  }
}

/** @param {import("./transport.js").OpenAnswer & { timer: NodeJS.Timeout }} opened @returns {AsyncGenerator<Buffer>} */
async function* bytesOf(opened) {
  const pieces = opened.incoming[Symbol.asyncIterator]();
  for (;;) {
    opened.timer.refresh(); // the silence is counted from the last piece
    let piece;
    try {
      piece = await pieces.next();
    } catch {
      throw lost();
    }
    if (piece.done) return;
    clearTimeout(opened.timer); // not while the consumer thinks
    yield piece.value;
  }
}
