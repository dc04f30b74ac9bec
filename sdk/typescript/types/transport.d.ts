/** The rest of an answer, at most `limit` bytes. @param {http.IncomingMessage} incoming @param {number} limit */
export function whole(incoming: http.IncomingMessage, limit: number): Promise<Buffer<ArrayBuffer>>;
export const MAX_JSON: number;
export const MAX_FILE: number;
/** Where the daemon is, and the key for it: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. */
export class Endpoint {
    /** @param {string} url @param {string | null} key @param {EndpointOptions} [options] */
    constructor(url: string, key: string | null, options?: EndpointOptions);
    toString(): string;
    /** `text` without the key: a server may send it back. @param {string} text */
    hide(text: string): string;
    /**
     * Sends a request; the promise is for the head of the answer. After `ms` milliseconds the connection is cut, unless the
     * caller took it over by clearing `timer`.
     * @param {Request} request @param {number} ms
     * @returns {Promise<OpenAnswer & { timer: NodeJS.Timeout }>}
     */
    open(request: Request, ms: number): Promise<OpenAnswer & {
        timer: NodeJS.Timeout;
    }>;
    /** Sends a request and reads its whole answer. @param {Request} request @param {number} ms @returns {Promise<Answer>} */
    send(request: Request, ms: number): Promise<Answer>;
    #private;
}
export function lost(): ConnectionLost;
export type Request = {
    method: string;
    target: string;
    headers?: {
        [name: string]: string;
    };
    body?: Uint8Array;
    maxBody?: number;
};
export type Answer = {
    status: number;
    headers: http.IncomingHttpHeaders;
    body: Buffer;
};
export type OpenAnswer = {
    status: number;
    headers: http.IncomingHttpHeaders;
    incoming: http.IncomingMessage;
};
export type EndpointOptions = {
    ca?: string | Buffer;
    allowPlainHttp?: boolean;
};
import http from "node:http";
import { Buffer } from "node:buffer";
import { ConnectionLost } from "./errors.js";
