export class Coffer {
    /**
     * The daemon of this user if one runs; otherwise a private one, which ends with this program. `private`, `state` or
     * `tools` always start one of its own. A private daemon's record is removed at its end; `state` names a directory that
     * keeps it. `tools` are directories of manifests.
     * @param {LocalOptions} [options] @returns {Promise<Coffer>}
     */
    static local(options?: LocalOptions): Promise<Coffer>;
    /** @param {ClientOptions} [options] */
    constructor(options?: ClientOptions);
    toString(): string;
    /** Ends the private daemon, if there is one. @returns {Promise<void>} */
    close(): Promise<void>;
    /**
     * Runs a tool and waits for its end. A tool that ends with another status than 0 is a result (`ok` is false). A call that
     * was refused, killed or lost is an error: CallDenied, CallTerminated, CallUnknown, CallFailed.
     * @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallResult>}
     */
    call(tool: string, args?: Args, options?: CallOptions): Promise<CallResult>;
    /** Starts a call; what is returned gives its events as they come, then its result.
     * @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallStream>} */
    stream(tool: string, args?: Args, options?: CallOptions): Promise<CallStream>;
    /** @param {string} callId @returns {Promise<CallResult>} */
    get(callId: string): Promise<CallResult>;
    /** Waits until a call that was started elsewhere has ended.
     * @param {string} callId @param {{ timeout?: number, check?: boolean }} [options] @returns {Promise<CallResult>} */
    wait(callId: string, options?: {
        timeout?: number;
        check?: boolean;
    }): Promise<CallResult>;
    /** @param {string} callId @returns {Promise<void>} */
    cancel(callId: string): Promise<void>;
    /** @param {string} callId @returns {Promise<Receipt>} */
    receipt(callId: string): Promise<Receipt>;
    /** What it ran and printed, or null if that is not kept. @param {string} callId @returns {Promise<Args | null>} */
    transcript(callId: string): Promise<Args | null>;
    /** @param {string} callId @returns {AsyncGenerator<FileInfo>} */
    callFiles(callId: string): AsyncGenerator<FileInfo>;
    /** @param {string} callId @param {string | FileInfo} path @param {{ maxBytes?: number }} [options] @returns {Promise<Uint8Array>} */
    readCallFile(callId: string, path: string | FileInfo, options?: {
        maxBytes?: number;
    }): Promise<Uint8Array>;
    /** The log's newest signed checkpoint, and the public key that the server says is the log's. @returns {Promise<{ checkpoint: string, key: string }>} */
    checkpoint(): Promise<{
        checkpoint: string;
        key: string;
    }>;
    /** @returns {Promise<ToolInfo[]>} */
    tools(): Promise<ToolInfo[]>;
    /** @param {string} name @returns {Promise<ToolInfo>} */
    tool(name: string): Promise<ToolInfo>;
    /** @param {{ lifetimeSeconds?: number, maxCalls?: number, label?: string }} [options] @returns {Promise<Session>} */
    newSession(options?: {
        lifetimeSeconds?: number;
        maxCalls?: number;
        label?: string;
    }): Promise<Session>;
    /** A session that exists already. @param {string} sessionId @returns {Promise<Session>} */
    session(sessionId: string): Promise<Session>;
    /** @returns {AsyncGenerator<SessionInfo>} */
    sessions(): AsyncGenerator<SessionInfo>;
    /** For `await using`. @returns {Promise<void>} */
    [Symbol.asyncDispose](): Promise<void>;
    #private;
}
export type CallResult = import("./values.js").CallResult;
export type FileInfo = import("./values.js").FileInfo;
export type SessionInfo = import("./values.js").SessionInfo;
export type ToolInfo = import("./values.js").ToolInfo;
export type Args = {
    [name: string]: unknown;
};
export type Approval = import("./values.js").Approval;
export type CallOptions = {
    sessionId?: string;
    parentId?: string;
    /**
     * decide, and run nothing
     */
    dryRun?: boolean;
    /**
     * less than the manifest allows: { memory: "64MiB", wall: "5s" }
     */
    limits?: {
        [name: string]: string | number;
    };
    /**
     * what it is for; it is recorded and decides nothing
     */
    reason?: string;
    /**
     * made if not given; all retries of the call use the same
     */
    idempotencyKey?: string;
    /**
     * milliseconds
     */
    timeout?: number;
    /**
     * false: a call that was refused or killed is a result, not an error
     */
    check?: boolean;
    /**
     * told where a person decides; then the call is waited for. Without it such a
     * call is ApprovalRequired. Give it a `timeout` that a person can keep
     */
    onApproval?: (approval: Approval) => unknown;
};
export type ClientOptions = {
    /**
     * http://HOST:PORT, https://HOST:PORT or unix:PATH; COFFER_URL (and COFFER_KEY) if not given
     */
    url?: string;
    key?: string;
    /**
     * milliseconds for one operation with all its retries
     */
    timeout?: number;
    retries?: number;
    /**
     * certificates to trust, in PEM
     */
    ca?: string | Buffer;
    /**
     * something else encrypts the way
     */
    allowPlainHttp?: boolean;
};
export type LocalOptions = {
    private?: boolean;
    state?: string;
    tools?: string[];
    timeout?: number;
    retries?: number;
};
import { CallStream } from "./session.js";
import { Receipt } from "./receipts.js";
import { Session } from "./session.js";
