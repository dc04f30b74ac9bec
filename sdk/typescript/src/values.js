// SPDX-License-Identifier: Apache-2.0
//
// What the API answers, as values. Names are those of docs/HTTP.md in camel case; times stay texts (UTC, RFC 3339).
import * as read from "./reading.js";
import { ProtocolError } from "./errors.js";

/** @typedef {import("./reading.js").Json} Json */
/** @typedef {{ class: string, message: string }} ErrorInfo */
/** @typedef {{ surface: string, operation: string, target: string, rule: string, reason: string, fix: string | null, count: number }} Denial */
/** Where the receipt is in the audit log, and the log's size and root then. Keep it: it shows a later rewrite.
 * @typedef {{ index: number, size: number, root: string }} LogPosition */
/** @typedef {{ id: string, digest: string, url: string, expiresAt: string | null }} Approval */
/** @typedef {"success" | "error" | "denied" | "gated" | "terminated" | "unknown"} Outcome */

/**
 * A call as far as it is known. `outcome` is null while it runs.
 * @typedef {object} CallResult
 * @property {string} callId
 * @property {Outcome | null} outcome
 * @property {boolean} ok the tool ran and ended with 0
 * @property {string} stdout
 * @property {string} stderr
 * @property {boolean} truncated
 * @property {number | null} exitCode
 * @property {number | null} exitSignal
 * @property {unknown} structured
 * @property {ErrorInfo | null} error
 * @property {Denial[]} denials
 * @property {LogPosition | null} log
 * @property {number | null} retryAfter
 * @property {boolean} replayed an earlier request with the same idempotency key ran it
 * @property {string | null} state of Coffer.get: queued, gated, running, finished
 */
/**
 * Something that a running call said: `state`, `stdout`, `stderr`, or `gap` where events were lost.
 * @typedef {object} CallEvent
 * @property {"state" | "stdout" | "stderr" | "gap"} kind
 * @property {Uint8Array} data
 * @property {string} text
 * @property {string | null} state
 * @property {number | null} id
 */
/**
 * @typedef {object} ToolInfo
 * @property {string} name
 * @property {string} version
 * @property {string} summary
 * @property {string} effect read-only, reversible, irreversible or privileged
 * @property {string} state ready, disabled or stale
 * @property {string | null} problem
 * @property {Json | null} inputSchema of Coffer.tool
 * @property {string | null} blastRadius of Coffer.tool
 */
/** `path` is for people; `encodedPath` is exact.
 * @typedef {{ path: string, encodedPath: string, size: number, sha256: string | null, modifiedAt: string | null }} FileInfo */
/** @typedef {{ sessionId: string, state: string, agent: string, label: string | null, expiresAt: string | null, calls: number, maxCalls: number | null, maxBytes: number }} SessionInfo */
/** @typedef {{ processId: string, sessionId: string, tool: string, state: string, ports: number[], outcome: string | null, exitCode: number | null, exitSignal: number | null, error: ErrorInfo | null }} ProcessInfo */
/** @typedef {{ offset: number, next: number, text: string, ended: boolean }} LogPage */

const OUTCOMES = ["success", "error", "denied", "gated", "terminated", "unknown"];

/** @param {Json} value @returns {ErrorInfo | null} */
function errorOf(value) {
  if (!read.has(value, "error")) return null;
  const error = read.member(value, "error");
  return { class: read.text(error, "class"), message: read.text(error, "message") };
}

/** @param {Json} value @returns {Denial} */
const denialOf = (value) => ({
  surface: read.text(value, "surface"), operation: read.text(value, "operation"), target: read.text(value, "target"),
  rule: read.text(value, "rule"), reason: read.text(value, "reason"), fix: read.optionalText(value, "fix"),
  count: read.integer(value, "count"),
});

/** @param {Json} value @returns {LogPosition} */
const positionOf = (value) => ({
  index: read.integer(value, "index"), size: read.integer(value, "size"), root: read.text(value, "root"),
});

/** @param {Json} value @param {boolean} [replayed] @returns {CallResult} */
export function callOf(value, replayed = false) {
  const outcome = read.optionalText(value, "outcome");
  if (outcome !== null && !OUTCOMES.includes(outcome)) throw new ProtocolError("the server named an outcome that does not exist");
  const output = read.has(value, "result") ? read.member(value, "result") : null;
  const leave = output ? read.member(output, "exit") : {};
  return {
    callId: read.answeredId(value, "call_id"), outcome: /** @type {Outcome | null} */ (outcome), ok: outcome === "success",
    stdout: output ? read.text(output, "stdout") : "", stderr: output ? read.text(output, "stderr") : "",
    truncated: output ? read.boolean(output, "truncated") : false,
    exitCode: read.optionalInteger(leave, "code"), exitSignal: read.optionalInteger(leave, "signal"),
    structured: output ? output["structured"] ?? null : null, error: errorOf(value),
    denials: read.has(value, "denials") ? read.objects(value, "denials").map(denialOf) : [],
    log: read.has(value, "log") ? positionOf(read.member(value, "log")) : null,
    retryAfter: read.optionalInteger(value, "retry_after"), replayed, state: read.optionalText(value, "state"),
  };
}

/** @param {Json} value @returns {Approval} */
export const approvalOf = (value) => ({
  id: read.text(value, "id"), digest: read.text(value, "digest"), url: read.text(value, "url"),
  expiresAt: read.optionalText(value, "expires_at"),
});

/** @param {"state" | "stdout" | "stderr" | "gap"} kind @param {number | null} id @param {Json} value @returns {CallEvent} */
export function eventOf(kind, id, value) {
  if (kind === "state" || kind === "gap") {
    return { kind, data: new Uint8Array(), text: "", state: kind === "state" ? read.word(value, "state") : null, id };
  }
  const data = read.has(value, "base64") ? Buffer.from(read.text(value, "base64"), "base64") : Buffer.from(read.text(value, "text"));
  return { kind, data, text: data.toString("utf8"), state: null, id };
}

/** @param {Json} value @returns {ToolInfo} */
export const toolOf = (value) => ({
  name: read.answeredTool(value), version: read.text(value, "version"), summary: read.text(value, "summary"),
  effect: read.text(value, "effect"), state: read.text(value, "state"), problem: read.optionalText(value, "problem"),
  inputSchema: read.has(value, "input_schema") ? read.member(value, "input_schema") : null,
  blastRadius: read.has(value, "blast_radius") ? read.text(read.member(value, "blast_radius"), "sentence") : null,
});

/** @param {Json} value @returns {FileInfo} */
export const fileOf = (value) => ({
  path: read.text(value, "path"), encodedPath: read.answeredPath(value), size: read.integer(value, "size"),
  sha256: read.optionalText(value, "sha256"), modifiedAt: read.optionalText(value, "modified_at"),
});

/** @param {Json} value @returns {SessionInfo} */
export const sessionOf = (value) => ({
  sessionId: read.answeredId(value, "session_id"), state: read.text(value, "state"), agent: read.text(value, "agent"),
  label: read.optionalText(value, "label"), expiresAt: read.optionalText(value, "expires_at"),
  calls: read.integer(value, "calls"), maxCalls: read.optionalInteger(value, "max_calls"),
  maxBytes: read.integer(read.member(value, "files"), "max_bytes"),
});

/** @param {Json} value @returns {ProcessInfo} */
export function processOf(value) {
  const leave = read.member(value, "exit");
  return {
    processId: read.answeredId(value, "process_id"), sessionId: read.answeredId(value, "session_id"),
    tool: read.text(value, "tool"), state: read.text(value, "state"), ports: read.integers(value, "ports"),
    outcome: read.optionalText(value, "outcome"), exitCode: read.optionalInteger(leave, "code"),
    exitSignal: read.optionalInteger(leave, "signal"), error: errorOf(value),
  };
}

/** @param {Json} value @returns {LogPage} */
export const logPageOf = (value) => ({
  offset: read.integer(value, "offset"), next: read.integer(value, "next"), text: read.text(value, "text"),
  ended: read.boolean(value, "ended"),
});
