const milliseconds = 86_400_000;
/** A day as YYYY-MM-DD. */
export function textOf(day) {
    return new Date(day * milliseconds).toISOString().slice(0, 10);
}
export function spanText({ start, end }) {
    return start === end ? textOf(start) : `${textOf(start)} to ${textOf(end)}`;
}
export const firstDay = dayOf(1, 0, 1);
/** Reads YYYY-MM-DD, a day of the years 1 to 9999 that exists. */
export function parseDay(text) {
    const day = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) / milliseconds : NaN;
    return day >= firstDay && textOf(day) === text ? day : undefined;
}
/** A month is counted from 0, and may be below it or above 11. */
function dayOf(year, month, day) {
    return new Date(0).setUTCFullYear(year, month, day) / milliseconds;
}
/** The local day of an instant. In a zone that is unknown, and that the server refuses, it is UTC's. */
export function todayIn(timeZone, now) {
    const fields = { year: "numeric", month: "numeric", day: "numeric" };
    const local = (timeZone) => {
        const parts = new Intl.DateTimeFormat("en-u-ca-iso8601", { ...fields, timeZone }).formatToParts(now);
        const [year, month, day] = ["year", "month", "day"].map((type) => Number(parts.find((part) => part.type === type)?.value));
        return dayOf(year, month - 1, day);
    };
    try {
        return local(timeZone);
    }
    catch {
        return local("UTC");
    }
}
/** The first day of a day's month, or of a later or earlier one. */
export function monthOf(day, months = 0) {
    const date = new Date(day * milliseconds);
    return dayOf(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
}
export function lastOfMonth(day) {
    return monthOf(day, 1) - 1;
}
/** Keeps the day of the month, or takes the last one where that month is shorter. */
export function addMonths(day, months) {
    const first = monthOf(day, months);
    return Math.min(first + day - monthOf(day), lastOfMonth(first));
}
/** addMonths that leads from a last day of a month to the last day of the other. */
export function lastToLast(day, months) {
    return day === lastOfMonth(day) ? lastOfMonth(monthOf(day, months)) : addMonths(day, months);
}
/** The first day of the week that holds a day. Weekdays are counted from Monday, 0. */
export function weekOf(day, first) {
    const weekday = day + 3; // 1970-01-01 was a Thursday
    return day - ((((weekday - first) % 7) + 7) % 7);
}
