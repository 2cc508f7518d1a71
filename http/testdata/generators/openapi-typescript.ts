// What a user of openapi-typescript and openapi-fetch writes.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/openapi-typescript";

// Optional fields stay optional, and values of tomorrow compile.
export const least: components["schemas"]["AnalyticsQueryRequest"] = {
  model: "agent_runs",
  metrics: ["run_count"],
  range: { start: "2026-01-01", end: "2026-01-31", timezone: "UTC" },
};
export const column: components["schemas"]["Column"] = { name: "tomorrow", type: "decimal", member: "tomorrow" };

const client = createClient<paths>({
  baseUrl: process.env.BASE!,
  headers: { Authorization: `Bearer ${process.env.KEY}` },
});
const answer = await client.POST("/api/v1/analytics/query", { body: { ...least, dimensions: ["day"] } });
const refusal = await client.POST("/api/v1/analytics/query", { body: { ...least, limit: 501 } });
const catalog = await client.GET("/api/v1/analytics/catalog");
console.log(JSON.stringify(answer.data?.rows), refusal.error?.error.param, catalog.data?.models.length);
