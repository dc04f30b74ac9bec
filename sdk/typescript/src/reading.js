// SPDX-License-Identifier: Apache-2.0
//
// Reads what a server answered. Everything is checked before it is used: a wrong type is a ProtocolError.
//
// Ids and encoded paths that a server chose go into later requests, so they must look like ids and paths. Otherwise a
// hostile server could choose which request the client makes next.
import { ProtocolError } from "./errors.js";

/** @typedef {{ [name: string]: unknown }} Json */

const ID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const ENCODED = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+$/;
const TOOL = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** @param {string} name */
const wrong = (name) => new ProtocolError(`the member ${name} of the server's answer is missing or of the wrong type`);

/**
 * @param {unknown} value
 * @returns {value is Json}
 */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The JSON object that a body is. `hide` takes the key out of every text in it.
 * @param {Uint8Array} body
 * @param {(text: string) => string} [hide]
 * @returns {Json}
 */
export function parseObject(body, hide) {
  let value;
  try {
    /** @type {((name: string, item: unknown) => unknown) | undefined} */
    const reviver = hide && ((_name, item) => (typeof item === "string" ? hide(item) : item));
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body), reviver);
  } catch {
    throw new ProtocolError("the server's answer is not JSON");
  }
  if (!isObject(value)) throw new ProtocolError("the server's answer is not a JSON object");
  return value;
}

/** An own member; never one of Object.prototype.
 * @param {Json} value
 * @param {string} name
 * @returns {unknown}
 */
const own = (value, name) => (Object.hasOwn(value, name) ? value[name] : undefined);

/** @param {Json} value @param {string} name @returns {boolean} */
export const has = (value, name) => own(value, name) !== undefined && own(value, name) !== null;

/** @param {Json} value @param {string} name @returns {string} */
export function text(value, name) {
  const found = own(value, name);
  if (typeof found !== "string") throw wrong(name);
  return found;
}

/** @param {Json} value @param {string} name @returns {string} */
export function word(value, name) {
  const found = text(value, name);
  if (!/^[a-z]{1,32}$/.test(found)) throw wrong(name);
  return found;
}

/** @param {Json} value @param {string} name @returns {string | null} */
export const optionalText = (value, name) => (has(value, name) ? text(value, name) : null);

/** @param {Json} value @param {string} name @returns {number} */
export function integer(value, name) {
  const found = own(value, name);
  if (typeof found !== "number" || !Number.isSafeInteger(found)) throw wrong(name);
  return found;
}

/** @param {Json} value @param {string} name @returns {number | null} */
export const optionalInteger = (value, name) => (has(value, name) ? integer(value, name) : null);

/** @param {Json} value @param {string} name @returns {boolean} */
export function boolean(value, name) {
  const found = own(value, name);
  if (typeof found !== "boolean") throw wrong(name);
  return found;
}

/** @param {Json} value @param {string} name @returns {Json} */
export function member(value, name) {
  const found = own(value, name);
  if (!isObject(found)) throw wrong(name);
  return found;
}

/** @param {Json} value @param {string} name @returns {Json[]} */
export function objects(value, name) {
  const found = own(value, name);
  if (!Array.isArray(found) || !found.every(isObject)) throw wrong(name);
  return found;
}

/** @param {Json} value @param {string} name @returns {number[]} */
export function integers(value, name) {
  const found = own(value, name);
  if (!Array.isArray(found) || !found.every(Number.isSafeInteger)) throw wrong(name);
  return found;
}

/** An id that the server chose.
 * @param {Json} value @param {string} name @returns {string} */
export function answeredId(value, name) {
  const found = text(value, name);
  if (!ID.test(found)) throw new ProtocolError(`the member ${name} of the server's answer is not an id`);
  return found;
}

/** `next` of a list, which goes into the next request. @param {Json} value @returns {string | null} */
export function answeredCursor(value) {
  const found = optionalText(value, "next");
  if (found !== null && !/^[ -~]{1,2048}$/.test(found)) throw new ProtocolError("the server's cursor is not one");
  return found;
}

/** @param {Json} value @returns {string} */
export function answeredTool(value) {
  const found = text(value, "name");
  if (!TOOL.test(found)) throw new ProtocolError("the server named a tool by something that is not a name");
  return found;
}

/** An id that the caller of this package gave.
 * @param {string} id @returns {string} */
export function givenId(id) {
  if (!ID.test(id)) throw new TypeError("this is not an id of Cofferdam: it should look like 01a1ddf1-a908-7323-9069-8724c9a25bb1");
  return id;
}

/** @param {string} name @returns {string} */
export function givenTool(name) {
  if (!TOOL.test(name)) throw new TypeError("this is not the name of a tool: a-z, 0-9 and -, at most 63 characters");
  return name;
}

/** @param {string} encoded */
const climbs = (encoded) => encoded.split("/").some((part) => ["", ".", ".."].includes(part.replace(/%2e/gi, ".")));

/** `encoded_path` of a file in a list.
 * @param {Json} value @returns {string} */
export function answeredPath(value) {
  const found = text(value, "encoded_path");
  if (!ENCODED.test(found) || climbs(found)) throw new ProtocolError("the server named a file by something that is not a path");
  return found;
}

/** A path of the caller's, as it goes into the URL.
 * @param {string} path @returns {string} */
export function givenPath(path) {
  if (climbs(path)) {
    throw new TypeError("a path is relative to the workspace and has no empty part, no . and no ..: in/data.csv");
  }
  try {
    return path.split("/").map(encodeURIComponent).join("/");
  } catch {
    throw new TypeError("the path is not well-formed text");
  }
}
