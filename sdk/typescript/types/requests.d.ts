export function sleep(ms: number): Promise<void>;
export class Requests {
    /** @param {Endpoint} endpoint @param {number} timeout milliseconds for one operation @param {number} retries */
    constructor(endpoint: Endpoint, timeout: number, retries: number);
    endpoint: import("./transport.js").Endpoint;
    timeout: number;
    retries: number;
    /**
     * @param {Request} request @param {boolean} again it may be made twice @param {number} [timeout]
     * @returns {Promise<Answer>}
     */
    send(request: Request, again: boolean, timeout?: number): Promise<Answer>;
    /** The error that an answer is. @param {number} status @param {Buffer} body @returns {errors.CofferError} */
    problem(status: number, body: Buffer): errors.CofferError;
    /** @param {string} target @param {{ [name: string]: string | number | null | undefined }} [query] @returns {Promise<Json>} */
    get(target: string, query?: {
        [name: string]: string | number | null | undefined;
    }): Promise<Json>;
    /** An answer's JSON, without the key: a server may send it back, and texts of answers end up in logs. @param {Buffer} body @returns {Json} */
    parse(body: Buffer): Json;
    /**
     * @param {string} target @param {{ [name: string]: unknown }} body @param {boolean} [again]
     * @param {{ [name: string]: string }} [headers] @param {number} [timeout] @returns {Promise<Answer>}
     */
    post(target: string, body: {
        [name: string]: unknown;
    }, again?: boolean, headers?: {
        [name: string]: string;
    }, timeout?: number): Promise<Answer>;
    /**
     * All items of a list, page by page.
     * @template T
     * @param {string} target @param {string} name @param {(value: Json) => T} make
     * @param {{ [name: string]: string | null | undefined }} [query]
     * @returns {AsyncGenerator<T>}
     */
    pages<T>(target: string, name: string, make: (value: Json) => T, query?: {
        [name: string]: string | null | undefined;
    }): AsyncGenerator<T>;
    /**
     * Everything that a call says until it has ended; goes on where it was when the connection is cut.
     * @param {string} callId @returns {AsyncGenerator<CallEvent>}
     */
    events(callId: string): AsyncGenerator<CallEvent>;
}
export type Endpoint = import("./transport.js").Endpoint;
export type Request = import("./transport.js").Request;
export type Answer = import("./transport.js").Answer;
export type Json = import("./reading.js").Json;
export type CallEvent = import("./values.js").CallEvent;
import { Buffer } from "node:buffer";
import * as errors from "./errors.js";
