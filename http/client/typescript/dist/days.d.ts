/** A calendar day as the number of days since 1970-01-01. */
export type Day = number;
/** Whole days, both inclusive. */
export interface Span {
    start: Day;
    end: Day;
}
/** A day as YYYY-MM-DD. */
export declare function textOf(day: Day): string;
export declare function spanText({ start, end }: Span): string;
export declare const firstDay: number;
/** Reads YYYY-MM-DD, a day of the years 1 to 9999 that exists. */
export declare function parseDay(text: string): Day | undefined;
/** The local day of an instant. In a zone that is unknown, and that the server refuses, it is UTC's. */
export declare function todayIn(timeZone: string, now: Date): Day;
/** The first day of a day's month, or of a later or earlier one. */
export declare function monthOf(day: Day, months?: number): Day;
export declare function lastOfMonth(day: Day): Day;
/** Keeps the day of the month, or takes the last one where that month is shorter. */
export declare function addMonths(day: Day, months: number): Day;
/** addMonths that leads from a last day of a month to the last day of the other. */
export declare function lastToLast(day: Day, months: number): Day;
/** The first day of the week that holds a day. Weekdays are counted from Monday, 0. */
export declare function weekOf(day: Day, first: number): Day;
