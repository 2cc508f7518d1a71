import { ApiError, apiError, ConnectionError, RateLimitError, RunlensError } from "./errors.js";

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

/** How often a request that fails or is lost is sent at most. Being refused with 429 and Retry-After does not count. */
const maxAttempts = 5;
const firstBackoff = 0.25; // seconds

/** The reason of a query that takes more time or memory than a query may: it would be refused again. */
const tooExpensive = "query_too_expensive";

/** A server of which this address is known to have had an answer. */
export interface Server {
  url: string;
  reached: boolean;
}

/**
 * Sends a request until it is answered with 200, refused for good, or out of patience. Every request only reads, so a
 * repeat changes nothing.
 */
export async function send(server: Server, path: string, init: RequestInit, s: Sending): Promise<string> {
  let waited = 0;
  let failures = 0;
  for (let attempt = 1; ; attempt++) {
    const outcome = await once(server, path, init, s);
    if (typeof outcome === "string") return outcome;
    const asked = (outcome instanceof ApiError && outcome.retryAfter) || 0;
    if (outcome instanceof ApiError && outcome.reason === tooExpensive) throw outcome;
    const limited = outcome instanceof RateLimitError && asked > 0;
    if (!limited && (!mayPass(outcome, server) || ++failures >= maxAttempts)) throw outcome;
    const seconds = asked || backoff(failures);
    if (waited + seconds > s.maxWait) throw outcome;
    s.onWait?.({ seconds, attempt, cause: outcome });
    await pause(seconds, s.signal);
    waited += seconds;
  }
}

/** What fetch says where a connection was made, and broke. */
const broken = ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"];

/** Whether the same request may succeed later. A server that never answered is likelier not there than restarting. */
function mayPass(error: RunlensError, server: Server): boolean {
  if (error instanceof ApiError) return error.status === 429 || error.status >= 500;
  // fetch ends attempts to connect by itself: what came too late, came from a server.
  const late = (error.cause as Error | undefined)?.name === "TimeoutError";
  return server.reached || late || broken.includes(innerOf(error.cause)?.code ?? "");
}

/** Callers that failed together come back apart. */
function backoff(failures: number): number {
  return firstBackoff * 2 ** (failures - 1) * (0.5 + Math.random() / 2);
}

/** Sends a request one time, and returns the body of a 200, or what went wrong. */
async function once(server: Server, path: string, init: RequestInit, s: Sending): Promise<string | RunlensError> {
  s.signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(s.timeout);
  const signal = s.signal ? AbortSignal.any([s.signal, timeout]) : timeout;
  try {
    // A redirect would send the key on.
    const { fetch } = s;
    const response = await fetch(server.url + path, { ...init, redirect: "manual", signal });
    server.reached = true;
    const text = await response.text();
    return response.status === 200 ? text : apiError(response, text);
  } catch (cause) {
    s.signal?.throwIfAborted();
    const reason = timeout.aborted ? `nothing came within ${s.timeout} ms` : reasonOf(cause);
    return new ConnectionError(`no answer from ${server.url}: ${reason}`, { cause });
  }
}

function innerOf(error: unknown): { message?: string; code?: string } | undefined {
  return (error as { cause?: { message?: string; code?: string } } | undefined)?.cause;
}

/** fetch says "fetch failed", and why in the cause. */
function reasonOf(error: unknown): string {
  const inner = innerOf(error);
  return inner?.message?.trim() || inner?.code || (error instanceof Error ? error.message : String(error));
}

function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
