/**
 * Returns the call's id; VerificationError says what does not hold. With `callId` it must be the receipt of that call.
 * @param {Uint8Array | string} data @param {string} key @param {string} [callId] @returns {string}
 */
export function verifyReceipt(data: Uint8Array | string, key: string, callId?: string): string;
/** One receipt as it was fetched. Nothing in it is to be believed before `verify`. */
export class Receipt {
    /** @param {Uint8Array} raw @param {string} callId */
    constructor(raw: Uint8Array, callId: string);
    raw: Uint8Array<ArrayBufferLike>;
    callId: string;
    document: import("./reading.js").Json;
    /** Throws VerificationError if it does not hold against the public key (the line of `key.pub`). @param {string} key */
    verify(key: string): void;
}
export type Value = import("./canonical.js").Value;
export type Members = Map<string, Value>;
