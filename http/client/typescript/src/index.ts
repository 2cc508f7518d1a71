export { Runlens } from "./client.js";
export type { AskOptions, Options, CallOptions } from "./client.js";
export type { Question } from "./question.js";
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
