/** @param {Uint8Array} data UTF-8 @returns {Value} */
export function parse(data: Uint8Array): Value;
/** Compact, members sorted by the bytes of their names, numbers as they were. @param {Value} value @returns {string} */
export function dump(value: Value): string;
/** @param {...Uint8Array} parts @returns {Buffer} */
export function sha256(...parts: Uint8Array[]): Buffer;
/** The bytes, or null if it is not exactly how those bytes are written. @param {string} text @returns {Buffer | null} */
export function fromBase64(text: string): Buffer | null;
/**
 * True if `signature` (64 bytes) over `message` was made with the private key of `key` (32 bytes). OpenSSL compares R by its
 * bytes and refuses S beyond the order of the group; the key's own spelling is checked here.
 * @param {Uint8Array} key @param {Uint8Array} message @param {Uint8Array} signature @returns {boolean}
 */
export function ed25519Verify(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
/**
 * The root that a proof leads to, or null if it has the wrong length (RFC 9162, 2.1.3.2).
 * @param {bigint} index @param {bigint} size @param {Buffer} leaf @param {Buffer[]} proof @returns {Buffer | null}
 */
export function rootFromProof(index: bigint, size: bigint, leaf: Buffer, proof: Buffer[]): Buffer | null;
/** A number as it was written. */
export class Literal {
    /** @param {string} text */
    constructor(text: string);
    text: string;
}
/** The public key of a log, as `key.pub` has it. */
export class Key {
    /** @param {string} text */
    constructor(text: string);
    public: Buffer<ArrayBufferLike>;
    id: string;
}
export function leafHash(line: Uint8Array): Buffer<ArrayBufferLike>;
export type Value = null | boolean | string | Literal | any[] | Map<string, any>;
import { Buffer } from "node:buffer";
