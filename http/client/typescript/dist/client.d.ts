import type { Question } from "./question.js";
import type { Wait } from "./send.js";
import type { Answer, Catalog, Page, Query } from "./types.js";
/** Which server is asked, and how patiently. */
export interface Options {
    /** The server's address, such as `https://analytics.example.com`. */
    url: string;
    /** An API key with the scope `analytics:read`. It belongs on a server, never in a browser. */
    key: string;
    /** Sends the requests; the global `fetch` by default. */
    fetch?: typeof fetch;
    /** Bounds one attempt, in milliseconds; 120,000 by default. */
    timeout?: number;
    /** Bounds the pauses of one request together, in seconds, inclusive; 600 by default. 0 sends everything once. */
    maxWait?: number;
    /** Is called before each pause. */
    onWait?: (wait: Wait) => void;
}
export interface CallOptions {
    /** Ends requests and pauses; what was called then throws the signal's reason. */
    signal?: AbortSignal;
}
export interface AskOptions extends CallOptions {
    /** When the question's period is seen from, so that a report can be repeated. */
    now?: Date;
}
/** Asks one server with one key. */
export declare class Runlens {
    #private;
    /** Throws a TypeError for an address or a key that cannot be one. It sends nothing. */
    constructor({ url, key, fetch: send, timeout, maxWait, onWait }: Options);
    /** Lists everything that can be asked. */
    catalog(options?: CallOptions): Promise<Catalog>;
    /** Asks for one page. */
    query(query: Query, options?: CallOptions): Promise<Page>;
    /**
     * Asks for every page of an answer, one after another. All have the same `asOf`. Nothing is asked ahead, so a loop
     * that ends early sends nothing more.
     */
    pages(query: Query, options?: CallOptions): AsyncGenerator<Page, void, undefined>;
    /**
     * Answers a question as `runlens query` does, with all rows unless it has a limit. What is wrong with it is a TypeError,
     * before anything is sent.
     */
    ask(question: Question, { now, ...options }?: AskOptions): Promise<Answer>;
}
