/** What every error of this package is, but for wrong arguments (TypeError) and the reason of an AbortSignal. */
export declare class RunlensError extends Error {
    name: string;
}
/** No whole answer came: the server is not running, the address is wrong, or the connection broke. */
export declare class ConnectionError extends RunlensError {
}
/** What came with status 200 is not an answer of this API. */
export declare class ResponseError extends RunlensError {
}
/** The server refused, or failed. */
export declare class ApiError extends RunlensError {
    readonly status: number;
    /** Such as `unknown_member`; empty if what answered is no runlens server, as a proxy's 502. */
    readonly code: string;
    /** The place in the request, such as `range.timezone`, or the unknown member. */
    readonly param: string | undefined;
    /** Under which the server's log has the cause. */
    readonly requestId: string | undefined;
    /** Seconds that the server asks to wait. */
    readonly retryAfter: number | undefined;
    /** Which limit a 429 is about, such as `query_too_expensive`. */
    readonly reason: string | undefined;
    constructor(status: number, 
    /** Such as `unknown_member`; empty if what answered is no runlens server, as a proxy's 502. */
    code: string, message: string, 
    /** The place in the request, such as `range.timezone`, or the unknown member. */
    param: string | undefined, 
    /** Under which the server's log has the cause. */
    requestId: string | undefined, 
    /** Seconds that the server asks to wait. */
    retryAfter: number | undefined, 
    /** Which limit a 429 is about, such as `query_too_expensive`. */
    reason: string | undefined);
}
/** 400: the query breaks a rule. `param` says where. */
export declare class QueryError extends ApiError {
}
/** 401: the key is missing, malformed, unknown, revoked, expired or used from outside its networks. */
export declare class AuthenticationError extends ApiError {
}
/** 403: the key lacks the scope `analytics:read`, or may not ask this: `reason` says what. */
export declare class PermissionError extends ApiError {
}
/** 429: too many requests, or too many at once, for longer than the client may wait; or a query that is too expensive. */
export declare class RateLimitError extends ApiError {
}
/** 5xx: the server failed, again and again. */
export declare class ServerError extends ApiError {
}
/** The error that an answer without a result stands for. `text` is its body. */
export declare function apiError(response: Response, text: string): ApiError;
