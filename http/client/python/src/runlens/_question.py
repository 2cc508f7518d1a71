from __future__ import annotations

import calendar
import re
import zoneinfo
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Callable, Literal, Mapping, Sequence

from ._errors import RunlensError
from ._types import Filter, OrderTerm, Query, QueryRange

MAX_LIMIT = 500
DAY = timedelta(days=1)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LAST = re.compile("([1-9][0-9]{0,3})(d|w|mo)")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a person asks for, with the words and the defaults of runlens query.

    Its period is one of start, last, today and yesterday, with end where that makes sense; without any it is 30 days.
    """

    metrics: Sequence[str]
    model: str = "agent_runs"
    dimensions: Sequence[str] = ()
    """Without any the answer is one row of totals."""
    filters: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """The values of each dimension that rows may have."""
    start: date | str | None = None
    """The first day, inclusive."""
    end: date | str | None = None
    """The last day, inclusive; today in timezone where it is left out."""
    last: str | None = None
    """Days, weeks or months until end, the one of end included, such as 30d, 12w or 13mo."""
    today: bool = False
    yesterday: bool = False
    timezone: str = "UTC"
    """Of the days: a canonical IANA timezone such as Europe/Stockholm."""
    order: Sequence[str] = ()
    """Members, such as run_count:desc. In the order of a metric there are at most 500 rows."""
    limit: int | None = None
    """The most rows, with a grain those of each week or month; all where it is left out."""
    grain: Literal["week", "month"] | None = None
    """A row for each week or month, or for each one of every group. Each is asked for by itself."""
    week_start: str = "monday"
    compare: Literal["previous", "year"] | None = None
    """Adds the value of the time before, or of a year ago, the difference, and the change in percent to each metric."""
    weekdays: bool = False
    """compare goes back whole weeks, so that weekdays are compared with the same ones."""
    fill: bool = False
    """A row for every day, also where there is no data. It needs the dimension day, or a grain."""


@dataclass(frozen=True)
class Span:
    """Whole days, both inclusive."""

    start: date
    end: date

    @property
    def days(self) -> int:
        return (self.end - self.start).days + 1

    def range(self, timezone: str) -> QueryRange:
        return {"start": self.start.isoformat(), "end": self.end.isoformat(), "timezone": timezone}

    def __str__(self) -> str:
        return str(self.start) if self.start == self.end else f"{self.start} to {self.end}"


def today_in(name: str, now: datetime) -> date:
    """The local day of now. In a zone that is unknown, and that the server refuses, it is UTC's."""
    try:
        return now.astimezone(zoneinfo.ZoneInfo(name)).date()
    except (LookupError, ValueError, OSError):
        if not zoneinfo.available_timezones():
            raise RunlensError("this machine has no tz data: pip install tzdata") from None
        return now.astimezone(timezone.utc).date()


def span_of(q: Question, today: date) -> Span:
    """The period that the question names."""
    named = sum(map(bool, (q.today, q.yesterday, q.last, q.start)))
    if named > 1 or q.end and (q.today or q.yesterday):
        raise ValueError("start, last, today and yesterday exclude each other, and end the latter two")
    end = _day("end", q.end) if q.end else today
    try:
        if q.today:
            span = Span(today, today)
        elif q.yesterday:
            span = Span(today - DAY, today - DAY)
        elif q.start:
            span = Span(_day("start", q.start), end)
        elif q.last:
            span = Span(_last_start(q, end), end)
        else:
            span = Span(end - 29 * DAY, end)
    except OverflowError:
        raise ValueError("the range starts before the year 1") from None
    if span.start > span.end:
        raise ValueError(f"the range starts on {span.start}, after its end on {span.end}")
    return span


def _last_start(q: Question, end: date) -> date:
    parts = _LAST.fullmatch(q.last or "")
    if not parts:
        raise ValueError(f"last {q.last} must be days, weeks or months such as 30d, 12w or 13mo")
    count = int(parts[1])
    if parts[2] == "w":
        return week_of(end, q.week_start) - 7 * (count - 1) * DAY
    if parts[2] == "mo":
        return add_months(end.replace(day=1), 1 - count)
    return end - (count - 1) * DAY


def _day(name: str, value: date | str) -> date:
    try:
        if isinstance(value, str) and len(value) == len("2026-01-31"):
            return date.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
    except ValueError:
        pass
    raise ValueError(f"{name} {value} is no day such as 2026-01-31")


def query_of(q: Question, span: Span) -> Query:
    """Checks what the server cannot know and returns the query of the span, without a limit."""
    if not q.metrics or isinstance(q.metrics, str):
        raise ValueError("metrics are needed, such as [\"run_count\"]; the catalog names them")
    for name, members in (("dimensions", q.dimensions), ("order", q.order)):
        if isinstance(members, str):  # a sequence too, of its letters
            raise ValueError(f"{name} is a list, such as [\"{members}\"]")
    if not isinstance(q.filters, Mapping) or None in q.filters.values():
        raise ValueError("filters are texts by dimension, such as {\"user_type\": [\"internal\"]}; None is no text")
    query: Query = {"model": q.model, "metrics": list(q.metrics), "range": span.range(q.timezone)}
    if q.dimensions:
        query["dimensions"] = list(q.dimensions)
    if q.filters:
        query["filters"] = [_filter(member, values) for member, values in q.filters.items()]
    if q.order:
        query["order"] = [_term(text) for text in q.order]
    _check_together(q, query)
    return query


def _filter(member: str, values: str | Sequence[str]) -> Filter:
    if isinstance(values, str):
        return {"member": member, "op": "eq", "value": values}
    return {"member": member, "op": "in", "values": list(values)}


def _term(text: str) -> OrderTerm:
    member, _, direction = text.partition(":")
    if direction == "desc" and member:
        return {"member": member, "direction": "desc"}
    if direction == "asc" or member == text:
        return {"member": member, "direction": "asc"}
    raise ValueError(f"order {text} must be MEMBER, MEMBER:asc or MEMBER:desc")


def check_words(q: Question) -> None:
    """Checks what names one of a few."""
    for name, value, words in (
        ("grain", q.grain, (None, "week", "month")),
        ("week_start", q.week_start, WEEKDAYS),
        ("compare", q.compare, (None, "previous", "year")),
    ):
        if value not in words:
            raise ValueError(f"{name} {value} must be one of {' '.join(filter(None, words))}")
    if q.limit is not None and q.limit < 1:
        raise ValueError("limit must be at least 1")


def _check_together(q: Question, query: Query) -> None:
    """Checks what depends on each other, and orders the rows as they need it."""
    by_day, top = "day" in q.dimensions, by_metric(query)
    if q.weekdays and (not q.compare or q.grain):
        raise ValueError("weekdays is for compare without grain; weeks have the same weekdays anyway")
    if q.grain and by_day:
        raise ValueError(f"grain {q.grain} and the dimension day exclude each other")
    if top and q.limit is not None and q.limit > MAX_LIMIT:
        raise ValueError(f"limit must be at most {MAX_LIMIT} in the order of a metric")
    if (q.fill or q.compare) and "day" in q.filters:  # other days are left out
        raise ValueError("a filter on day excludes fill and compare; name the days with start and end instead")
    if not q.fill:
        return
    if q.grain and q.dimensions:
        raise ValueError("fill fills days; with grain it works without dimensions only")
    if q.grain:
        return  # a totals query has its row in any case
    if not by_day:
        raise ValueError("fill needs the dimension day")
    if top:
        raise ValueError("fill and the order of a metric exclude each other")
    if not q.order:
        query["order"] = [_term(name) for name in (*(d for d in q.dimensions if d != "day"), "day")]
    if complete_order(query)[-1]["member"] != "day":
        raise ValueError("fill needs day as the last member of order")


def by_metric(query: Query) -> bool:
    """Whether rows come in the order of a metric, and so on a single page."""
    return any(term["member"] not in query.get("dimensions", ()) for term in query.get("order", ()))


def complete_order(query: Query) -> list[OrderTerm]:
    """The total order of a query's rows that has no metric in it."""
    terms = list(query.get("order", ()))
    ordered = {term["member"] for term in terms}
    return terms + [_term(name) for name in query.get("dimensions", ()) if name not in ordered]


@dataclass(frozen=True)
class Period:
    """A week or month, or the part of it that a span covers."""

    whole: Span
    covered: Span


def periods(q: Question, span: Span) -> list[Period]:
    """Cuts the span into weeks or months. The first and the last may be parts."""
    cut, day = [], span.start
    while day <= span.end:
        if q.grain == "week":
            first = week_of(day, q.week_start)
            last = first + 6 * DAY
        else:
            first = day.replace(day=1)
            last = _last_day(first)
        cut.append(Period(Span(first, last), Span(day, min(last, span.end))))
        day = last + DAY
    return cut


@dataclass(frozen=True)
class Shift:
    """Leads from complete days to those that they are compared with, and from a day of the latter back."""

    now: Span
    """Ends before it starts where no day of the span is complete."""
    earlier: Span
    open: bool
    """The span has days that are not over."""
    later: Callable[[date], date | None]
    """The day that an earlier one is compared with; None for one that has none, because of a 29th of February."""

    @property
    def complete(self) -> bool:
        return self.now.start <= self.now.end


def compared(q: Question, span: Span, today: date) -> Shift:
    """The period of compare.

    Without a grain, previous is as many days right before; with weekdays it is whole weeks before, and a year is 52
    weeks. A week is compared with the same weekdays of the week before or of 52 weeks before, a month with the same
    days of the month before or of that month a year before; a last day of a month stands for the last day of the other.
    From today on days are not over: neither they nor the days that they would be compared with count.
    """
    still_open = span.end >= today
    now = Span(span.start, today - DAY) if still_open else span
    if q.grain == "month":
        months = -1 if q.compare == "previous" else -12
        earlier = Span(add_months(now.start, months), _last_to_last(now.end, months))
        return Shift(now, earlier, still_open, lambda day: None)  # a month has no dimension day
    if q.grain == "week":
        days = 7 if q.compare == "previous" else 52 * 7
    elif q.weekdays:
        days = 52 * 7 if q.compare == "year" else -(-span.days // 7) * 7
    elif q.compare == "previous":
        days = span.days
    else:

        def a_year_later(day: date) -> date | None:
            later = add_months(day, 12)
            return later if later.day == day.day and later >= span.start else None

        return Shift(now, Span(add_months(now.start, -12), add_months(now.end, -12)), still_open, a_year_later)
    back = days * DAY
    return Shift(now, Span(now.start - back, now.end - back), still_open, lambda day: day + back)


def comparable(q: Question, day: date, today: date) -> bool:
    """Whether a day has one to compare it with: it is over, and not a 29th of February whose year before has none."""
    leap = q.compare == "year" and not q.weekdays and (day.month, day.day) == (2, 29)
    return day < today and not leap


def week_of(day: date, first: str) -> date:
    """The first day of the week that holds day."""
    return day - (day.weekday() - WEEKDAYS.index(first)) % 7 * DAY


def _last_day(day: date) -> date:
    """The last day of its month."""
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def add_months(day: date, months: int) -> date:
    """Keeps the day of the month, or takes the last one where that month is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("a year before 1 or after 9999")
    first = date(year, month + 1, 1)
    return first.replace(day=min(day.day, _last_day(first).day))


def _last_to_last(day: date, months: int) -> date:
    """add_months that leads from a last day of a month to the last day of the other."""
    return _last_day(add_months(day.replace(day=1), months)) if day == _last_day(day) else add_months(day, months)
