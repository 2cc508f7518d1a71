import { RunlensError } from "./errors.js";
/** A pause before a request is sent again. */
export interface Wait {
    seconds: number;
    /** The attempt that failed, from 1. */
    attempt: number;
    cause: RunlensError;
}
/** What a request is sent with, and how patiently. */
export interface Sending {
    fetch: typeof fetch;
    /** Of one attempt, from connecting to the last byte, in milliseconds. */
    timeout: number;
    /** Of all pauses of one request together, in seconds, inclusive. 0 sends everything once. */
    maxWait: number;
    onWait: ((wait: Wait) => void) | undefined;
    signal: AbortSignal | undefined;
}
/** A server of which this address is known to have had an answer. */
export interface Server {
    url: string;
    reached: boolean;
}
/**
 * Sends a request until it is answered with 200, refused for good, or out of patience. Every request only reads, so a
 * repeat changes nothing.
 */
export declare function send(server: Server, path: string, init: RequestInit, s: Sending): Promise<string>;
