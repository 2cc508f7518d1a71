// What a user of hey-api's client writes.
import { getCatalog, runQuery } from "./generated/hey-api";
import type { AnalyticsQueryRequest, Column } from "./generated/hey-api";
import { client } from "./generated/hey-api/client.gen";

// Optional fields stay optional, and values of tomorrow compile.
export const least: AnalyticsQueryRequest = {
  model: "agent_runs",
  metrics: ["run_count"],
  range: { start: "2026-01-01", end: "2026-01-31", timezone: "UTC" },
};
export const column: Column = { name: "tomorrow", type: "decimal", member: "tomorrow" };

client.setConfig({ baseUrl: process.env.BASE, auth: () => process.env.KEY });
const answer = await runQuery({ body: { ...least, dimensions: ["day"] } });
const refusal = await runQuery({ body: { ...least, limit: 501 } });
const catalog = await getCatalog();
console.log(JSON.stringify(answer.data?.rows), refusal.error?.error.param, catalog.data?.models.length);
