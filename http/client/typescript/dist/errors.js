/** What every error of this package is, but for wrong arguments (TypeError) and the reason of an AbortSignal. */
export class RunlensError extends Error {
    name = this.constructor.name;
}
/** No whole answer came: the server is not running, the address is wrong, or the connection broke. */
export class ConnectionError extends RunlensError {
}
/** What came with status 200 is not an answer of this API. */
export class ResponseError extends RunlensError {
}
/** The server refused, or failed. */
export class ApiError extends RunlensError {
    status;
    code;
    param;
    requestId;
    retryAfter;
    reason;
    constructor(status, 
    /** Such as `unknown_member`; empty if what answered is no runlens server, as a proxy's 502. */
    code, message, 
    /** The place in the request, such as `range.timezone`, or the unknown member. */
    param, 
    /** Under which the server's log has the cause. */
    requestId, 
    /** Seconds that the server asks to wait. */
    retryAfter, 
    /** Which limit a 429 is about, such as `query_too_expensive`. */
    reason) {
        super(message);
        this.status = status;
        this.code = code;
        this.param = param;
        this.requestId = requestId;
        this.retryAfter = retryAfter;
        this.reason = reason;
    }
}
/** 400: the query breaks a rule. `param` says where. */
export class QueryError extends ApiError {
}
/** 401: the key is missing, malformed, unknown, revoked, expired or used from outside its networks. */
export class AuthenticationError extends ApiError {
}
/** 403: the key lacks the scope `analytics:read`, or may not ask this: `reason` says what. */
export class PermissionError extends ApiError {
}
/** 429: too many requests, or too many at once, for longer than the client may wait; or a query that is too expensive. */
export class RateLimitError extends ApiError {
}
/** 5xx: the server failed, again and again. */
export class ServerError extends ApiError {
}
const classes = {
    400: QueryError,
    401: AuthenticationError,
    403: PermissionError,
    429: RateLimitError,
};
/** The error that an answer without a result stands for. `text` is its body. */
export function apiError(response, text) {
    const detail = detailOf(text);
    const type = classes[response.status] ?? (response.status >= 500 ? ServerError : ApiError);
    const place = detail?.param === undefined ? "" : ` at ${detail.param}`;
    return new type(response.status, detail?.code ?? "", detail ? `${detail.code}${place}: ${detail.message}` : `the server answered ${response.status}`, detail?.param, detail?.request_id ?? response.headers.get("x-request-id") ?? undefined, retryAfter(response.headers.get("retry-after")), response.headers.get("x-runlens-reason") ?? undefined);
}
function detailOf(text) {
    try {
        const error = JSON.parse(text)?.error;
        return typeof error?.code === "string" ? error : undefined;
    }
    catch {
        return undefined;
    }
}
/** Reads the header's two forms, whole seconds and a date. */
function retryAfter(header) {
    if (header === null)
        return undefined;
    if (/^\d+$/.test(header))
        return Number(header);
    const at = Date.parse(header);
    return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}
