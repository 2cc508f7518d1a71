import type { ErrorDetail } from "./types.js";

/** What every error of this package is, but for wrong arguments (TypeError) and the reason of an AbortSignal. */
export class RunlensError extends Error {
  override name = this.constructor.name;
}

/** No whole answer came: the server is not running, the address is wrong, or the connection broke. */
export class ConnectionError extends RunlensError {}

/** What came with status 200 is not an answer of this API. */
export class ResponseError extends RunlensError {}

/** The server refused, or failed. */
export class ApiError extends RunlensError {
  constructor(
    readonly status: number,
    /** Such as `unknown_member`; empty if what answered is no runlens server, as a proxy's 502. */
    readonly code: string,
    message: string,
    /** The place in the request, such as `range.timezone`, or the unknown member. */
    readonly param: string | undefined,
    /** Under which the server's log has the cause. */
    readonly requestId: string | undefined,
    /** Seconds that the server asks to wait. */
    readonly retryAfter: number | undefined,
    /** Which limit a 429 is about, such as `query_too_expensive`. */
    readonly reason: string | undefined,
  ) {
    super(message);
  }
}

/** 400: the query breaks a rule. `param` says where. */
export class QueryError extends ApiError {}

/** 401: the key is missing, malformed, unknown, revoked, expired or used from outside its networks. */
export class AuthenticationError extends ApiError {}

/** 403: the key lacks the scope `analytics:read`, or may not ask this: `reason` says what. */
export class PermissionError extends ApiError {}

/** 429: too many requests, or too many at once, for longer than the client may wait; or a query that is too expensive. */
export class RateLimitError extends ApiError {}

/** 5xx: the server failed, again and again. */
export class ServerError extends ApiError {}

const classes: Record<number, typeof ApiError> = {
  400: QueryError,
  401: AuthenticationError,
  403: PermissionError,
  429: RateLimitError,
};

/** The error that an answer without a result stands for. `text` is its body. */
export function apiError(response: Response, text: string): ApiError {
  const detail = detailOf(text);
  const type = classes[response.status] ?? (response.status >= 500 ? ServerError : ApiError);
  const place = detail?.param === undefined ? "" : ` at ${detail.param}`;
  return new type(
    response.status,
    detail?.code ?? "",
    detail ? `${detail.code}${place}: ${detail.message}` : `the server answered ${response.status}`,
    detail?.param,
    detail?.request_id ?? response.headers.get("x-request-id") ?? undefined,
    retryAfter(response.headers.get("retry-after")),
    response.headers.get("x-runlens-reason") ?? undefined,
  );
}

function detailOf(text: string): ErrorDetail | undefined {
  try {
    const error: unknown = JSON.parse(text)?.error;
    return typeof (error as ErrorDetail | undefined)?.code === "string" ? (error as ErrorDetail) : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the header's two forms, whole seconds and a date. */
function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}
