export { Runlens } from "./client.js";
export { ApiError, AuthenticationError, ConnectionError, PermissionError, QueryError, RateLimitError, ResponseError, RunlensError, ServerError, } from "./errors.js";
