import type { components } from "./api.js";
type Schemas = components["schemas"];
/** A value of today, which an editor completes, or one that a newer server has. */
type Open<T extends string> = T | (string & {});
export type ModelName = Open<Schemas["ModelName"]>;
export type MetricName = Open<Schemas["MetricName"]>;
export type DimensionName = Open<Schemas["DimensionName"]>;
/** Keeps the rows with one value (`eq`), or with any of up to 50 values (`in`). */
export type Filter = {
    member: DimensionName;
    op: "eq";
    value: string;
} | {
    member: DimensionName;
    op: "in";
    values: readonly string[];
};
/** Whole local days, both inclusive, written YYYY-MM-DD; at most 366 of them. */
export type Range = Readonly<Schemas["QueryRange"]>;
/** Orders by a selected metric or dimension. In the order of a metric there is a single page. */
export interface OrderTerm {
    member: MetricName | DimensionName;
    direction: "asc" | "desc";
}
/** One question to one model of the catalog. */
export interface Query {
    model: ModelName;
    metrics: readonly MetricName[];
    /** Without any the answer is one row of totals. */
    dimensions?: readonly DimensionName[];
    /** All of them apply. */
    filters?: readonly Filter[];
    range: Range;
    /** Without it a grouped answer is ordered by its dimensions. */
    order?: readonly OrderTerm[];
    /** The most rows on a page, 1 to 500. `query` leaves it to the server (100), `pages` takes 500. */
    limit?: number;
    /** Of the page before. `pages` sets it. */
    cursor?: string;
}
/** A text or a day, a number, or null. Counts are exact up to `Number.MAX_SAFE_INTEGER`. */
export type Value = Schemas["Value"];
export type Column = Schemas["Column"];
export type Warning = Schemas["Warning"];
/** One page of an answer. */
export type Page = Schemas["AnalyticsQueryResponse"];
/** A column of an answer. Its kind says how values are counted: a count is whole, and 0 where there is no row. */
export interface AnswerColumn extends Column {
    kind: "text" | "date" | "count" | "number" | "percent";
}
/** What a question is answered with. */
export interface Answer {
    columns: AnswerColumn[];
    rows: Value[][];
    /** What was asked for, without days that are not over where these are not compared. */
    range: Page["range"];
    /** Rows stored later are in no page of this answer. The earliest one, where several queries were asked. */
    asOf: string;
    asOfLast: string;
    pages: number;
    /** Each once. */
    warnings: Warning[];
    /** What a person should know of the rows, each once. */
    notes: string[];
    /** There are further rows, beyond the question's limit. */
    more: boolean;
}
export type Catalog = Schemas["CatalogResponse"];
export type CatalogModel = Schemas["CatalogModel"];
export type CatalogMetric = Schemas["CatalogMetric"];
export type CatalogDimension = Schemas["CatalogDimension"];
/** What the server says where it has no answer. */
export type ErrorDetail = Schemas["ErrorDetail"];
export {};
