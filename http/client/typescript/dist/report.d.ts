import type { Question } from "./question.js";
import type { Answer, Page, Query } from "./types.js";
/** Asks one question once: turns it into queries, and their pages into one table of rows. */
export declare class Report {
    #private;
    private readonly fetch;
    private readonly question;
    /** Checks the question; what is wrong with it is a TypeError. It sends nothing. */
    constructor(fetch: (query: Query) => AsyncGenerator<Page, void, undefined>, question: Question, now: Date);
    answer(): Promise<Answer>;
}
