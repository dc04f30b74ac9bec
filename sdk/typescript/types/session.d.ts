/** @param {Requests} requests @param {string} place @param {string | FileInfo} path @param {number} [maxBytes] @returns {Promise<Uint8Array>} */
export function readFile(requests: Requests, place: string, path: string | FileInfo, maxBytes?: number): Promise<Uint8Array>;
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
    /** @param {Coffer} coffer @param {Requests} requests @param {string} callId */
    constructor(coffer: Coffer, requests: Requests, callId: string);
    callId: string;
    /** Waits for the end. @param {{ timeout?: number, check?: boolean }} [options] @returns {Promise<CallResult>} */
    result(options?: {
        timeout?: number;
        check?: boolean;
    }): Promise<CallResult>;
    /** @returns {Promise<void>} */
    cancel(): Promise<void>;
    /** @returns {AsyncGenerator<CallEvent>} */
    [Symbol.asyncIterator](): AsyncGenerator<CallEvent>;
    #private;
}
/** A process in the background of a session. */
export class Process {
    /** @param {Requests} requests @param {string} sessionId @param {string} processId */
    constructor(requests: Requests, sessionId: string, processId: string);
    processId: string;
    /** @returns {Promise<ProcessInfo>} */
    info(): Promise<ProcessInfo>;
    /** What it printed from `offset` on; `follow` waits so many seconds (at most 30) for something.
     * @param {number} [offset] @param {{ follow?: number }} [options] @returns {Promise<LogPage>} */
    log(offset?: number, options?: {
        follow?: number;
    }): Promise<LogPage>;
    /** What it prints, until it has ended. @param {number} [offset] @returns {AsyncGenerator<LogPage>} */
    follow(offset?: number): AsyncGenerator<LogPage>;
    /** @param {Signal} name @returns {Promise<void>} */
    signal(name: Signal): Promise<void>;
    /** @returns {Promise<void>} */
    kill(): Promise<void>;
    #private;
}
/** Files that live as long as the session; calls and processes that share them. */
export class Session {
    /** @param {Coffer} coffer @param {Requests} requests @param {string} sessionId */
    constructor(coffer: Coffer, requests: Requests, sessionId: string);
    sessionId: string;
    /** @returns {Promise<SessionInfo>} */
    info(): Promise<SessionInfo>;
    /** @param {number} lifetimeSeconds @returns {Promise<SessionInfo>} */
    extend(lifetimeSeconds: number): Promise<SessionInfo>;
    /** Kills what runs in it and removes its files. @returns {Promise<void>} */
    end(): Promise<void>;
    /** @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallResult>} */
    call(tool: string, args?: Args, options?: CallOptions): Promise<CallResult>;
    /** @param {string} tool @param {Args} [args] @param {CallOptions} [options] @returns {Promise<CallStream>} */
    stream(tool: string, args?: Args, options?: CallOptions): Promise<CallStream>;
    /** @param {{ prefix?: string }} [options] @returns {AsyncGenerator<FileInfo>} */
    files(options?: {
        prefix?: string;
    }): AsyncGenerator<FileInfo>;
    /** @param {string | FileInfo} path @param {{ maxBytes?: number }} [options] @returns {Promise<Uint8Array>} */
    read(path: string | FileInfo, options?: {
        maxBytes?: number;
    }): Promise<Uint8Array>;
    /** @param {string} path @param {Uint8Array | string} data @returns {Promise<FileInfo>} */
    write(path: string, data: Uint8Array | string): Promise<FileInfo>;
    /** @param {string | FileInfo} path @returns {Promise<void>} */
    remove(path: string | FileInfo): Promise<void>;
    /**
     * Starts a process in the background; the session's later calls reach the `ports` that it listens on.
     * @param {string} tool @param {Args} [args]
     * @param {{ ports?: number[], limits?: { [name: string]: string | number }, reason?: string }} [options]
     * @returns {Promise<Process>}
     */
    start(tool: string, args?: Args, options?: {
        ports?: number[];
        limits?: {
            [name: string]: string | number;
        };
        reason?: string;
    }): Promise<Process>;
    /** @returns {Promise<ProcessInfo[]>} */
    processes(): Promise<ProcessInfo[]>;
    /** For `await using`. @returns {Promise<void>} */
    [Symbol.asyncDispose](): Promise<void>;
    #private;
}
export type Coffer = import("./client.js").Coffer;
export type CallOptions = import("./client.js").CallOptions;
export type Requests = import("./requests.js").Requests;
export type CallResult = import("./values.js").CallResult;
export type CallEvent = import("./values.js").CallEvent;
export type FileInfo = import("./values.js").FileInfo;
export type LogPage = import("./values.js").LogPage;
export type ProcessInfo = import("./values.js").ProcessInfo;
export type SessionInfo = import("./values.js").SessionInfo;
export type Args = {
    [name: string]: unknown;
};
export type Signal = "TERM" | "INT" | "QUIT" | "HUP" | "USR1" | "USR2";
