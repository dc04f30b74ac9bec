// SPDX-License-Identifier: Apache-2.0
//
// Texts with one spelling: canonical JSON, base64, the public key of a log, and the log's hash tree.
//
// Receipts are signed as text, so they have to be printed again exactly as the daemon printed them. JSON.parse rounds large
// numbers and forgets how numbers were written, so this reader keeps them as Literals. docs/AUDIT_LOG.md has the format.
import { Buffer } from "node:buffer";
import { createHash, createPublicKey, verify } from "node:crypto";

/** A number as it was written. */
export class Literal {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** @typedef {null | boolean | string | Literal | any[] | Map<string, any>} Value */

const MAX_DEPTH = 64;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"/y;
const SPACE = /[ \t\n\r]*/y;

/** A strict reader of JSON: no member twice, no lone surrogate, at most 64 levels. A SyntaxError says what is wrong. */
class Reader {
  at = 0;

  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  /** @param {RegExp} pattern @returns {string | null} */
  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at += found[0].length;
    return found[0];
  }

  /** @param {string} word @returns {boolean} */
  skip(word) {
    this.take(SPACE);
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  /** @returns {string} */
  string() {
    this.take(SPACE);
    const raw = this.take(STRING);
    if (raw === null) throw new SyntaxError("a string is expected");
    /** @type {string} */
    const value = JSON.parse(raw);
    if (/\p{Cs}/u.test(value)) throw new SyntaxError("a lone surrogate is no text");
    return value;
  }

  /** @param {number} depth @returns {Value} */
  value(depth) {
    if (this.skip("{")) return this.object(inside(depth));
    if (this.skip("[")) return this.array(inside(depth));
    if (this.skip("null")) return null;
    if (this.skip("true")) return true;
    if (this.skip("false")) return false;
    if (this.text[this.at] === '"') return this.string();
    const number = this.take(NUMBER);
    if (number === null) throw new SyntaxError("a value is expected");
    return new Literal(number);
  }

  /** @param {number} depth @returns {Map<string, Value>} */
  object(depth) {
    const members = new Map();
    if (this.skip("}")) return members;
    do {
      const name = this.string();
      if (members.has(name)) throw new SyntaxError("a member twice");
      if (!this.skip(":")) throw new SyntaxError("a colon is expected");
      members.set(name, this.value(depth));
    } while (this.skip(","));
    if (!this.skip("}")) throw new SyntaxError("an object does not end");
    return members;
  }

  /** @param {number} depth @returns {Value[]} */
  array(depth) {
    /** @type {Value[]} */
    const items = [];
    if (this.skip("]")) return items;
    do items.push(this.value(depth));
    while (this.skip(","));
    if (!this.skip("]")) throw new SyntaxError("a list does not end");
    return items;
  }
}

/** @param {number} depth */
function inside(depth) {
  if (depth >= MAX_DEPTH) throw new SyntaxError("nested too deeply");
  return depth + 1;
}

/** @param {Uint8Array} data UTF-8 @returns {Value} */
export function parse(data) {
  const reader = new Reader(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data));
  const value = reader.value(0);
  reader.take(SPACE);
  if (reader.at !== reader.text.length) throw new SyntaxError("something follows the value");
  return value;
}

/** Compact, members sorted by the bytes of their names, numbers as they were. @param {Value} value @returns {string} */
export function dump(value) {
  if (value instanceof Map) {
    const ordered = [...value].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    return `{${ordered.map(([name, item]) => `${JSON.stringify(name)}:${dump(item)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(dump).join(",")}]`;
  return value instanceof Literal ? value.text : JSON.stringify(value);
}

/** @param {...Uint8Array} parts @returns {Buffer} */
export function sha256(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** The bytes, or null if it is not exactly how those bytes are written. @param {string} text @returns {Buffer | null} */
export function fromBase64(text) {
  const data = Buffer.from(text, "base64");
  return data.toString("base64") === text ? data : null;
}

// ---- Keys -----------------------------------------------------------------------------------------------------------

const KEY_NAME = "coffer-log";
const SPKI = Buffer.from("302a300506032b6570032100", "hex");
const P = 2n ** 255n - 19n;
// The y coordinates of the points of small order: one signature fits many messages under such a key.
const SMALL_ORDER = [0n, 1n, P - 1n,
  BigInt("0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7"),
  BigInt("0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826")];

/**
 * True if `signature` (64 bytes) over `message` was made with the private key of `key` (32 bytes). OpenSSL compares R by its
 * bytes and refuses S beyond the order of the group; the key's own spelling is checked here.
 * @param {Uint8Array} key @param {Uint8Array} message @param {Uint8Array} signature @returns {boolean}
 */
export function ed25519Verify(key, message, signature) {
  if (key.length !== 32 || signature.length !== 64) return false;
  const y = BigInt(`0x${Buffer.from(key).reverse().toString("hex")}`) & (2n ** 255n - 1n);
  if (y >= P || SMALL_ORDER.includes(y)) return false;
  try {
    const made = createPublicKey({ key: Buffer.concat([SPKI, key]), format: "der", type: "spki" });
    return verify(null, message, made, signature);
  } catch {
    return false; // not a point
  }
}

/** The public key of a log, as `key.pub` has it. */
export class Key {
  /** @param {string} text */
  constructor(text) {
    const match = /^coffer-log\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text.trim());
    const data = match ? fromBase64(/** @type {string} */ (match[2])) : null;
    if (match === null || data === null || data.length !== 33 || data[0] !== 1) throw new SyntaxError("not a public key of a log");
    this.public = data.subarray(1);
    this.id = sha256(Buffer.from(`${KEY_NAME}\n`), data).subarray(0, 4).toString("hex");
    if (this.id !== match[1]) throw new SyntaxError("the public key and its id do not belong together");
  }
}

// ---- The tree (RFC 9162, 2.1) ---------------------------------------------------------------------------------------

/** @param {Uint8Array} line */
export const leafHash = (line) => sha256(Buffer.from([0]), line);
/** @param {Uint8Array} left @param {Uint8Array} right */
const nodeHash = (left, right) => sha256(Buffer.from([1]), left, right);

/**
 * The root that a proof leads to, or null if it has the wrong length (RFC 9162, 2.1.3.2).
 * @param {bigint} index @param {bigint} size @param {Buffer} leaf @param {Buffer[]} proof @returns {Buffer | null}
 */
export function rootFromProof(index, size, leaf, proof) {
  if (index >= size) return null;
  let fn = index, sn = size - 1n, node = leaf;
  for (const part of proof) {
    if (sn === 0n) return null;
    if ((fn & 1n) === 1n || fn === sn) {
      node = nodeHash(part, node);
      while ((fn & 1n) === 0n && fn !== 0n) [fn, sn] = [fn >> 1n, sn >> 1n];
    } else {
      node = nodeHash(node, part);
    }
    [fn, sn] = [fn >> 1n, sn >> 1n];
  }
  return sn === 0n ? node : null;
}
