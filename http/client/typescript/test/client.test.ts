// The client against a real server, which Go starts, and through a proxy that fails on the way to it.
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import {
  AuthenticationError, ConnectionError, PermissionError, QueryError, RateLimitError, ResponseError, Runlens, RunlensError, ServerError,
} from "runlens-client";
import type { Page, Query, Wait } from "runlens-client";

const { BASE: url = "", KEY: key = "", BARE: bare = "" } = process.env;
const runlens = new Runlens({ url, key });
const totals: Query = {
  model: "agent_runs",
  metrics: ["run_count"],
  range: { start: "2026-01-01", end: "2026-01-31", timezone: "UTC" },
};
const byPerson: Query = { ...totals, dimensions: ["user_identifier"] };

// What must not compile.
// @ts-expect-error a range is required
export const noRange: Query = { model: "agent_runs", metrics: ["run_count"] };
// @ts-expect-error there is no such operation
export const like: Query = { ...totals, filters: [{ member: "day", op: "like", value: "2026%" }] };
// @ts-expect-error a membership has values
export const value: Query = { ...totals, filters: [{ member: "day", op: "in", value: "2026-01-01" }] };
export const tomorrow: Query = { ...totals, model: "tomorrow", metrics: ["new_count"] };

/** Answers as faults say, one for each request, and as the server does when they are used up. */
async function proxy(...faults: ((response: http.ServerResponse) => void)[]) {
  const times: number[] = [];
  const server = http.createServer((request, response) => {
    times.push(performance.now());
    const fault = faults.shift();
    if (fault) return void request.resume().on("end", () => fault(response));
    const { method, headers } = request;
    request.pipe(http.request(url + request.url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => server.closeAllConnections());
  after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, times };
}

/** The address of nobody. */
async function closed(): Promise<string> {
  const server = http.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

const status = (code: number, headers = {}, body = "") => (response: http.ServerResponse) => response.writeHead(code, headers).end(body);
const reset = (response: http.ServerResponse) => response.socket?.resetAndDestroy();
const half = (response: http.ServerResponse) => {
  response.writeHead(200, { "content-length": 100 }).write("{");
  setImmediate(() => response.socket?.resetAndDestroy());
};

async function refusal(promise: Promise<unknown>): Promise<any> {
  return promise.then(() => assert.fail("it succeeded"), (error: unknown) => error);
}

test("catalog", async () => {
  const { models } = await runlens.catalog();
  assert.deepEqual(models.map((model) => model.name), ["agent_runs", "agent_user_activity"]);
});

test("totals", async () => {
  const page = await runlens.query(totals);
  assert.deepEqual([page.rows, page.cursor], [[[1001]], null]);
});

test("pages", async () => {
  const pages: Page[] = [];
  for await (const page of runlens.pages(byPerson)) pages.push(page);
  assert.deepEqual(pages.map((page) => page.rows.length), [500, 500, 1]);
  assert.equal(new Set(pages.map((page) => page.asOf)).size, 1);
  assert.equal(new Set(pages.flatMap((page) => page.rows.map((row) => row[0]))).size, 1001);
});

test("a loop that ends early asks nothing more", async () => {
  const { url, times } = await proxy();
  for await (const page of new Runlens({ url, key }).pages({ ...byPerson, limit: 7 })) {
    assert.equal(page.rows.length, 7);
    break;
  }
  assert.equal(times.length, 1);
});

test("refusals are classes", async () => {
  const unknown = await refusal(runlens.query({ ...totals, metrics: ["run_cout"] }));
  assert.ok(unknown instanceof QueryError && unknown instanceof RunlensError && unknown instanceof Error);
  assert.deepEqual([unknown.name, unknown.status, unknown.code, unknown.param], ["QueryError", 400, "unknown_member", "run_cout"]);
  assert.match(unknown.requestId ?? "", /^[0-9a-f-]{36}$/);
  assert.equal(unknown.message, "unknown_member at run_cout: Unknown analytics member.");
  assert.ok((await refusal(new Runlens({ url, key: "rl_unknown" }).catalog())) instanceof AuthenticationError);
  assert.ok((await refusal(new Runlens({ url, key: bare }).query(totals))) instanceof PermissionError);
});

test("wrong arguments", () => {
  for (const bad of ["", "x", "ftp://x", "http://user@x", "http://x?a=b", "http://x?", "http://x#"]) assert.throws(() => new Runlens({ url: bad, key }), TypeError);
  for (const bad of ["", "a b", "a\n"]) assert.throws(() => new Runlens({ url, key: bad }), TypeError);
});

test("429 waits as Retry-After says", async () => {
  const { url, times } = await proxy(status(429, { "retry-after": "1" }));
  const waits: Wait[] = [];
  const page = await new Runlens({ url, key, onWait: (wait) => waits.push(wait) }).query(totals);
  assert.deepEqual(page.rows, [[1001]]);
  assert.deepEqual(waits.map((wait) => [wait.seconds, wait.attempt, wait.cause.constructor]), [[1, 1, RateLimitError]]);
  assert.ok(times[1]! - times[0]! >= 995, `${times}`);
});

test("a query that is too expensive is not sent again", async () => {
  const { url, times } = await proxy(status(429, { "retry-after": "1", "x-runlens-reason": "query_too_expensive" }));
  const error = await refusal(new Runlens({ url, key }).query(totals));
  assert.ok(error instanceof RateLimitError);
  assert.deepEqual([error.reason, times.length], ["query_too_expensive", 1]);
});

test("maxWait bounds the waits", async () => {
  const { url, times } = await proxy(status(429, { "retry-after": "60" }));
  const error = await refusal(new Runlens({ url, key, maxWait: 59 }).catalog());
  assert.ok(error instanceof RateLimitError);
  assert.deepEqual([error.retryAfter, times.length], [60, 1]);
});

test("a signal ends a wait, a request and a loop", async () => {
  const { url, times } = await proxy(status(429, { "retry-after": "60" }), () => {});
  for (const sent of [1, 2]) {
    const controller = new AbortController();
    const reason = new Error("enough");
    const asked = refusal(new Runlens({ url, key, onWait: () => controller.abort(reason) }).query(totals, { signal: controller.signal }));
    if (sent === 2) {
      while (times.length < 2) await new Promise(setImmediate);
      controller.abort(reason);
    }
    assert.equal(await asked, reason);
    assert.equal(times.length, sent);
  }
  const controller = new AbortController();
  const seen = refusal((async () => {
    for await (const _ of runlens.pages(byPerson, { signal: controller.signal })) controller.abort();
  })());
  assert.equal((await seen).name, "AbortError");
});

test("failures that pass", async () => {
  const { url, times } = await proxy(status(503), status(500, {}, '{"error":{"code":"internal_error","message":"x","request_id":"r"}}'), reset, half);
  assert.deepEqual((await new Runlens({ url, key }).query(totals)).rows, [[1001]]);
  assert.equal(times.length, 5);
});

test("failures that stay", async () => {
  const failing = await proxy(...Array.from({ length: 9 }, (_, i) => status(i % 2 ? 429 : 503, { "retry-after": "0" })));
  const error = await refusal(new Runlens({ url: failing.url, key }).query(totals));
  assert.ok(error instanceof ServerError && error.code === "" && failing.times.length === 5, `${error} ${failing.times.length}`);
  const silent = await proxy(() => {});
  assert.match((await refusal(new Runlens({ url: silent.url, key, timeout: 50, maxWait: 0 }).catalog())).message, /nothing came within 50 ms/);
  const busy = await proxy(() => {}); // whose first answer takes too long
  assert.ok(Array.isArray((await new Runlens({ url: busy.url, key, timeout: 2000 }).catalog()).models));
  assert.equal(busy.times.length, 2);
  const withoutTLS = await refusal(new Runlens({ url: failing.url.replace("http:", "https:"), key, onWait: ({ cause }) => assert.fail(cause) }).catalog());
  assert.match(withoutTLS.message, /wrong version number.*\S$/s);
  const nobody = await refusal(new Runlens({ url: await closed(), key }).catalog());
  assert.ok(nobody instanceof ConnectionError);
  assert.match(nobody.message, /no answer from http:\/\/127.0.0.1:\d+: .*ECONNREFUSED/);
});

test("answers of something else", async () => {
  const { url, times } = await proxy(status(200, {}, "<html>"), status(200, {}, "{}"), status(200, {}, "null"), status(302, { location: "http://127.0.0.1:1/" }));
  const other = new Runlens({ url, key });
  for (const ask of [() => other.query(totals), () => other.query(totals), () => other.catalog()]) {
    assert.ok((await refusal(ask())) instanceof ResponseError);
  }
  assert.equal((await refusal(other.catalog())).status, 302);
  assert.equal(times.length, 4);
});
