"""Turns a question into queries, and their pages into one table of rows. Rows stream through it until the answer."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import Callable, Iterator

from ._answer import Answer
from ._compare import Comparison, check_earlier
from ._errors import ResponseError
from ._question import (
    MAX_LIMIT,
    DAY,
    Question,
    Shift,
    Span,
    by_metric,
    check_words,
    comparable,
    compared,
    complete_order,
    periods,
    query_of,
    span_of,
    today_in,
)
from ._types import Column, OrderTerm, Page, Query, Value

Row = list[Value]
Pages = Callable[[Query], Iterator[Page]]

# How many pages are kept: those of a week, of what it was compared with, and of the next week, which is compared with
# the first of them.
MAX_KEPT = 3


@dataclass
class Table:
    """Rows under their columns. Rows can be read once."""

    columns: list[Column]
    rows: Iterator[Row]


class Report:
    """Asks one question once."""

    def __init__(self, pages: Pages, question: Question, now: datetime | None) -> None:
        """Checks the question; what is wrong with it is a ValueError. It sends nothing."""
        self._fetch, self.question = pages, question
        self.today = today_in(question.timezone, now or datetime.now(timezone.utc))
        check_words(question)
        self.span = span_of(question, self.today)
        self.query = query_of(question, self.span)
        self.by_key = complete_order(self.query)
        check_earlier(question, self.span, self.today)
        self.notes: list[str] = []
        self._pages: list[Page] = []
        self._kept: deque[tuple[Query, Page]] = deque(maxlen=MAX_KEPT)
        self._further = False  # the row that came last ends its page, and there is a next one
        self._more = False

    def answer(self) -> Answer:
        try:
            table = self._grained() if self.question.grain else self._part(self.span)
            rows = list(table.rows)
        except OverflowError:
            raise ValueError("what the range is compared with is not in the years 1 to 9999") from None
        first, last = self._pages[0], max(self._pages, key=lambda page: page.range.end)
        warnings = [warning for page in self._pages for warning in page.warnings]
        return Answer(
            columns=table.columns,
            rows=rows,
            range=replace(first.range, end=last.range.end, end_utc=last.range.end_utc),
            as_of=min(page.as_of for page in self._pages),
            as_of_last=max(page.as_of for page in self._pages),
            pages=len(self._pages),
            warnings=list(dict.fromkeys(warnings)),
            notes=self.notes,
            more=self._more,
        )

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _asked(self, span: Span) -> Span:
        """Of what is compared the complete days, unless every day has a row of its own, or none is complete."""
        if self.question.compare and "day" not in self.question.dimensions:
            shift = compared(self.question, span, self.today)
            if shift.complete:
                return shift.now
        return span

    def _part(self, span: Span) -> Table:
        """The table of one span: the whole of it, a week or a month."""
        q = self.question
        asked = self._asked(span)
        query = self.query.copy()
        query["range"], query["limit"] = asked.range(q.timezone), MAX_LIMIT
        # What is filled or compared may need more rows than it gives.
        if q.limit is not None and (not q.compare and not q.fill or by_metric(query)):
            query["limit"] = min(q.limit, MAX_LIMIT)
        table = self.open(query)
        if q.compare:
            table = self._compare(table, query, compared(q, span, self.today))
        if q.fill and not q.grain:
            table = Table(table.columns, _fill(table, span, self.by_key, lambda day: comparable(q, day, self.today)))
        if q.limit is not None:
            table = Table(table.columns, self._limited(table.rows, q.limit))
        return table

    def _limited(self, rows: Iterator[Row], limit: int) -> Iterator[Row]:
        """Ends the rows at the limit, and finds out whether there is one more, if need be by reading on."""
        count = 0
        for row in rows:
            if count == limit:
                self._more = True
                return
            count += 1
            yield row
            if count == limit and self._further:
                self._more = True
                return

    def open(self, query: Query) -> Table:
        """Asks for the first page of a query and returns the rows of all its pages."""
        kept = next((page for known, page in self._kept if known == query), None)
        pages = iter([kept]) if kept else self._fetch(query)
        first = next(pages)
        if not kept:
            self._pages.append(first)
            if self.question.grain and self.question.compare and first.cursor is None:
                self._kept.append((query, first))
        names = {column.name for column in first.columns}
        for member in (*query.get("dimensions", ()), *query["metrics"]):
            if member not in names:
                raise ResponseError(f"the answer has no column {member}")
        if by_metric(query) and len(first.rows) == query["limit"]:
            self.note(
                f"The first {query['limit']} rows in the order of a metric; the API gives at most {MAX_LIMIT} of them. "
                "In the order of dimensions all rows come."
            )
        return Table(first.columns, self._rows(first, pages))

    def _rows(self, first: Page, others: Iterator[Page]) -> Iterator[Row]:
        for page in itertools.chain([first], others):
            if page is not first:
                self._pages.append(page)
            for i, row in enumerate(page.rows):
                self._further = page.cursor is not None and i == len(page.rows) - 1
                yield list(row)

    def _compare(self, now: Table, query: Query, shift: Shift) -> Table:
        c = Comparison(self.question, now.columns, self.by_key, shift, self.today, self.note)
        c.note_today()
        if not shift.complete:
            return Table(c.columns, c.merge(now.rows, iter(())))
        c.note_compared()
        earlier = query.copy()
        earlier["range"], earlier["limit"] = shift.earlier.range(self.question.timezone), MAX_LIMIT
        if not by_metric(query):
            return Table(c.columns, c.merge(now.rows, c.moved(self.open(earlier).rows)))
        self.note(
            "In the order of a metric, what only the earlier period has is left out; in the order of dimensions "
            "it is here."
        )
        held = list(now.rows)
        earlier.pop("order")
        filters = [*query.get("filters", ()), *c.only_groups_of(held, len(query.get("filters", ())))]
        if filters:
            earlier["filters"] = filters
        return Table(c.columns, c.beside(held, self.open(earlier).rows))

    def _grained(self) -> Table:
        """Asks for every week or month by itself and puts its first day in front of the rows."""
        cut = periods(self.question, self.span)
        first = self._part(cut[0].covered)
        for period in (cut[0], cut[-1]):
            counted = self._asked(period.covered)
            if counted != period.whole:
                self.note(f"The {self.question.grain} of {period.whole.start} is counted in part: {counted}.")

        def rows() -> Iterator[Row]:
            for period in cut:
                table = first if period is cut[0] else self._part(period.covered)
                for row in table.rows:
                    yield [str(period.whole.start), *row]

        return Table([Column(self.question.grain or "", "date", "", "date"), *first.columns], rows())


def _fill(table: Table, span: Span, order: list[OrderTerm], has_earlier: Callable[[date], bool]) -> Iterator[Row]:
    """Adds a row for every day of the span that a group has none of. The day is the last key of the rows' order."""
    columns = table.columns
    day = [column.name for column in columns].index("day")
    groups = [term["member"] for term in order[:-1]]
    keys = [i for i, column in enumerate(columns) if column.name in groups]
    days = [span.start + i * DAY for i in range(span.days)]
    if order[-1]["direction"] == "desc":
        days.reverse()

    def key(row: Row) -> Row:
        return [row[i] for i in keys]

    def absent(column: Column, on: date) -> Value:
        of_comparison = column.name != column.member
        return 0 if column.kind == "count" and (not of_comparison or has_earlier(on)) else None

    def whole(group: Row, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows of one group, and the days that it lacks."""
        row = next(rows, None)
        for on in days:
            group = row or group  # a name is that of the next row, and in the end of the last one
            if row is not None and row[day] == str(on):
                yield row
                row = next(rows, None)
            else:
                yield [absent(c, on) if c.numeric else group[i] if i != day else str(on) for i, c in enumerate(columns)]

    found = False
    for _, group in itertools.groupby(table.rows, key):
        found = True
        first = next(group)
        yield from whole(first, itertools.chain([first], group))
    if not found and not keys:  # one group, that is there without rows too
        yield from whole([None] * len(columns), iter(()))
