// SPDX-License-Identifier: Apache-2.0
//
// Receipts, and their verification without the daemon: signature, hash, and place in the audit log.
//
// A good receipt shows that the log's key sealed exactly this text for exactly this call. Where the public key comes from
// decides what that is worth: a key that the same server handed out shows only that the server agrees with itself. Take
// `key.pub` of the daemon's log directory once, over a way that you trust, and keep it.
import { Buffer } from "node:buffer";
import { dump, ed25519Verify, fromBase64, Key, leafHash, Literal, parse, rootFromProof, sha256 } from "./canonical.js";
import { ProtocolError, VerificationError } from "./errors.js";
import { parseObject } from "./reading.js";

/** @typedef {import("./canonical.js").Value} Value */
/** @typedef {Map<string, Value>} Members */

const HASH = /^[0-9a-f]{64}$/;
const INTEGER = /^(?:0|-?[1-9][0-9]{0,18})$/;
const NAME = /^[a-z0-9_.]{1,64}$/;
const MAX_LEAF = 65535;

/** One receipt as it was fetched. Nothing in it is to be believed before `verify`. */
export class Receipt {
  /** @param {Uint8Array} raw @param {string} callId */
  constructor(raw, callId) {
    this.raw = raw;
    this.callId = callId;
    this.document = parseObject(raw);
    if (this.document["call_id"] !== callId) throw new ProtocolError("the server sent the receipt of another call");
  }

  /** Throws VerificationError if it does not hold against the public key (the line of `key.pub`). @param {string} key */
  verify(key) {
    verifyReceipt(this.raw, key, this.callId);
  }
}

/** @param {string} message @returns {never} */
function refuse(message) {
  throw new VerificationError(message);
}

/** @param {Members} value @param {string} name */
function text(value, name) {
  const found = value.get(name);
  return typeof found === "string" ? found : refuse("the receipt's seal is incomplete");
}

/** @param {Value | undefined} value @returns {bigint | null} */
function integerOf(value) {
  if (!(value instanceof Literal) || !INTEGER.test(value.text)) return null;
  const number = BigInt(value.text);
  return number < 2n ** 63n && number > -(2n ** 63n) ? number : null;
}

/** @param {Members} value @param {string} name */
function count(value, name) {
  const found = integerOf(value.get(name));
  return found !== null && found >= 0n ? found : refuse("the receipt's seal is incomplete");
}

/**
 * Returns the call's id; VerificationError says what does not hold. With `callId` it must be the receipt of that call.
 * @param {Uint8Array | string} data @param {string} key @param {string} [callId] @returns {string}
 */
export function verifyReceipt(data, key, callId) {
  let publicKey, document;
  try {
    publicKey = new Key(key);
  } catch (error) {
    return refuse(/** @type {Error} */ (error).message);
  }
  try {
    document = parse(typeof data === "string" ? Buffer.from(data) : data);
  } catch (error) {
    return refuse(`not a receipt: ${/** @type {Error} */ (error).message}`);
  }
  if (!(document instanceof Map)) return refuse("not a receipt");
  const canonical = Buffer.from(dump(new Map([...document, ["log", null], ["signature", null]])));
  const log = document.get("log"), signature = document.get("signature");
  if (!(log instanceof Map) || !(signature instanceof Map)) return refuse("the receipt is not sealed");
  const index = count(log, "index"), size = count(log, "size"), root = text(log, "root"), line = Buffer.from(text(log, "leaf"));
  const proof = log.get("proof"), value = fromBase64(text(signature, "value"));
  if (signature.get("algorithm") !== "ed25519" || value === null || log.size !== 5 || signature.size !== 3 || !Array.isArray(proof)) {
    return refuse("the receipt's seal is incomplete");
  }
  const hashes = [root, ...proof].map((part) => (typeof part === "string" && HASH.test(part) ? Buffer.from(part, "hex") : null));
  if (hashes.includes(null) || proof.length > 64) return refuse("the receipt's proof is not made of hashes");
  if (text(signature, "key_id") !== publicKey.id) {
    return refuse(`the receipt was sealed with the key ${text(signature, "key_id")}, this is ${publicKey.id}`);
  }
  const signed = Buffer.concat([Buffer.from(`coffer receipt 1\n${root}\n${size}\n${index}\n`), canonical]);
  if (!ed25519Verify(publicKey.public, signed, value)) {
    return refuse("the receipt was changed after it was sealed: its signature does not verify");
  }
  const leaf = readLeaf(line);
  if (leaf.get("kind") !== "receipt" || integerOf(leaf.get("seq")) !== index) {
    return refuse("the log's line in the receipt is not about a receipt");
  }
  if (leaf.get("body") !== `sha256:${sha256(canonical).toString("hex")}`) {
    return refuse("the receipt is not the one that the log recorded: its hash differs");
  }
  const call = leaf.get("call");
  if (typeof call !== "string" || call !== document.get("call_id") || leaf.get("tenant") !== document.get("tenant")) {
    return refuse("the log's line in the receipt is about another call");
  }
  const found = rootFromProof(index, size, leafHash(line), /** @type {Buffer[]} */ (hashes.slice(1)));
  if (found === null || found.toString("hex") !== root) return refuse("the log's line in the receipt is not under the root it names");
  if (callId !== undefined && call !== callId) return refuse("this is the receipt of another call");
  return call;
}

/** The members of a leaf about a receipt, written exactly as the log writes it. @param {Buffer} line @returns {Members} */
function readLeaf(line) {
  const bad = "the log's line in the receipt cannot be read";
  let leaf;
  try {
    leaf = parse(line);
  } catch {
    return refuse(bad);
  }
  if (line.length > MAX_LEAF || !(leaf instanceof Map) || !Buffer.from(dump(leaf)).equals(line)) return refuse(bad);
  for (const [name, item] of leaf) {
    const plain = item === null || typeof item === "boolean" || typeof item === "string" || integerOf(item) !== null;
    if (!NAME.test(name) || !plain) return refuse(bad);
  }
  const version = leaf.get("v"), tenant = leaf.get("tenant");
  const whole = version instanceof Literal && version.text === "1" && integerOf(leaf.get("at")) !== null &&
    (tenant === null || typeof tenant === "string") && typeof leaf.get("outcome") === "string" &&
    typeof leaf.get("ran") === "boolean" && typeof (leaf.get("recovered") ?? false) === "boolean";
  return whole ? leaf : refuse(bad);
}
