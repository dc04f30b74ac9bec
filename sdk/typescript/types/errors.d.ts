/**
 * `text` in one line without anything that could act on a terminal, and not too long.
 * @param {string} text
 * @param {number} [limit]
 * @returns {string}
 */
export function printable(text: string, limit?: number): string;
/** Base of all errors of this package. */
export class CofferError extends Error {
    /**
     * @param {string} message
     * @param {string} [errorClass]
     */
    constructor(message: string, errorClass?: string);
    /** @type {string} */
    errorClass: string;
}
/** No connection could be made; nothing was sent. */
export class ConnectFailed extends CofferError {
    /** @param {string} message */
    constructor(message: string);
}
/** The connection was cut, or no answer came in time. The request may have been carried out. */
export class ConnectionLost extends CofferError {
    /** @param {string} message */
    constructor(message: string);
}
/** The answer is not one of Cofferdam's: not JSON, a redirect, too large, or of another shape. */
export class ProtocolError extends CofferError {
    /** @param {string} message */
    constructor(message: string);
}
/** The private daemon could not be started. */
export class LocalDaemonError extends CofferError {
    /** @param {string} message */
    constructor(message: string);
}
/** A receipt does not verify. The message says what does not hold. */
export class VerificationError extends CofferError {
    /** @param {string} message */
    constructor(message: string);
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
    constructor(problem: Problem);
    status: number;
    detail: string;
    hint: string | null;
    retryAfter: number | null;
    callId: string | null;
}
/** 401 or 403: no valid credential, or not for this role. */
export class AuthError extends ApiError {
}
/** 404: not there, or not yours. */
export class NotFoundError extends ApiError {
}
/** 409 or 422: not in this state, or an idempotency key that belongs to another request. */
export class ConflictError extends ApiError {
}
/** 429 or 503: later. `retryAfter` says when, in seconds. 502 and 504: something before the daemon answered for it. */
export class BusyError extends ApiError {
    /** The daemon itself said so: the request was not carried out. */
    get refused(): boolean;
}
/** A call that did not end by itself. `result` has everything that was answered, output included. */
export class CallError extends CofferError {
    /** @param {CallResult} result */
    constructor(result: CallResult);
    result: import("./values.js").CallResult;
    callId: string;
    denials: import("./values.js").Denial[];
    retryAfter: number | null;
}
/** Refused; nothing ran. `denials` says by which rule, and what would allow it. */
export class CallDenied extends CallError {
}
/** Killed: by a limit, a cancellation, a switch or a signal. `result` may hold partial output. */
export class CallTerminated extends CallError {
}
/** Cofferdam or the host failed, not the tool. */
export class CallFailed extends CallError {
}
/** It was started and its end was not seen. It is never run again. */
export class CallUnknown extends CallError {
}
/**
 * A person has to decide first. Nothing ran; `approval.url` is where it is decided. The API has the answer, but the daemon of
 * this version has no gate and never gives it: it does not load a tool that asks for approval, and denies its calls.
 */
export class ApprovalRequired extends CofferError {
    /**
     * @param {string} callId
     * @param {Approval} approval
     */
    constructor(callId: string, approval: Approval);
    callId: string;
    approval: import("./values.js").Approval;
}
export type CallResult = import("./values.js").CallResult;
export type Approval = import("./values.js").Approval;
export type Problem = {
    status: number;
    code: string;
    detail: string;
    hint: string | null;
    retryAfter: number | null;
    callId: string | null;
};
