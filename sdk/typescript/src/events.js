// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events, as far as the API writes them, in bounded memory.
import { Buffer } from "node:buffer";
import { ProtocolError } from "./errors.js";
import { parseObject } from "./reading.js";
import { eventOf } from "./values.js";

/** @typedef {import("./values.js").CallEvent} CallEvent */

const MAX_EVENT = 4 * 1024 * 1024; // as much as the server keeps of a call's output
const KINDS = ["state", "stdout", "stderr", "gap"];

/** Takes bytes as they come and gives the events that are complete. `lastId` is where to go on after a cut. */
export class EventReader {
  /** @type {Buffer} */ #rest = Buffer.alloc(0);

  /** @param {number | null} lastId */
  constructor(lastId) {
    this.lastId = lastId;
  }

  /** @param {Buffer} data @returns {Generator<CallEvent>} */
  *feed(data) {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const end = this.#rest.indexOf("\n\n");
      if ((end < 0 ? this.#rest.length : end) > MAX_EVENT) throw new ProtocolError("an event of the server is too large");
      if (end < 0) return;
      const block = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(end + 2);
      const event = this.#read(block.toString("utf8"));
      if (event !== null) yield event;
    }
  }

  /** @param {string} block @returns {CallEvent | null} */
  #read(block) {
    let kind = "", data = "";
    /** @type {number | null} */
    let id = null;
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") kind = value;
      else if (name === "data") data += value;
      else if (name === "id" && /^[0-9]{1,15}$/.test(value)) id = Number(value);
    }
    if (!KINDS.includes(kind)) return null; // a comment, `retry`, or a kind of a later version
    const event = eventOf(/** @type {CallEvent["kind"]} */ (kind), id, parseObject(Buffer.from(data)));
    if (id !== null) this.lastId = id;
    return event;
  }
}
