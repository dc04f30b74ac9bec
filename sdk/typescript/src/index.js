// SPDX-License-Identifier: Apache-2.0
//
// Cofferdam for JavaScript and TypeScript: every tool call of an agent in a boundary of its own. See README.md.
export { Coffer } from "./client.js";
export {
  ApiError, ApprovalRequired, AuthError, BusyError, CallDenied, CallError, CallFailed, CallTerminated, CallUnknown, CofferError,
  ConflictError, ConnectFailed, ConnectionLost, LocalDaemonError, NotFoundError, ProtocolError, VerificationError,
} from "./errors.js";
export { Receipt, verifyReceipt } from "./receipts.js";
export { CallStream, Process, Session } from "./session.js";

/** @typedef {import("./client.js").CallOptions} CallOptions */
/** @typedef {import("./client.js").ClientOptions} ClientOptions */
/** @typedef {import("./values.js").CallResult} CallResult */
/** @typedef {import("./values.js").CallEvent} CallEvent */
/** @typedef {import("./values.js").FileInfo} FileInfo */
/** @typedef {import("./values.js").LogPage} LogPage */
/** @typedef {import("./values.js").ProcessInfo} ProcessInfo */
/** @typedef {import("./values.js").SessionInfo} SessionInfo */
/** @typedef {import("./values.js").ToolInfo} ToolInfo */
