export { Runlens } from "./client.js";
export type { Options, CallOptions } from "./client.js";
export type { Wait } from "./send.js";
export {
  ApiError,
  AuthenticationError,
  ConnectionError,
  PermissionError,
  QueryError,
  RateLimitError,
  ResponseError,
  RunlensError,
  ServerError,
} from "./errors.js";
export type * from "./types.js";
