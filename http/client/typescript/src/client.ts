import { ResponseError } from "./errors.js";
import type { Question } from "./question.js";
import { Report } from "./report.js";
import { send } from "./send.js";
import type { Sending, Server, Wait } from "./send.js";
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
export class Runlens {
  readonly #server: Server;
  readonly #headers: Record<string, string>;
  readonly #sending: Omit<Sending, "signal">;

  /** Throws a TypeError for an address or a key that cannot be one. It sends nothing. */
  constructor({ url, key, fetch: send = fetch, timeout = 120_000, maxWait = 600, onWait }: Options) {
    if (!/^[!-~]+$/.test(key ?? "")) throw new TypeError("the API key is empty, or has characters that no key has");
    this.#server = { url: addressOf(url), reached: false };
    this.#headers = { authorization: `Bearer ${key}` };
    this.#sending = { fetch: send, timeout, maxWait, onWait };
  }

  /** Lists everything that can be asked. */
  async catalog(options: CallOptions = {}): Promise<Catalog> {
    const catalog = await this.#ask<Catalog>("/api/v1/analytics/catalog", {}, options);
    if (!Array.isArray(catalog?.models)) throw new ResponseError("the answer is no catalog");
    return catalog;
  }

  /** Asks for one page. */
  async query(query: Query, options: CallOptions = {}): Promise<Page> {
    const init = { method: "POST", body: JSON.stringify(query), headers: { "content-type": "application/json" } };
    const page = await this.#ask<Page>("/api/v1/analytics/query", init, options);
    if (!Array.isArray(page?.rows) || !Array.isArray(page.columns)) throw new ResponseError("the answer is no page");
    return page;
  }

  /**
   * Asks for every page of an answer, one after another. All have the same `asOf`. Nothing is asked ahead, so a loop
   * that ends early sends nothing more.
   */
  async *pages(query: Query, options: CallOptions = {}): AsyncGenerator<Page, void, undefined> {
    let next: Query = { limit: 500, ...query };
    for (;;) {
      const page = await this.query(next, options);
      if (page.cursor !== null && page.cursor === next.cursor) throw new ResponseError("the same cursor came again");
      yield page;
      if (page.cursor === null) return;
      next = { ...next, cursor: page.cursor };
    }
  }

  /**
   * Answers a question as `runlens query` does, with all rows unless it has a limit. What is wrong with it is a TypeError,
   * before anything is sent.
   */
  async ask(question: Question, { now = new Date(), ...options }: AskOptions = {}): Promise<Answer> {
    return new Report((query) => this.pages(query, options), question, now).answer();
  }

  async #ask<T>(path: string, init: RequestInit, { signal }: CallOptions): Promise<T> {
    const headers = { ...this.#headers, ...(init.headers as Record<string, string> | undefined) };
    const text = await send(this.#server, path, { ...init, headers }, { ...this.#sending, signal });
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new ResponseError("the answer is not JSON", { cause });
    }
  }
}

/** The address without a trailing slash. */
function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || /[?#]/.test(text)) {
    throw new TypeError("the url must be an address such as http://127.0.0.1:8080");
  }
  return url.href.replace(/\/+$/, "");
}
