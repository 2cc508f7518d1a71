import { parseDay, spanText, textOf } from "./days.js";
import type { Day } from "./days.js";
import { comparable } from "./question.js";
import type { Question, Shift } from "./question.js";
import type { AnswerColumn, Filter, OrderTerm, Value } from "./types.js";

export type Row = Value[];
export type Rows = AsyncIterable<Row>;

const maxFilters = 8;
const maxFilterValues = 50;
const maxFilterLength = 200; // code points

/** Puts beside every metric its earlier value, the difference and the change in percent. */
export class Comparison {
  readonly columns: AnswerColumn[];
  readonly #day: number; // column of the dimension day; -1 for none
  /** Columns of dimensions, in the order of the rows. */
  readonly #keys: { at: number; desc: boolean }[];

  constructor(
    private readonly question: Question,
    private readonly now: AnswerColumn[],
    byKey: OrderTerm[],
    private readonly shift: Shift,
    private readonly today: Day,
    private readonly note: (text: string) => void,
  ) {
    this.#day = now.findIndex((column) => column.name === "day");
    this.#keys = byKey
      .map(({ member, direction }) => ({
        at: now.findIndex((column) => column.name === member && !numeric(column)),
        desc: direction === "desc",
      }))
      .filter(({ at }) => at >= 0);
    this.columns = now.flatMap((column): AnswerColumn[] => {
      if (!numeric(column)) return [column];
      const { name, type, member, kind } = column;
      return [
        column,
        { name: `${name}_previous`, type, member, kind },
        { name: `${name}_difference`, type, member: "", kind },
        { name: `${name}_percent`, type, member: "", kind: "percent" },
      ];
    });
  }

  /** Says what becomes of the days that are not over, where the question has some. */
  noteToday(): void {
    const today = textOf(this.today);
    if (!this.shift.open) return;
    if (!this.shift.complete) this.note(`${today} is not over, so it is not compared.`);
    else if (this.#day >= 0) this.note(`${today} is not over: it is here, but not compared.`);
    else this.note(`${today} is not over: a comparison leaves it out.`);
  }

  noteCompared(): void {
    const { grain, compare } = this.question;
    if (!grain) {
      this.note(`${spanText(this.shift.now)} is compared with ${spanText(this.shift.earlier)}.`);
      return;
    }
    const year = grain === "week" ? "the week 52 weeks before" : "that month a year before";
    const other = compare === "previous" ? `the ${grain} before` : year;
    this.note(`Every ${grain} is compared with the same days of ${other}.`);
  }

  /** Joins two sorted streams; a row that one of them lacks is there with the metrics of nothing. */
  async *merge(now: Rows, earlier: Rows): AsyncGenerator<Row, void, undefined> {
    const [later, before] = [now[Symbol.asyncIterator](), earlier[Symbol.asyncIterator]()];
    let a = await next(later);
    let b = await next(before);
    while (a || b) {
      const order = !a ? 1 : !b ? -1 : this.#order(a, b);
      yield this.#join(order <= 0 ? a : undefined, order >= 0 ? b : undefined);
      if (order <= 0) a = await next(later);
      if (order >= 0) b = await next(before);
    }
  }

  /** Joins rows in the order of a metric with the earlier rows of the same groups. */
  async *beside(now: Row[], earlier: Rows): AsyncGenerator<Row, void, undefined> {
    const key = (row: Row) => JSON.stringify(this.#keys.map(({ at }) => row[at]));
    const found = new Map<string, Row | undefined>(now.map((row) => [key(row), undefined]));
    for await (const row of this.moved(earlier)) if (found.has(key(row))) found.set(key(row), row);
    for (const row of now) yield this.#join(row, found.get(key(row)));
  }

  /** Gives earlier rows the day that they are compared with. What has none is left out, with a note. */
  async *moved(rows: Rows): AsyncGenerator<Row, void, undefined> {
    for await (const row of rows) {
      if (this.#day < 0) {
        yield row;
        continue;
      }
      const text = String(row[this.#day]);
      const day = this.shift.later(parseDay(text) ?? NaN);
      if (day === undefined) this.note(`${text} has no day to be compared with; it is left out.`);
      else yield row.map((value, i) => (i === this.#day ? textOf(day) : value));
    }
  }

  /** Filters that the groups of all rows pass. A filter cannot name null, nor long values. */
  onlyGroupsOf(rows: Row[], others: number): Filter[] {
    const filters: Filter[] = [];
    for (const { at } of this.#keys) {
      const values = [...new Set(rows.map((row) => row[at]))];
      const texts = values.filter(
        (value): value is string => typeof value === "string" && value !== "" && [...value].length <= maxFilterLength,
      );
      const fits = texts.length > 0 && texts.length === values.length && values.length <= maxFilterValues;
      if (at === this.#day || !fits || others + filters.length >= maxFilters) continue;
      filters.push({ member: this.now[at]!.name, op: "in", values: texts });
    }
    return filters;
  }

  /** Compares the keys of two rows as the server does: by code points, null last in both directions. */
  #order(a: Row, b: Row): number {
    for (const { at, desc } of this.#keys) {
      const [x, y] = [a[at] ?? null, b[at] ?? null];
      if (x === y) continue;
      if (x === null) return 1;
      if (y === null) return -1;
      const order = byCodePoints(String(x), String(y));
      return desc ? -order : order;
    }
    return 0;
  }

  /** A row of the result; undefined is a row that is not there. Names are the later row's, where it has one. */
  #join(now: Row | undefined, earlier: Row | undefined): Row {
    const names = now ?? earlier ?? [];
    return this.now.flatMap((column, i): Row => {
      if (!numeric(column)) return [names[i] ?? null];
      const none = this.#comparable(names) ? absent(column) : null;
      const a = now ? (now[i] ?? null) : absent(column);
      const b = earlier ? (earlier[i] ?? null) : none;
      return [a, b, difference(a, b), percent(a, b)];
    });
  }

  /** Whether a row is of days that have others to compare with. */
  #comparable(row: Row): boolean {
    if (this.#day < 0) return this.shift.complete;
    return comparable(this.question, parseDay(String(row[this.#day])) ?? NaN, this.today);
  }
}

export function numeric({ kind }: AnswerColumn): boolean {
  return kind === "count" || kind === "number" || kind === "percent";
}

/** The value of a metric where there is no row. */
export function absent({ kind }: AnswerColumn): Value {
  return kind === "count" ? 0 : null;
}

async function next(rows: AsyncIterator<Row>): Promise<Row | undefined> {
  const { value, done } = await rows.next();
  return done ? undefined : value;
}

/** JavaScript compares UTF-16, where surrogates come before some characters that are less. */
function byCodePoints(a: string, b: string): number {
  const rank = (unit: number) => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit);
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = rank(a.charCodeAt(i)) - rank(b.charCodeAt(i));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function difference(a: Value, b: Value): Value {
  if (typeof a !== "number" || typeof b !== "number") return null;
  if (Number.isInteger(a) && Number.isInteger(b)) return a - b;
  return Number((a - b).toPrecision(12)); // without the noise of binary fractions
}

/** The change relative to the earlier value, to two decimals; null where that is null or 0. */
function percent(a: Value, b: Value): Value {
  if (typeof a !== "number" || typeof b !== "number" || b === 0) return null;
  const change = ((a - b) / Math.abs(b)) * 1e4;
  return (Math.sign(change) * Math.round(Math.abs(change))) / 1e2 + 0; // half away from zero, and no -0
}
