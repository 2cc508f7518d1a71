import { ResponseError } from "./errors.js";
import { Report } from "./report.js";
import { send } from "./send.js";
/** Asks one server with one key. */
export class Runlens {
    #server;
    #headers;
    #sending;
    /** Throws a TypeError for an address or a key that cannot be one. It sends nothing. */
    constructor({ url, key, fetch: send = fetch, timeout = 120_000, maxWait = 600, onWait }) {
        if (!/^[!-~]+$/.test(key ?? ""))
            throw new TypeError("the API key is empty, or has characters that no key has");
        this.#server = { url: addressOf(url), reached: false };
        this.#headers = { authorization: `Bearer ${key}` };
        this.#sending = { fetch: send, timeout, maxWait, onWait };
    }
    /** Lists everything that can be asked. */
    async catalog(options = {}) {
        const catalog = await this.#ask("/api/v1/analytics/catalog", {}, options);
        if (!Array.isArray(catalog?.models))
            throw new ResponseError("the answer is no catalog");
        return catalog;
    }
    /** Asks for one page. */
    async query(query, options = {}) {
        const init = { method: "POST", body: JSON.stringify(query), headers: { "content-type": "application/json" } };
        const page = await this.#ask("/api/v1/analytics/query", init, options);
        if (!Array.isArray(page?.rows) || !Array.isArray(page.columns))
            throw new ResponseError("the answer is no page");
        return page;
    }
    /**
     * Asks for every page of an answer, one after another. All have the same `asOf`. Nothing is asked ahead, so a loop
     * that ends early sends nothing more.
     */
    async *pages(query, options = {}) {
        let next = { limit: 500, ...query };
        for (;;) {
            const page = await this.query(next, options);
            if (page.cursor !== null && page.cursor === next.cursor)
                throw new ResponseError("the same cursor came again");
            yield page;
            if (page.cursor === null)
                return;
            next = { ...next, cursor: page.cursor };
        }
    }
    /**
     * Answers a question as `runlens query` does, with all rows unless it has a limit. What is wrong with it is a TypeError,
     * before anything is sent.
     */
    async ask(question, { now = new Date(), ...options } = {}) {
        return new Report((query) => this.pages(query, options), question, now).answer();
    }
    async #ask(path, init, { signal }) {
        const headers = { ...this.#headers, ...init.headers };
        const text = await send(this.#server, path, { ...init, headers }, { ...this.#sending, signal });
        try {
            return JSON.parse(text);
        }
        catch (cause) {
            throw new ResponseError("the answer is not JSON", { cause });
        }
    }
}
/** The address without a trailing slash. */
function addressOf(text) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || /[?#]/.test(text)) {
        throw new TypeError("the url must be an address such as http://127.0.0.1:8080");
    }
    return url.href.replace(/\/+$/, "");
}
