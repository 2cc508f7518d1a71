import type { Day } from "./days.js";
import type { Question, Shift } from "./question.js";
import type { AnswerColumn, Filter, OrderTerm, Value } from "./types.js";
export type Row = Value[];
export type Rows = AsyncIterable<Row>;
/** Puts beside every metric its earlier value, the difference and the change in percent. */
export declare class Comparison {
    #private;
    private readonly question;
    private readonly now;
    private readonly shift;
    private readonly today;
    private readonly note;
    readonly columns: AnswerColumn[];
    constructor(question: Question, now: AnswerColumn[], byKey: OrderTerm[], shift: Shift, today: Day, note: (text: string) => void);
    /** Says what becomes of the days that are not over, where the question has some. */
    noteToday(): void;
    noteCompared(): void;
    /** Joins two sorted streams; a row that one of them lacks is there with the metrics of nothing. */
    merge(now: Rows, earlier: Rows): AsyncGenerator<Row, void, undefined>;
    /** Joins rows in the order of a metric with the earlier rows of the same groups. */
    beside(now: Row[], earlier: Rows): AsyncGenerator<Row, void, undefined>;
    /** Gives earlier rows the day that they are compared with. What has none is left out, with a note. */
    moved(rows: Rows): AsyncGenerator<Row, void, undefined>;
    /** Filters that the groups of all rows pass. A filter cannot name null, nor long values. */
    onlyGroupsOf(rows: Row[], others: number): Filter[];
}
export declare function numeric({ kind }: AnswerColumn): boolean;
/** The value of a metric where there is no row. */
export declare function absent({ kind }: AnswerColumn): Value;
