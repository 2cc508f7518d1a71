import { addMonths, firstDay, lastOfMonth, lastToLast, monthOf, parseDay, spanText, textOf, weekOf } from "./days.js";
export const maxLimit = 500;
const maxDays = 366;
const weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/** The period that the question names. */
export function spanOf(q, today) {
    const named = [q.today, q.yesterday, q.last, q.start].filter(Boolean).length;
    if (named > 1 || (q.end && (q.today || q.yesterday))) {
        throw new TypeError("start, last, today and yesterday exclude each other, and end the latter two");
    }
    let end = q.end ? given("end", q.end) : today;
    let start = end - 29;
    if (q.today)
        start = end;
    else if (q.yesterday)
        start = end = today - 1;
    else if (q.start)
        start = given("start", q.start);
    else if (q.last)
        start = lastStart(q, q.last, end);
    if (start > end)
        throw new TypeError(`the range starts on ${textOf(start)}, after its end on ${textOf(end)}`);
    if (start < firstDay)
        throw new TypeError("the range starts before the year 1");
    return { start, end };
}
function lastStart(q, last, end) {
    const parts = /^([1-9][0-9]{0,3})(d|w|mo)$/.exec(last);
    if (!parts)
        throw new TypeError(`last ${last} must be days, weeks or months such as 30d, 12w or 13mo`);
    const before = Number(parts[1]) - 1;
    if (parts[2] === "w")
        return weekOf(end, weekStartOf(q)) - 7 * before;
    return parts[2] === "mo" ? monthOf(end, -before) : end - before;
}
function given(name, text) {
    const day = parseDay(text);
    if (day === undefined)
        throw new TypeError(`${name} ${text} is no day such as 2026-01-31`);
    return day;
}
function weekStartOf(q) {
    return weekdays.indexOf(q.weekStart ?? "monday");
}
export function rangeOf(span, timezone = "UTC") {
    return { start: textOf(span.start), end: textOf(span.end), timezone };
}
/** Checks what the server cannot know and returns the query of the span, without a limit. */
export function queryOf(q, span) {
    if (!Array.isArray(q.metrics) || q.metrics.length === 0) {
        throw new TypeError('metrics are needed, such as ["run_count"]; the catalog names them');
    }
    const query = { model: q.model ?? "agent_runs", metrics: q.metrics, range: rangeOf(span, q.timezone) };
    if (q.dimensions?.length)
        query.dimensions = q.dimensions;
    const filters = Object.entries(q.filters ?? {}).flatMap(([member, values]) => {
        if (values === undefined)
            return [];
        return [typeof values === "string" ? { member, op: "eq", value: values } : { member, op: "in", values }];
    });
    if (filters.length)
        query.filters = filters;
    if (q.order?.length)
        query.order = q.order.map(termOf);
    checkTogether(q, query);
    return query;
}
function termOf(text) {
    const [member = "", direction = "asc", ...more] = text.split(":");
    if (more.length || (direction !== "asc" && direction !== "desc")) {
        throw new TypeError(`order ${text} must be MEMBER, MEMBER:asc or MEMBER:desc`);
    }
    return { member, direction };
}
/** Checks what names one of a few. */
export function checkWords(q) {
    const words = [
        ["grain", q.grain, ["week", "month"]],
        ["weekStart", q.weekStart, weekdays],
        ["compare", q.compare, ["previous", "year"]],
    ];
    for (const [name, value, allowed] of words) {
        if (value !== undefined && !allowed.includes(value)) {
            throw new TypeError(`${name} ${value} must be one of ${allowed.join(" ")}`);
        }
    }
    if (q.limit !== undefined && !(q.limit >= 1))
        throw new TypeError("limit must be at least 1");
}
/** Checks what depends on each other, and orders the rows as they need it. */
function checkTogether(q, query) {
    const byDay = q.dimensions?.includes("day") ?? false;
    const top = byMetric(query);
    const refuse = (words) => {
        throw new TypeError(words);
    };
    if (q.weekdays && (!q.compare || q.grain)) {
        refuse("weekdays is for compare without grain; weeks have the same weekdays anyway");
    }
    if (q.grain && byDay)
        refuse(`grain ${q.grain} and the dimension day exclude each other`);
    if (top && (q.limit ?? 0) > maxLimit)
        refuse(`limit must be at most ${maxLimit} in the order of a metric`);
    const onDay = query.filters?.some(({ member }) => member === "day"); // other days are left out
    if ((q.fill || q.compare) && onDay) {
        refuse("a filter on day excludes fill and compare; name the days with start and end instead");
    }
    if (!q.fill)
        return;
    if (q.grain && q.dimensions?.length)
        refuse("fill fills days; with grain it works without dimensions only");
    if (q.grain)
        return; // a totals query has its row in any case
    if (!byDay)
        refuse("fill needs the dimension day");
    if (top)
        refuse("fill and the order of a metric exclude each other");
    query.order ??= [...(q.dimensions ?? []).filter((name) => name !== "day"), "day"].map(termOf);
    if (completeOrder(query).at(-1)?.member !== "day")
        refuse("fill needs day as the last member of order");
}
/** Whether rows come in the order of a metric, and so on a single page. */
export function byMetric(query) {
    return (query.order ?? []).some((term) => !query.dimensions?.includes(term.member));
}
/** The total order of a query's rows that has no metric in it. */
export function completeOrder({ order = [], dimensions = [] }) {
    const others = dimensions.filter((name) => !order.some((term) => term.member === name));
    return [...order, ...others.map(termOf)];
}
/** Cuts the span into weeks or months. The first and the last may be parts. */
export function periods(q, { start, end }) {
    const cut = [];
    for (let day = start; day <= end;) {
        const first = q.grain === "week" ? weekOf(day, weekStartOf(q)) : monthOf(day);
        const last = q.grain === "week" ? first + 6 : lastOfMonth(first);
        cut.push({ whole: { start: first, end: last }, covered: { start: day, end: Math.min(last, end) } });
        day = last + 1;
    }
    return cut;
}
/**
 * The period of `compare`. Without a grain, previous is as many days right before; with weekdays it is whole weeks
 * before, and a year is 52 weeks. A week is compared with the same weekdays of the week before or of 52 weeks before, a
 * month with the same days of the month before or of that month a year before; a last day of a month stands for the
 * last day of the other. From today on days are not over: neither they nor the days that they would be compared with
 * count.
 */
export function compared(q, span, today) {
    const open = span.end >= today;
    const now = open ? { start: span.start, end: today - 1 } : span;
    const shift = { now, open, complete: now.start <= now.end };
    if (q.grain === "month") {
        const months = q.compare === "previous" ? -1 : -12;
        const earlier = { start: addMonths(now.start, months), end: lastToLast(now.end, months) };
        return { ...shift, earlier, later: () => undefined }; // a month has no dimension day
    }
    if (!q.grain && !q.weekdays && q.compare === "year") {
        const later = (day) => {
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
export function checkEarlier(q, span, today) {
    if (!q.compare || q.grain)
        return;
    const { complete, now, earlier } = compared(q, span, today);
    if (!complete || daysOf(now) > maxDays || daysOf(earlier) <= maxDays)
        return;
    throw new TypeError(`${spanText(now)} would be compared with ${spanText(earlier)}, which are ${daysOf(earlier)} days, ` +
        `at most ${maxDays}: leave out the last day`);
}
function daysOf({ start, end }) {
    return end - start + 1;
}
/** Whether a day has one to compare it with: it is over, and not a 29th of February whose year before has none. */
export function comparable(q, day, today) {
    const leap = q.compare === "year" && !q.weekdays && textOf(day).endsWith("-02-29");
    return day < today && !leap;
}
function daysBack(q, days) {
    if (q.compare === "year")
        return 52 * 7;
    if (q.grain === "week")
        return 7;
    return q.weekdays ? Math.ceil(days / 7) * 7 : days;
}
