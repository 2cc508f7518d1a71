import { addMonths, firstDay, lastOfMonth, lastToLast, monthOf, parseDay, spanText, textOf, weekOf } from "./days.js";
import type { Day, Span } from "./days.js";
import type { DimensionName, Filter, MetricName, ModelName, OrderTerm, Query, Range } from "./types.js";

export const maxLimit = 500;
const maxDays = 366;
const weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const;

/**
 * What a person asks for, with the words and the defaults of `runlens query`. Its period is one of `start`, `last`,
 * `today` and `yesterday`, with `end` where that makes sense; without any it is 30 days.
 */
export interface Question {
  /** `agent_runs` by default. */
  model?: ModelName;
  metrics: readonly MetricName[];
  /** Without any the answer is one row of totals. */
  dimensions?: readonly DimensionName[];
  /** The values of each dimension that rows may have. */
  filters?: { readonly [Member in DimensionName]?: string | readonly string[] };
  /** The first day, inclusive, written YYYY-MM-DD. */
  start?: string;
  /** The last day, inclusive; today in `timezone` by default. */
  end?: string;
  /** Days, weeks or months until `end`, the one of `end` included, such as `30d`, `12w` or `13mo`. */
  last?: string;
  today?: boolean;
  yesterday?: boolean;
  /** Of the days: a canonical IANA timezone such as `Europe/Stockholm`; `UTC` by default. */
  timezone?: string;
  /** Members, such as `run_count:desc`. In the order of a metric there are at most 500 rows. */
  order?: readonly string[];
  /** The most rows, with a grain those of each week or month; all by default. */
  limit?: number;
  /** A row for each week or month, or for each one of every group. Each is asked for by itself. */
  grain?: "week" | "month";
  /** `monday` by default. */
  weekStart?: (typeof weekdays)[number];
  /** Adds the value of the time before, or of a year ago, the difference, and the change in percent to each metric. */
  compare?: "previous" | "year";
  /** `compare` goes back whole weeks, so that weekdays are compared with the same ones. */
  weekdays?: boolean;
  /** A row for every day, also where there is no data. It needs the dimension `day`, or a grain. */
  fill?: boolean;
}

/** The period that the question names. */
export function spanOf(q: Question, today: Day): Span {
  const named = [q.today, q.yesterday, q.last, q.start].filter(Boolean).length;
  if (named > 1 || (q.end && (q.today || q.yesterday))) {
    throw new TypeError("start, last, today and yesterday exclude each other, and end the latter two");
  }
  let end = q.end ? given("end", q.end) : today;
  let start = end - 29;
  if (q.today) start = end;
  else if (q.yesterday) start = end = today - 1;
  else if (q.start) start = given("start", q.start);
  else if (q.last) start = lastStart(q, q.last, end);
  if (start > end) throw new TypeError(`the range starts on ${textOf(start)}, after its end on ${textOf(end)}`);
  if (start < firstDay) throw new TypeError("the range starts before the year 1");
  return { start, end };
}

function lastStart(q: Question, last: string, end: Day): Day {
  const parts = /^([1-9][0-9]{0,3})(d|w|mo)$/.exec(last);
  if (!parts) throw new TypeError(`last ${last} must be days, weeks or months such as 30d, 12w or 13mo`);
  const before = Number(parts[1]) - 1;
  if (parts[2] === "w") return weekOf(end, weekStartOf(q)) - 7 * before;
  return parts[2] === "mo" ? monthOf(end, -before) : end - before;
}

function given(name: string, text: string): Day {
  const day = parseDay(text);
  if (day === undefined) throw new TypeError(`${name} ${text} is no day such as 2026-01-31`);
  return day;
}

function weekStartOf(q: Question): number {
  return weekdays.indexOf(q.weekStart ?? "monday");
}

export function rangeOf(span: Span, timezone = "UTC"): Range {
  return { start: textOf(span.start), end: textOf(span.end), timezone };
}

/** Checks what the server cannot know and returns the query of the span, without a limit. */
export function queryOf(q: Question, span: Span): Query {
  if (!Array.isArray(q.metrics) || q.metrics.length === 0) {
    throw new TypeError('metrics are needed, such as ["run_count"]; the catalog names them');
  }
  const query: Query = { model: q.model ?? "agent_runs", metrics: q.metrics, range: rangeOf(span, q.timezone) };
  if (q.dimensions?.length) query.dimensions = q.dimensions;
  const filters = Object.entries(q.filters ?? {}).flatMap(([member, values]): Filter[] => {
    if (values === undefined) return [];
    return [typeof values === "string" ? { member, op: "eq", value: values } : { member, op: "in", values }];
  });
  if (filters.length) query.filters = filters;
  if (q.order?.length) query.order = q.order.map(termOf);
  checkTogether(q, query);
  return query;
}

function termOf(text: string): OrderTerm {
  const [member = "", direction = "asc", ...more] = text.split(":");
  if (more.length || (direction !== "asc" && direction !== "desc")) {
    throw new TypeError(`order ${text} must be MEMBER, MEMBER:asc or MEMBER:desc`);
  }
  return { member, direction };
}

/** Checks what names one of a few. */
export function checkWords(q: Question): void {
  const words: [string, string | undefined, readonly string[]][] = [
    ["grain", q.grain, ["week", "month"]],
    ["weekStart", q.weekStart, weekdays],
    ["compare", q.compare, ["previous", "year"]],
  ];
  for (const [name, value, allowed] of words) {
    if (value !== undefined && !allowed.includes(value)) {
      throw new TypeError(`${name} ${value} must be one of ${allowed.join(" ")}`);
    }
  }
  if (q.limit !== undefined && !(q.limit >= 1)) throw new TypeError("limit must be at least 1");
}

/** Checks what depends on each other, and orders the rows as they need it. */
function checkTogether(q: Question, query: Query): void {
  const byDay = q.dimensions?.includes("day") ?? false;
  const top = byMetric(query);
  const refuse = (words: string) => {
    throw new TypeError(words);
  };
  if (q.weekdays && (!q.compare || q.grain)) {
    refuse("weekdays is for compare without grain; weeks have the same weekdays anyway");
  }
  if (q.grain && byDay) refuse(`grain ${q.grain} and the dimension day exclude each other`);
  if (top && (q.limit ?? 0) > maxLimit) refuse(`limit must be at most ${maxLimit} in the order of a metric`);
  const onDay = query.filters?.some(({ member }) => member === "day"); // other days are left out
  if ((q.fill || q.compare) && onDay) {
    refuse("a filter on day excludes fill and compare; name the days with start and end instead");
  }
  if (!q.fill) return;
  if (q.grain && q.dimensions?.length) refuse("fill fills days; with grain it works without dimensions only");
  if (q.grain) return; // a totals query has its row in any case
  if (!byDay) refuse("fill needs the dimension day");
  if (top) refuse("fill and the order of a metric exclude each other");
  query.order ??= [...(q.dimensions ?? []).filter((name) => name !== "day"), "day"].map(termOf);
  if (completeOrder(query).at(-1)?.member !== "day") refuse("fill needs day as the last member of order");
}

/** Whether rows come in the order of a metric, and so on a single page. */
export function byMetric(query: Query): boolean {
  return (query.order ?? []).some((term) => !query.dimensions?.includes(term.member));
}

/** The total order of a query's rows that has no metric in it. */
export function completeOrder({ order = [], dimensions = [] }: Query): OrderTerm[] {
  const others = dimensions.filter((name) => !order.some((term) => term.member === name));
  return [...order, ...others.map(termOf)];
}

/** A week or month, and the part of it that a span covers. */
export interface Period {
  whole: Span;
  covered: Span;
}

/** Cuts the span into weeks or months. The first and the last may be parts. */
export function periods(q: Question, { start, end }: Span): Period[] {
  const cut: Period[] = [];
  for (let day = start; day <= end; ) {
    const first = q.grain === "week" ? weekOf(day, weekStartOf(q)) : monthOf(day);
    const last = q.grain === "week" ? first + 6 : lastOfMonth(first);
    cut.push({ whole: { start: first, end: last }, covered: { start: day, end: Math.min(last, end) } });
    day = last + 1;
  }
  return cut;
}

/** Leads from complete days to those that they are compared with, and from a day of the latter back. */
export interface Shift {
  now: Span;
  earlier: Span;
  /** There is a day to compare. */
  complete: boolean;
  /** The span has days that are not over. */
  open: boolean;
  /** The day that an earlier one is compared with, unless it has none because of a 29th of February. */
  later: (day: Day) => Day | undefined;
}

/**
 * The period of `compare`. Without a grain, previous is as many days right before; with weekdays it is whole weeks
 * before, and a year is 52 weeks. A week is compared with the same weekdays of the week before or of 52 weeks before, a
 * month with the same days of the month before or of that month a year before; a last day of a month stands for the
 * last day of the other. From today on days are not over: neither they nor the days that they would be compared with
 * count.
 */
export function compared(q: Question, span: Span, today: Day): Shift {
  const open = span.end >= today;
  const now = open ? { start: span.start, end: today - 1 } : span;
  const shift = { now, open, complete: now.start <= now.end };
  if (q.grain === "month") {
    const months = q.compare === "previous" ? -1 : -12;
    const earlier = { start: addMonths(now.start, months), end: lastToLast(now.end, months) };
    return { ...shift, earlier, later: () => undefined }; // a month has no dimension day
  }
  if (!q.grain && !q.weekdays && q.compare === "year") {
    const later = (day: Day) => {
      const year = addMonths(day, 12);
      return addMonths(year, -12) === day && year >= span.start ? year : undefined;
    };
    return { ...shift, earlier: { start: addMonths(now.start, -12), end: addMonths(now.end, -12) }, later };
  }
  const back = daysBack(q, span.end - span.start + 1);
  return { ...shift, earlier: { start: now.start - back, end: now.end - back }, later: (day) => day + back };
}

/**
 * Refuses a comparison with more days than a query may have: those of a year before have one more where the 29th of
 * February is among them.
 */
export function checkEarlier(q: Question, span: Span, today: Day): void {
  if (!q.compare || q.grain) return;
  const { complete, now, earlier } = compared(q, span, today);
  if (!complete || daysOf(now) > maxDays || daysOf(earlier) <= maxDays) return;
  throw new TypeError(
    `${spanText(now)} would be compared with ${spanText(earlier)}, which are ${daysOf(earlier)} days, ` +
      `at most ${maxDays}: leave out the last day`,
  );
}

function daysOf({ start, end }: Span): number {
  return end - start + 1;
}

/** Whether a day has one to compare it with: it is over, and not a 29th of February whose year before has none. */
export function comparable(q: Question, day: Day, today: Day): boolean {
  const leap = q.compare === "year" && !q.weekdays && textOf(day).endsWith("-02-29");
  return day < today && !leap;
}

function daysBack(q: Question, days: number): number {
  if (q.compare === "year") return 52 * 7;
  if (q.grain === "week") return 7;
  return q.weekdays ? Math.ceil(days / 7) * 7 : days;
}
