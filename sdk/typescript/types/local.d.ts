/** The program: COFFER_BIN, or `coffer` on PATH. Relative places of PATH do not count: what lies there is not ours. */
export function findCoffer(): string;
/** Where a daemon of this user listens if one runs. @returns {string | null} */
export function defaultSocket(): string | null;
/** Whether a daemon listens there. @param {string} file @returns {Promise<boolean>} */
export function isListening(file: string): Promise<boolean>;
/** A daemon that this object owns. `url` is where it listens. */
export class LocalDaemon {
    /** @param {{ state?: string, tools?: string[] }} options @returns {Promise<LocalDaemon>} */
    static start(options: {
        state?: string;
        tools?: string[];
    }): Promise<LocalDaemon>;
    /** @param {Child} child @param {string | null} made */
    constructor(child: Child, made: string | null);
    url: string;
    /** Ends the daemon and waits for it. @returns {Promise<void>} */
    close(): Promise<void>;
    #private;
}
export type Child = import("node:child_process").ChildProcessWithoutNullStreams;
