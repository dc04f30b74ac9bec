/** @param {Json} value @param {boolean} [replayed] @returns {CallResult} */
export function callOf(value: Json, replayed?: boolean): CallResult;
/** @param {"state" | "stdout" | "stderr" | "gap"} kind @param {number | null} id @param {Json} value @returns {CallEvent} */
export function eventOf(kind: "state" | "stdout" | "stderr" | "gap", id: number | null, value: Json): CallEvent;
/** @param {Json} value @returns {ProcessInfo} */
export function processOf(value: Json): ProcessInfo;
export function approvalOf(value: Json): Approval;
export function toolOf(value: Json): ToolInfo;
export function fileOf(value: Json): FileInfo;
export function sessionOf(value: Json): SessionInfo;
export function logPageOf(value: Json): LogPage;
export type Json = import("./reading.js").Json;
export type ErrorInfo = {
    class: string;
    message: string;
};
export type Denial = {
    surface: string;
    operation: string;
    target: string;
    rule: string;
    reason: string;
    fix: string | null;
    count: number;
};
/**
 * Where the receipt is in the audit log, and the log's size and root then. Keep it: it shows a later rewrite.
 */
export type LogPosition = {
    index: number;
    size: number;
    root: string;
};
export type Approval = {
    id: string;
    digest: string;
    url: string;
    expiresAt: string | null;
};
export type Outcome = "success" | "error" | "denied" | "gated" | "terminated" | "unknown";
/**
 * A call as far as it is known. `outcome` is null while it runs.
 */
export type CallResult = {
    callId: string;
    outcome: Outcome | null;
    /**
     * the tool ran and ended with 0
     */
    ok: boolean;
    stdout: string;
    stderr: string;
    truncated: boolean;
    exitCode: number | null;
    exitSignal: number | null;
    structured: unknown;
    error: ErrorInfo | null;
    denials: Denial[];
    log: LogPosition | null;
    retryAfter: number | null;
    /**
     * an earlier request with the same idempotency key ran it
     */
    replayed: boolean;
    /**
     * of Coffer.get: queued, gated, running, finished
     */
    state: string | null;
};
/**
 * Something that a running call said: `state`, `stdout`, `stderr`, or `gap` where events were lost.
 */
export type CallEvent = {
    kind: "state" | "stdout" | "stderr" | "gap";
    data: Uint8Array;
    text: string;
    state: string | null;
    id: number | null;
};
export type ToolInfo = {
    name: string;
    version: string;
    summary: string;
    /**
     * read-only, reversible, irreversible or privileged
     */
    effect: string;
    /**
     * ready, disabled or stale
     */
    state: string;
    problem: string | null;
    /**
     * of Coffer.tool
     */
    inputSchema: Json | null;
    /**
     * of Coffer.tool
     */
    blastRadius: string | null;
};
/**
 * `path` is for people; `encodedPath` is exact.
 */
export type FileInfo = {
    path: string;
    encodedPath: string;
    size: number;
    sha256: string | null;
    modifiedAt: string | null;
};
export type SessionInfo = {
    sessionId: string;
    state: string;
    agent: string;
    label: string | null;
    expiresAt: string | null;
    calls: number;
    maxCalls: number | null;
    maxBytes: number;
};
export type ProcessInfo = {
    processId: string;
    sessionId: string;
    tool: string;
    state: string;
    ports: number[];
    outcome: string | null;
    exitCode: number | null;
    exitSignal: number | null;
    error: ErrorInfo | null;
};
export type LogPage = {
    offset: number;
    next: number;
    text: string;
    ended: boolean;
};
