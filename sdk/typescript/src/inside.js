// SPDX-License-Identifier: Apache-2.0
//
// Calling tools from code that runs in `coffer run --tools NAME,...`.
//
//   import { call } from "cofferdam/inside";
//   console.log((await call("bash", { command: "wc -l *.csv" })).stdout);
//
// The run offers a UNIX socket, which COFFER_TOOLS_SOCKET names, and nothing else: no key and no daemon. A result has
// `stdout`, `stderr`, `exit_code`, `outcome`, `call_id` and `error`. A tool that fails has a result too; what cannot be
// called is an error.
import { connect } from "node:net";

import { CofferError, ConnectFailed, ConnectionLost, ProtocolError } from "./errors.js";

const VARIABLE = "COFFER_TOOLS_SOCKET";
const MAX_ANSWER = 64 << 20;
const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };

/** @typedef {{ stdout: string, stderr: string, exit_code: number | null, outcome: string, call_id: string | null,
 *    error: { class: string, message: string, hint?: string } | null, [name: string]: unknown }} InsideResult */

/**
 * @param {string} line
 * @returns {Promise<string>}
 */
function exchange(line) {
  const path = process.env[VARIABLE];
  if (!path) {
    return Promise.reject(new ConnectFailed(`${VARIABLE} is not set: this does not run in \`coffer run --tools\``));
  }
  return new Promise((resolve, reject) => {
    /** @type {Buffer[]} */
    const parts = [];
    let size = 0;
    let connected = false;
    const socket = connect(path, () => {
      connected = true;
      socket.write(line);
    });
    socket.on("data", (/** @type {Buffer} */ part) => {
      parts.push(part);
      size += part.length;
      if (part[part.length - 1] === 10) {
        socket.destroy();
        resolve(Buffer.concat(parts).toString("utf8"));
      } else if (size > MAX_ANSWER) {
        socket.destroy();
        reject(new ProtocolError("the answer is too long"));
      }
    });
    socket.on("error", (error) =>
      reject(connected ? new ConnectionLost(error.message) : new ConnectFailed(`${path}: ${error.message}`)));
    socket.on("close", () => reject(new ConnectionLost("the connection ended before the answer; the call may have run")));
  });
}

/**
 * @param {string} method
 * @param {Record<string, unknown>} params
 * @returns {Promise<Record<string, unknown>>}
 */
async function request(method, params) {
  const text = await exchange(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }) + "\n");
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    throw new ProtocolError("the answer is not JSON");
  }
  if (said?.error) {
    throw new CofferError(String(said.error.message), "policy.tools");
  }
  if (typeof said?.result !== "object" || said.result === null) {
    throw new ProtocolError("the answer has no result");
  }
  return said.result;
}

/**
 * Calls a tool that the run offers and waits for its result.
 * @param {string} tool
 * @param {Record<string, unknown>} [args]
 * @returns {Promise<InsideResult>}
 */
export async function call(tool, args = {}) {
  const result = (await request("tools/call", { name: tool, arguments: args })).structuredContent;
  if (typeof result !== "object" || result === null) {
    throw new ProtocolError("the answer has no structured content");
  }
  return /** @type {InsideResult} */ (result);
}

/**
 * The definitions of the tools that the run offers.
 * @returns {Promise<Record<string, unknown>[]>}
 */
export async function tools() {
  const listed = (await request("tools/list", {})).tools;
  if (!Array.isArray(listed)) {
    throw new ProtocolError("the answer has no tools");
  }
  return listed;
}
