// SPDX-License-Identifier: Apache-2.0
//
// Every error of this package, with a stable class to decide by.
//
// `errorClass` is what the API says: `code` of a problem (auth.key, session.unknown), `error.class` of a call
// (policy.args.schema, limit.memory). Errors that arise here have classes that begin with "client.".
//
// An error's text may come from a hostile server. It is cut, what is not printable is escaped, and the key of the client
// never stands in it. So it can be logged and shown on a terminal.

/** @typedef {import("./values.js").CallResult} CallResult */
/** @typedef {import("./values.js").Approval} Approval */

const MAX_TEXT = 2000;

/**
 * `text` in one line without anything that could act on a terminal, and not too long.
 * @param {string} text
 * @param {number} [limit]
 * @returns {string}
 */
export function printable(text, limit = MAX_TEXT) {
  const cut = text.length <= limit ? text : text.slice(0, limit) + "...";
  return cut.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${/** @type {number} */ (c.codePointAt(0)).toString(16)}}`);
}

/** Base of all errors of this package. */
export class CofferError extends Error {
  /**
   * @param {string} message
   * @param {string} [errorClass]
   */
  constructor(message, errorClass = "client.error") {
    super(printable(message));
    this.name = new.target.name;
    /** @type {string} */
    this.errorClass = printable(errorClass, 200);
  }
}

/** No connection could be made; nothing was sent. */
export class ConnectFailed extends CofferError {
  /** @param {string} message */
  constructor(message) {
    super(message, "client.connect");
  }
}

/** The connection was cut, or no answer came in time. The request may have been carried out. */
export class ConnectionLost extends CofferError {
  /** @param {string} message */
  constructor(message) {
    super(message, "client.connection");
  }
}

/** The answer is not one of Cofferdam's: not JSON, a redirect, too large, or of another shape. */
export class ProtocolError extends CofferError {
  /** @param {string} message */
  constructor(message) {
    super(message, "client.protocol");
  }
}

/** The private daemon could not be started. */
export class LocalDaemonError extends CofferError {
  /** @param {string} message */
  constructor(message) {
    super(message, "client.local");
  }
}

/** A receipt does not verify. The message says what does not hold. */
export class VerificationError extends CofferError {
  /** @param {string} message */
  constructor(message) {
    super(message, "client.receipt");
  }
}

/**
 * @typedef {object} Problem
 * @property {number} status
 * @property {string} code
 * @property {string} detail
 * @property {string | null} hint
 * @property {number | null} retryAfter
 * @property {string | null} callId
 */

/** A problem (RFC 9457): the request was not carried out. */
export class ApiError extends CofferError {
  /** @param {Problem} problem */
  constructor(problem) {
    super(`${problem.code}: ${problem.detail}${problem.hint ? ` (${problem.hint})` : ""}`, problem.code);
    this.status = problem.status;
    this.detail = printable(problem.detail);
    this.hint = problem.hint === null ? null : printable(problem.hint);
    this.retryAfter = problem.retryAfter;
    this.callId = problem.callId;
  }
}

/** 401 or 403: no valid credential, or not for this role. */
export class AuthError extends ApiError {}
/** 404: not there, or not yours. */
export class NotFoundError extends ApiError {}
/** 409 or 422: not in this state, or an idempotency key that belongs to another request. */
export class ConflictError extends ApiError {}
/** 429 or 503: later. `retryAfter` says when, in seconds. 502 and 504: something before the daemon answered for it. */
export class BusyError extends ApiError {
  /** The daemon itself said so: the request was not carried out. */
  get refused() {
    return (this.status === 429 || this.status === 503) && this.errorClass !== "client.unavailable";
  }
}

/** A call that did not end by itself. `result` has everything that was answered, output included. */
export class CallError extends CofferError {
  /** @param {CallResult} result */
  constructor(result) {
    const error = result.error;
    super(error ? `${error.class}: ${error.message}` : `the call's outcome is ${result.outcome}`,
      error ? error.class : `outcome.${result.outcome}`);
    this.result = result;
    this.callId = result.callId;
    this.denials = result.denials;
    this.retryAfter = result.retryAfter;
  }
}

/** Refused; nothing ran. `denials` says by which rule, and what would allow it. */
export class CallDenied extends CallError {}
/** Killed: by a limit, a cancellation, a switch or a signal. `result` may hold partial output. */
export class CallTerminated extends CallError {}
/** Cofferdam or the host failed, not the tool. */
export class CallFailed extends CallError {}
/** It was started and its end was not seen. It is never run again. */
export class CallUnknown extends CallError {}

/**
 * A person has to decide first. Nothing ran; `approval.url` is where it is decided. The API has the answer, but the daemon of
 * this version has no gate and never gives it: it does not load a tool that asks for approval, and denies its calls.
 */
export class ApprovalRequired extends CofferError {
  /**
   * @param {string} callId
   * @param {Approval} approval
   */
  constructor(callId, approval) {
    super(`the call waits for a person: ${approval.url}`, "approval.required");
    this.callId = callId;
    this.approval = approval;
  }
}
