// Asks every question of the table of cases, each at an address of its own, and prints what came of them as JSON.
import { ApiError, Runlens } from "../dist/index.js";
import { text } from "node:stream/consumers";

const asked = JSON.parse(await text(process.stdin));
const { now, cases } = JSON.parse(asked.table);

async function outcome(url, { week_start: weekStart, ...question }) {
  try {
    if (weekStart) question.weekStart = weekStart;
    const { range, columns, ...answer } = await new Runlens({ url, key: asked.key }).ask(question, { now: new Date(now) });
    return { ...answer, range: [range.start, range.end], columns: columns.map((column) => column.name) };
  } catch (error) {
    if (error instanceof TypeError) return { usage: error.message };
    if (!(error instanceof ApiError)) throw error;
    const { status, code, param = "" } = error;
    return { error: { status, code, param } };
  }
}

const outcomes = [];
for (const [i, { question }] of cases.entries()) outcomes.push(await outcome(asked.urls[i], question));
process.stdout.write(JSON.stringify(outcomes));
