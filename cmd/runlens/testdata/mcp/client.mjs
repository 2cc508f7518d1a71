// An independent MCP client, the protocol's own SDK for JavaScript: it connects to runlens mcp and checks what it gets.
import assert from "node:assert/strict";
import { writeFile, rm } from "node:fs/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { COMMAND, ADDRESS, RUNLENS_API_KEY, QUESTIONS } = process.env;
const transport = ADDRESS
  ? new StreamableHTTPClientTransport(new URL(ADDRESS), { requestInit: { headers: { authorization: `Bearer ${RUNLENS_API_KEY}` } } })
  : new StdioClientTransport({ command: COMMAND, args: ["mcp"], env: process.env });
const client = new Client({ name: "a test", version: "1" });
await client.connect(transport);
assert.match(client.getInstructions(), /Call catalog first/);

// The tools say of themselves what they take, in members of the catalog, and that they change nothing.
const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => [tool.name, tool.annotations.readOnlyHint]), [["catalog", true], ["query", true]]);
const { properties, required } = tools[1].inputSchema;
assert.deepEqual(properties.model.enum, ["agent_runs", "agent_user_activity"]);
assert.ok(properties.metrics.items.enum.includes("run_success_rate") && properties.metrics.items.enum.includes("interaction_count"));
assert.ok(properties.dimensions.items.enum.includes("user_domain"));
assert.deepEqual(required, ["model", "metrics", "range"]);
for (const tool of tools) assert.ok(JSON.stringify(tool).length < 4096, `${tool.name} has ${JSON.stringify(tool).length} bytes`);

const catalog = (await client.callTool({ name: "catalog", arguments: {} })).structuredContent;
assert.deepEqual(catalog.models.map((model) => model.name), ["agent_runs", "agent_user_activity"]);
assert.deepEqual(catalog.models[0].metrics.filter((m) => /^run_/.test(m.name)).map((m) => [m.name, m.unit, m.additive]),
  [["run_count", "count", true], ["run_success_rate", "ratio from 0 to 1", false]]);
assert.ok(Math.abs(Date.parse(catalog.now) - Date.now()) < 3_600_000, catalog.now);

// Answers have units, warnings and asOf, as data and as text.
const totals = {
  model: "agent_runs",
  metrics: ["run_count", "run_success_rate"],
  range: { start: "2026-01-01", end: "2026-01-31", timezone: "Europe/Stockholm" },
};
const ask = (more) => client.callTool({ name: "query", arguments: { ...totals, ...more } });
const result = await ask({});
const { rows, columns, warnings, asOf, range } = result.structuredContent;
assert.deepEqual(rows, [[300, 1]]);
assert.deepEqual(columns.map((c) => [c.name, c.unit, c.additive]), [["run_count", "count", true], ["run_success_rate", "ratio from 0 to 1", false]]);
assert.deepEqual(warnings.map((w) => [w.code, w.member]), [["non_additive_metric", "run_success_rate"]]);
assert.ok(Date.parse(asOf) <= Date.now() && Date.parse(asOf) > Date.now() - 3_600_000, asOf);
assert.deepEqual([range.start, range.timezone, range.endUtc], ["2026-01-01", "Europe/Stockholm", "2026-01-31T23:00:00Z"]);
assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
const byDay = (await ask({ dimensions: ["day"], metrics: ["run_count"] })).structuredContent;
assert.deepEqual([byDay.rows, byDay.columns[0].unit], [[["2026-01-05", 300]], "day in Europe/Stockholm"]);

// An answer that is too large says what is missing; what it advises works, and goes on.
const people = { dimensions: ["user_identifier"], metrics: ["run_count"], limit: 299 }; // and a further one
const large = (await ask(people)).structuredContent;
assert.ok(large.rows.length < 299 && large.cursor === undefined && JSON.stringify(large.rows).length <= 65_537);
const advised = Number(/ask with limit (\d+)/.exec(large.truncated)[1]);
let seen = 0;
for (let cursor; ; ) {
  const page = (await ask({ ...people, limit: advised, ...(cursor && { cursor }) })).structuredContent;
  assert.equal(page.truncated, undefined);
  seen += page.rows.length;
  if (!(cursor = page.cursor)) break;
}
assert.equal(seen, 300);
const byWeek = (await ask({ ...people, limit: 300, grain: "week" })).structuredContent; // so many rows are no limit of one week
assert.match(byWeek.truncated, /ask with a smaller limit of each week, /);

// A period needs no date, and is compared with an earlier one in one call: 300 runs on Monday the 5th.
const today = async (timezone) => (await ask({ range: { last: "today", timezone } })).structuredContent;
const utc = await today("UTC");
assert.deepEqual([utc.range.start, utc.range.end, utc.rows], [utc.today, utc.today, [[0, null]]]);
const weeks = { metrics: ["run_count"], range: { start: "2026-01-05", end: "2026-01-13", timezone: "UTC" }, grain: "week", compare: "previous" };
const compared = (await ask(weeks)).structuredContent;
assert.deepEqual(compared.rows, [["2026-01-05", 300, 0, 300, null], ["2026-01-12", 0, 300, -300, -100]]);
assert.deepEqual(compared.columns.map((c) => [c.name, c.unit, c.additive]), [["week", "day in UTC", undefined],
  ["run_count", "count", true], ["run_count_previous", "count", true], ["run_count_difference", "count", true],
  ["run_count_percent", "percent", undefined]]);
assert.match(compared.notes.join(), /week before/);
const byAgent = { ...weeks, dimensions: ["agent_id"], filters: [{ member: "user_type", op: "in", values: ["internal"] }] };
assert.deepEqual((await ask(byAgent)).structuredContent.rows, []);
const filled = (await ask({ metrics: ["run_count"], dimensions: ["day"], fill: true, order: [{ member: "day", direction: "desc" }], limit: 2,
  range: { start: "2026-01-04", end: "2026-01-06", timezone: "UTC" } })).structuredContent;
assert.deepEqual([filled.rows, filled.cursor], [[["2026-01-06", 0], ["2026-01-05", 300]], undefined]);
assert.match(filled.truncated, /further rows/);

// What is wrong is said to the assistant, with what to do.
for (const [more, says] of [
  [{ metrics: ["run_cout"] }, /run_cout/],
  [{ metrics: ["interaction_count"] }, /interaction_count.*agent_user_activity|agent_user_activity.*interaction_count/],
  [{ range: { ...totals.range, start: "2024-01-01" } }, /at most 366/],
  [{ range: { ...totals.range, timezone: "US/Eastern" } }, /America\/New_York/],
  [{ limit: 501 }, /limit/],
  [{ colour: "red" }, /colour/],
  [{ range: { last: "12", timezone: "UTC" } }, /30d, 12w or 13mo/],
  [{ ...weeks, cursor: "x" }, /cursor/],
  [{ ...weeks, compare: "year", range: { start: "2025-01-06", end: "2026-01-04", timezone: "UTC" } }, /this takes 104 queries/],
  [{ filters: [{ member: "user_type", op: "eq", values: ["internal"] }] }, /filters\[0\]/],
]) {
  const refused = await ask(more);
  assert.equal(refused.isError, true, JSON.stringify(more));
  assert.match(refused.content[0].text, says);
}

// Saved questions are resources, also those that are saved later, and what they say can be asked.
const names = async () => (await client.listResources()).resources.map((resource) => resource.name);
assert.deepEqual(await names(), ["weekly"]);
const { contents } = await client.readResource({ uri: "runlens://questions/weekly" });
assert.match(contents[0].text, /metrics:\n\s+- run_count\n/);
const saved = await client.callTool({ name: "query", arguments: JSON.parse(contents[1].text) });
assert.deepEqual([saved.isError ?? false, saved.structuredContent.rows], [false, [["2026-01-05", 300]]]);
await writeFile(`${QUESTIONS}/later.yaml`, "metrics: [run_count]\nlast: 7d\n");
assert.deepEqual(await names(), ["later", "weekly"]);
assert.equal(JSON.parse((await client.readResource({ uri: "runlens://questions/later" })).contents[1].text).range.timezone, "UTC");
await writeFile(`${QUESTIONS}/later.yaml`, "metrics: [run_count]\nstart: 2026-01-05\nend: 2026-01-13\ngrain: week\ncompare: previous\n");
const whole = JSON.parse((await client.readResource({ uri: "runlens://questions/later" })).contents[1].text);
assert.deepEqual((await client.callTool({ name: "query", arguments: whole })).structuredContent.rows, compared.rows);

// Prompts say which day it is, and what they advise can be asked.
const { prompts } = await client.listPrompts();
assert.deepEqual(prompts.map((prompt) => prompt.name), ["failures", "people", "saved", "week"]);
for (const { name } of prompts) {
  const { messages } = await client.getPrompt({ name, arguments: name === "saved" ? { name: "later" } : { timezone: "Asia/Tokyo" } });
  const [, day, advised] = /Today is (\S+) in .*?\n(\{.*\})$/s.exec(messages[0].content.text);
  assert.match(day, /^\d{4}-\d\d-\d\d$/);
  const answer = await client.callTool({ name: "query", arguments: JSON.parse(advised) });
  assert.equal(answer.isError ?? false, false, answer.content[0].text);
}
await assert.rejects(client.getPrompt({ name: "saved", arguments: { name: "../../x.yaml" } }), /no name/);
await rm(`${QUESTIONS}/later.yaml`);
assert.deepEqual(await names(), ["weekly"]);
for (const uri of ["runlens://questions/later", "runlens://questions/../../../../etc/passwd", "file:///etc/passwd"]) {
  await assert.rejects(client.readResource({ uri }));
}
await client.close();
console.log("done");
