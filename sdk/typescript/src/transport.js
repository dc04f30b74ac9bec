// SPDX-License-Identifier: Apache-2.0
//
// One request over one connection, with Node's own http. The key goes to one place: no redirect is followed, no proxy is
// used. Everything that a server sends is bounded: the head, the body, and how long it takes.
import { Buffer } from "node:buffer";
import http from "node:http";
import https from "node:https";
import { ConnectFailed, ConnectionLost, ProtocolError } from "./errors.js";

export const MAX_JSON = 64 * 1024 * 1024;
export const MAX_FILE = 256 * 1024 * 1024;
const MAX_HEAD = 32 * 1024;
const KEY = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} target
 * @property {{ [name: string]: string }} [headers]
 * @property {Uint8Array} [body]
 * @property {number} [maxBody]
 */
/** @typedef {{ status: number, headers: http.IncomingHttpHeaders, body: Buffer }} Answer */
/** @typedef {{ status: number, headers: http.IncomingHttpHeaders, incoming: http.IncomingMessage }} OpenAnswer */
/** @typedef {{ ca?: string | Buffer, allowPlainHttp?: boolean }} EndpointOptions */

/** @param {string} host */
const isLoopback = (host) => host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);

/** Where the daemon is, and the key for it: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. */
export class Endpoint {
  /** @type {string | null} */ #key;
  /** @type {https.RequestOptions} */ #place;
  /** @type {string} */ #name;
  /** @type {boolean} */ #secure;

  /** @param {string} url @param {string | null} key @param {EndpointOptions} [options] */
  constructor(url, key, options = {}) {
    if (key !== null && !KEY.test(key)) throw new TypeError("the key is malformed: it looks like coffer_0123..._4567...");
    this.#key = key;
    this.#secure = false;
    if (url.startsWith("unix:")) {
      const socketPath = url.slice("unix:".length);
      if (!socketPath.startsWith("/") || socketPath.includes("\0")) {
        throw new TypeError("a socket is named by its absolute path: unix:/var/lib/coffer/coffer.sock");
      }
      this.#place = { socketPath, host: "localhost" };
      this.#name = url;
      return;
    }
    /** @type {URL | null} */
    let parts = null;
    try {
      parts = new URL(url);
    } catch {
      // said below
    }
    if (parts === null || !["http:", "https:"].includes(parts.protocol) || parts.pathname !== "/" || parts.search !== "" ||
        parts.hash !== "" || parts.username !== "" || parts.password !== "") {
      throw new TypeError("the URL must be http://HOST:PORT, https://HOST:PORT or unix:PATH, and nothing more");
    }
    this.#secure = parts.protocol === "https:";
    if (!this.#secure && key !== null && !options.allowPlainHttp && !isLoopback(parts.hostname)) {
      throw new TypeError("http:// would send the key over the network as it is: use https://, or say allowPlainHttp: true " +
        "if something else encrypts the way");
    }
    this.#place = { host: parts.hostname.replace(/^\[|\]$/g, ""), port: Number(parts.port || (this.#secure ? 443 : 80)) };
    if (options.ca !== undefined) this.#place.ca = options.ca;
    this.#name = parts.origin;
  }

  toString() {
    return this.#name;
  }

  /** `text` without the key: a server may send it back. @param {string} text */
  hide(text) {
    return this.#key === null ? text : text.replaceAll(this.#key, "<key>");
  }

  /**
   * Sends a request; the promise is for the head of the answer. After `ms` milliseconds the connection is cut, unless the
   * caller took it over by clearing `timer`.
   * @param {Request} request @param {number} ms
   * @returns {Promise<OpenAnswer & { timer: NodeJS.Timeout }>}
   */
  open(request, ms) {
    return new Promise((resolve, reject) => {
      let connected = false, late = false;
      const body = request.body ?? null;
      /** @type {http.OutgoingHttpHeaders} */
      const headers = { "User-Agent": "cofferdam-typescript/0.1", "Accept-Encoding": "identity", Connection: "close", ...request.headers };
      if (body !== null || request.method === "POST") headers["Content-Length"] = body?.length ?? 0;
      if (this.#key !== null) headers["Authorization"] = `Bearer ${this.#key}`;
      const options = { ...this.#place, method: request.method, path: request.target, headers, agent: false, maxHeaderSize: MAX_HEAD };
      const sent = (this.#secure ? https : http).request(options);
      const timer = setTimeout(() => {
        late = true;
        sent.destroy();
      }, Math.max(0, ms));
      sent.on("socket", (socket) => socket.once(this.#secure ? "secureConnect" : "connect", () => (connected = true)));
      sent.on("error", (error) => {
        clearTimeout(timer);
        const code = /** @type {NodeJS.ErrnoException} */ (error).code ?? error.message;
        if (!connected) reject(new ConnectFailed(`cannot connect to ${this}: ${late ? "it took too long" : code}`));
        else if (late) reject(new ConnectionLost("the server did not answer in time"));
        else if (String(code).startsWith("HPE_")) reject(new ProtocolError(`the server's answer is not HTTP: ${code}`));
        else reject(new ConnectionLost(`the connection was lost: ${code}`));
      });
      sent.on("response", (incoming) => {
        const status = incoming.statusCode ?? 0;
        const coding = incoming.headers["content-encoding"] ?? "identity";
        if ((status >= 300 && status < 400) || coding !== "identity") {
          clearTimeout(timer);
          incoming.destroy();
          reject(new ProtocolError(coding !== "identity" ? "the server compressed its answer, which was not asked for"
            : `the server redirects elsewhere (status ${status}); this client follows no redirect`));
          return;
        }
        resolve({ status, headers: incoming.headers, incoming, timer });
      });
      sent.end(body ?? undefined);
    });
  }

  /** Sends a request and reads its whole answer. @param {Request} request @param {number} ms @returns {Promise<Answer>} */
  async send(request, ms) {
    const opened = await this.open(request, ms);
    try {
      return { status: opened.status, headers: opened.headers, body: await whole(opened.incoming, request.maxBody ?? MAX_JSON) };
    } finally {
      clearTimeout(opened.timer);
      opened.incoming.destroy();
    }
  }
}

/** The rest of an answer, at most `limit` bytes. @param {http.IncomingMessage} incoming @param {number} limit */
export async function whole(incoming, limit) {
  const pieces = [];
  let size = 0;
  try {
    for await (const piece of incoming) {
      size += piece.length;
      if (size > limit) throw new ProtocolError(`the server's answer has more than ${limit} bytes`);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof ProtocolError ? error : lost();
  }
  if (!incoming.complete) throw lost();
  return Buffer.concat(pieces);
}

export const lost = () => new ConnectionLost("the connection was cut in the middle of the answer, or the answer took too long");
