import type { Day, Span } from "./days.js";
import type { DimensionName, MetricName, ModelName, OrderTerm, Query, Range } from "./types.js";
export declare const maxLimit = 500;
declare const weekdays: readonly ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
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
    filters?: {
        readonly [Member in DimensionName]?: string | readonly string[];
    };
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
export declare function spanOf(q: Question, today: Day): Span;
export declare function rangeOf(span: Span, timezone?: string): Range;
/** Checks what the server cannot know and returns the query of the span, without a limit. */
export declare function queryOf(q: Question, span: Span): Query;
/** Checks what names one of a few. */
export declare function checkWords(q: Question): void;
/** Whether rows come in the order of a metric, and so on a single page. */
export declare function byMetric(query: Query): boolean;
/** The total order of a query's rows that has no metric in it. */
export declare function completeOrder({ order, dimensions }: Query): OrderTerm[];
/** A week or month, and the part of it that a span covers. */
export interface Period {
    whole: Span;
    covered: Span;
}
/** Cuts the span into weeks or months. The first and the last may be parts. */
export declare function periods(q: Question, { start, end }: Span): Period[];
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
export declare function compared(q: Question, span: Span, today: Day): Shift;
/**
 * Refuses a comparison with more days than a query may have: those of a year before have one more where the 29th of
 * February is among them.
 */
export declare function checkEarlier(q: Question, span: Span, today: Day): void;
/** Whether a day has one to compare it with: it is over, and not a 29th of February whose year before has none. */
export declare function comparable(q: Question, day: Day, today: Day): boolean;
export {};
