// What a user of orval's fetch client writes.
import { getCatalog, runQuery } from "./generated/orval";
import type { AnalyticsQueryRequest, Column } from "./generated/orval";

// Optional fields stay optional, and values of tomorrow compile.
export const least: AnalyticsQueryRequest = {
  model: "agent_runs",
  metrics: ["run_count"],
  range: { start: "2026-01-01", end: "2026-01-31", timezone: "UTC" },
};
export const column: Column = { name: "tomorrow", type: "decimal", member: "tomorrow" };

const options = { headers: { Authorization: `Bearer ${process.env.KEY}` } };
const answer = await runQuery({ ...least, dimensions: ["day"] }, options);
const refusal = await runQuery({ ...least, limit: 501 }, options);
const catalog = await getCatalog(options);
if (answer.status !== 200 || refusal.status !== 400 || catalog.status !== 200) throw new Error("wrong status");
console.log(JSON.stringify(answer.data.rows), refusal.data.error.param, catalog.data.models.length);
