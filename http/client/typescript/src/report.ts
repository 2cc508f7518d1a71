import { absent, Comparison, numeric } from "./compare.js";
import type { Row, Rows } from "./compare.js";
import { spanText, textOf, todayIn } from "./days.js";
import type { Day, Span } from "./days.js";
import { ResponseError } from "./errors.js";
import { byMetric, checkWords, comparable, compared, completeOrder, maxLimit, periods } from "./question.js";
import { checkEarlier, queryOf, rangeOf, spanOf } from "./question.js";
import type { Question, Shift } from "./question.js";
import type { Answer, AnswerColumn, Column, OrderTerm, Page, Query } from "./types.js";

/** How many pages are kept: those of a week, of what it was compared with, and of the next, compared with the first. */
const maxKept = 3;

/** Rows under their columns. Rows can be read once. */
interface Table {
  columns: AnswerColumn[];
  rows: Rows;
}

/** Asks one question once: turns it into queries, and their pages into one table of rows. */
export class Report {
  readonly #today: Day;
  readonly #span: Span;
  readonly #query: Query; // of the whole span
  readonly #byKey: OrderTerm[];
  readonly #notes: string[] = [];
  readonly #pages: Page[] = [];
  #kept: { key: string; page: Page }[] = [];
  #further = false; // the row that came last ends its page, and there is a next one
  #more = false;

  /** Checks the question; what is wrong with it is a TypeError. It sends nothing. */
  constructor(
    private readonly fetch: (query: Query) => AsyncGenerator<Page, void, undefined>,
    private readonly question: Question,
    now: Date,
  ) {
    checkWords(question);
    this.#today = todayIn(question.timezone ?? "UTC", now);
    this.#span = spanOf(question, this.#today);
    this.#query = queryOf(question, this.#span);
    this.#byKey = completeOrder(this.#query);
    checkEarlier(question, this.#span, this.#today);
  }

  async answer(): Promise<Answer> {
    const { columns, rows: stream } = this.question.grain ? await this.#grained() : await this.#part(this.#span);
    const rows: Row[] = [];
    for await (const row of stream) rows.push(row);
    const last = this.#pages.reduce((a, b) => (b.range.end > a.range.end ? b : a)).range;
    const asOf = this.#pages.map((page) => page.asOf).sort(); // all are written alike
    const warnings = new Map(this.#pages.flatMap((page) => page.warnings.map((w) => [JSON.stringify(w), w])));
    return {
      columns,
      rows,
      range: { ...this.#pages[0]!.range, end: last.end, endUtc: last.endUtc },
      asOf: asOf[0]!,
      asOfLast: asOf.at(-1)!,
      pages: this.#pages.length,
      warnings: [...warnings.values()],
      notes: this.#notes,
      more: this.#more,
    };
  }

  #note = (text: string): void => {
    if (!this.#notes.includes(text)) this.#notes.push(text);
  };

  /** Of what is compared the complete days, unless every day has a row of its own, or none is complete. */
  #asked(span: Span): Span {
    if (!this.question.compare || this.question.dimensions?.includes("day")) return span;
    const { complete, now } = compared(this.question, span, this.#today);
    return complete ? now : span;
  }

  /** The table of one span: the whole of it, a week or a month. */
  async #part(span: Span): Promise<Table> {
    const { limit, compare, fill, grain, timezone } = this.question;
    const query: Query = { ...this.#query, range: rangeOf(this.#asked(span), timezone), limit: maxLimit };
    // What is filled or compared may need more rows than it gives.
    if (limit !== undefined && ((!compare && !fill) || byMetric(query))) query.limit = Math.min(limit, maxLimit);
    let table = await this.#open(query);
    if (compare) table = await this.#compare(table, query, compared(this.question, span, this.#today));
    if (fill && !grain) {
      const hasEarlier = (day: Day) => comparable(this.question, day, this.#today);
      table = { ...table, rows: filled(table, span, this.#byKey, hasEarlier) };
    }
    return limit === undefined ? table : { ...table, rows: this.#limited(table.rows, limit) };
  }

  /** Ends the rows at the limit, and finds out whether there is one more, if need be by reading on. */
  async *#limited(rows: Rows, limit: number): AsyncGenerator<Row, void, undefined> {
    let count = 0;
    for await (const row of rows) {
      this.#more ||= count === limit;
      if (count === limit) return;
      count++;
      yield row;
      this.#more ||= count === limit && this.#further;
      if (count === limit && this.#further) return;
    }
  }

  /** Asks for the first page of a query and returns the rows of all its pages. */
  async #open(query: Query): Promise<Table> {
    const key = JSON.stringify(query);
    const kept = this.#kept.find((known) => known.key === key);
    const pages = this.fetch(query);
    const first = kept?.page ?? ((await pages.next()).value as Page); // there is one
    if (!kept) {
      this.#pages.push(first);
      if (this.question.grain && this.question.compare && first.cursor === null) {
        this.#kept = [...this.#kept, { key, page: first }].slice(-maxKept);
      }
    }
    for (const member of [...(query.dimensions ?? []), ...query.metrics]) {
      if (!first.columns.some((column) => column.name === member)) {
        throw new ResponseError(`the answer has no column ${member}`);
      }
    }
    if (byMetric(query) && first.rows.length === query.limit) {
      this.#note(
        `The first ${query.limit} rows in the order of a metric; the API gives at most ${maxLimit} of them. ` +
          "In the order of dimensions all rows come.",
      );
    }
    return { columns: first.columns.map(withKind), rows: this.#rows(first, kept ? undefined : pages) };
  }

  async *#rows(first: Page, others: AsyncIterable<Page> | undefined): AsyncGenerator<Row, void, undefined> {
    yield* this.#rowsOf(first);
    for await (const page of others ?? []) {
      this.#pages.push(page);
      yield* this.#rowsOf(page);
    }
  }

  *#rowsOf(page: Page): Generator<Row, void, undefined> {
    for (const [i, row] of page.rows.entries()) {
      this.#further = page.cursor !== null && i === page.rows.length - 1;
      yield row;
    }
  }

  async #compare(now: Table, query: Query, shift: Shift): Promise<Table> {
    const c = new Comparison(this.question, now.columns, this.#byKey, shift, this.#today, this.#note);
    c.noteToday();
    if (!shift.complete) return { columns: c.columns, rows: c.merge(now.rows, nothing()) };
    c.noteCompared();
    const earlier: Query = { ...query, range: rangeOf(shift.earlier, this.question.timezone), limit: maxLimit };
    if (!byMetric(query)) {
      return { columns: c.columns, rows: c.merge(now.rows, c.moved((await this.#open(earlier)).rows)) };
    }
    this.#note(
      "In the order of a metric, what only the earlier period has is left out; in the order of dimensions it is here.",
    );
    const held: Row[] = [];
    for await (const row of now.rows) held.push(row);
    delete earlier.order;
    const others = query.filters ?? [];
    const filters = [...others, ...c.onlyGroupsOf(held, others.length)];
    if (filters.length) earlier.filters = filters;
    return { columns: c.columns, rows: c.beside(held, (await this.#open(earlier)).rows) };
  }

  /** Asks for every week or month by itself and puts its first day in front of the rows. */
  async #grained(): Promise<Table> {
    const cut = periods(this.question, this.#span);
    const first = await this.#part(cut[0]!.covered);
    const grain = this.question.grain!;
    for (const { whole, covered } of [cut[0]!, cut.at(-1)!]) {
      const counted = spanText(this.#asked(covered));
      if (counted !== spanText(whole)) {
        this.#note(`The ${grain} of ${textOf(whole.start)} is counted in part: ${counted}.`);
      }
    }
    const label: AnswerColumn = { name: grain, type: "date", member: "", kind: "date" };
    const part = (span: Span) => this.#part(span);
    async function* rows(): AsyncGenerator<Row, void, undefined> {
      for (const [i, { whole, covered }] of cut.entries()) {
        const table = i === 0 ? first : await part(covered);
        for await (const row of table.rows) yield [textOf(whole.start), ...row];
      }
    }
    return { columns: [label, ...first.columns], rows: rows() };
  }
}

async function* nothing(): AsyncGenerator<Row, void, undefined> {}

/** The API does not say which numbers are whole; by its names those that end in _count are. */
function withKind(column: Column): AnswerColumn {
  if (column.type !== "number") return { ...column, kind: column.type === "date" ? "date" : "text" };
  return { ...column, kind: column.name.endsWith("_count") ? "count" : "number" };
}

/** Adds a row for every day of the span that a group has none of. The day is the last key of the rows' order. */
async function* filled(
  { columns, rows }: Table,
  { start, end }: Span,
  order: OrderTerm[],
  hasEarlier: (day: Day) => boolean,
): AsyncGenerator<Row, void, undefined> {
  const day = columns.findIndex((column) => column.name === "day");
  const groups = order.slice(0, -1).map(({ member }) => columns.findIndex((column) => column.name === member));
  const days = Array.from({ length: end - start + 1 }, (_, i) => start + i);
  if (order.at(-1)?.direction === "desc") days.reverse();
  /** A group's row of a day without data. */
  const empty = (group: Row, on: Day): Row =>
    columns.map((column, i) => {
      if (!numeric(column)) return i === day ? textOf(on) : (group[i] ?? null);
      return column.name !== column.member && !hasEarlier(on) ? null : absent(column);
    });
  let group: Row | undefined = groups.length === 0 ? [] : undefined; // one group is there without rows too
  let left = [...days];
  for await (const row of rows) {
    if (group && groups.some((at) => group![at] !== row[at])) {
      for (const on of left) yield empty(group, on);
      left = [...days];
    }
    group = row;
    while (left.length && textOf(left[0]!) !== row[day]) yield empty(row, left.shift()!);
    left.shift();
    yield row;
  }
  if (group) for (const on of left) yield empty(group, on);
}
