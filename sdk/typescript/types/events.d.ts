/** Takes bytes as they come and gives the events that are complete. `lastId` is where to go on after a cut. */
export class EventReader {
    /** @param {number | null} lastId */
    constructor(lastId: number | null);
    lastId: number | null;
    /** @param {Buffer} data @returns {Generator<CallEvent>} */
    feed(data: Buffer): Generator<CallEvent>;
    #private;
}
export type CallEvent = import("./values.js").CallEvent;
import { Buffer } from "node:buffer";
