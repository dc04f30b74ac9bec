/**
 * Calls a tool that the run offers and waits for its result.
 * @param {string} tool
 * @param {Record<string, unknown>} [args]
 * @returns {Promise<InsideResult>}
 */
export function call(tool: string, args?: Record<string, unknown>): Promise<InsideResult>;
/**
 * The definitions of the tools that the run offers.
 * @returns {Promise<Record<string, unknown>[]>}
 */
export function tools(): Promise<Record<string, unknown>[]>;
export type InsideResult = {
    stdout: string;
    stderr: string;
    exit_code: number | null;
    outcome: string;
    call_id: string | null;
    error: {
        class: string;
        message: string;
        hint?: string;
    } | null;
    [name: string]: unknown;
};
