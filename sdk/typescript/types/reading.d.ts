/**
 * The JSON object that a body is. `hide` takes the key out of every text in it.
 * @param {Uint8Array} body
 * @param {(text: string) => string} [hide]
 * @returns {Json}
 */
export function parseObject(body: Uint8Array, hide?: (text: string) => string): Json;
/** @param {Json} value @param {string} name @returns {string} */
export function text(value: Json, name: string): string;
/** @param {Json} value @param {string} name @returns {string} */
export function word(value: Json, name: string): string;
/** @param {Json} value @param {string} name @returns {number} */
export function integer(value: Json, name: string): number;
/** @param {Json} value @param {string} name @returns {boolean} */
export function boolean(value: Json, name: string): boolean;
/** @param {Json} value @param {string} name @returns {Json} */
export function member(value: Json, name: string): Json;
/** @param {Json} value @param {string} name @returns {Json[]} */
export function objects(value: Json, name: string): Json[];
/** @param {Json} value @param {string} name @returns {number[]} */
export function integers(value: Json, name: string): number[];
/** An id that the server chose.
 * @param {Json} value @param {string} name @returns {string} */
export function answeredId(value: Json, name: string): string;
/** `next` of a list, which goes into the next request. @param {Json} value @returns {string | null} */
export function answeredCursor(value: Json): string | null;
/** @param {Json} value @returns {string} */
export function answeredTool(value: Json): string;
/** An id that the caller of this package gave.
 * @param {string} id @returns {string} */
export function givenId(id: string): string;
/** @param {string} name @returns {string} */
export function givenTool(name: string): string;
/** `encoded_path` of a file in a list.
 * @param {Json} value @returns {string} */
export function answeredPath(value: Json): string;
/** A path of the caller's, as it goes into the URL.
 * @param {string} path @returns {string} */
export function givenPath(path: string): string;
export function has(value: Json, name: string): boolean;
export function optionalText(value: Json, name: string): string | null;
export function optionalInteger(value: Json, name: string): number | null;
export type Json = {
    [name: string]: unknown;
};
