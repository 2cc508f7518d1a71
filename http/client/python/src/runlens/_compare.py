from __future__ import annotations

import math
from datetime import date
from typing import Callable, Iterator

from ._question import Question, Shift, Span, comparable, compared
from ._types import Column, Filter, OrderTerm, Value

Row = list[Value]

MAX_DAYS = 366
MAX_FILTERS = 8
MAX_FILTER_VALUES = 50
MAX_FILTER_LENGTH = 200


def check_earlier(q: Question, span: Span, today: date) -> None:
    """Refuses a comparison with more days than a query may have.

    Those of a year before have one more where the 29th of February is among them.
    """
    if not q.compare or q.grain:
        return
    try:
        shift = compared(q, span, today)
    except OverflowError:
        return  # the answer says so
    if shift.complete and shift.now.days <= MAX_DAYS < shift.earlier.days:
        raise ValueError(
            f"{shift.now} would be compared with {shift.earlier}, which are {shift.earlier.days} days, "
            f"at most {MAX_DAYS}: leave out the last day"
        )


class Comparison:
    """Puts beside every metric its earlier value, the difference and the change in percent."""

    def __init__(
        self,
        question: Question,
        now: list[Column],
        by_key: list[OrderTerm],
        shift: Shift,
        today: date,
        note: Callable[[str], None],
    ) -> None:
        self._question, self._now, self._shift, self._today, self._note = question, now, shift, today, note
        at = {column.name: i for i, column in enumerate(now)}
        self._day = at.get("day")
        # Columns of dimensions, in the order of the rows, and whether it is descending.
        self._keys = [
            (at[term["member"]], term["direction"] == "desc")
            for term in by_key
            if term["member"] in at and not now[at[term["member"]]].numeric
        ]
        self.columns: list[Column] = []
        for column in now:
            self.columns.append(column)
            if column.numeric:
                self.columns += [
                    Column(column.name + "_previous", column.type, column.member, column.kind),
                    Column(column.name + "_difference", column.type, "", column.kind),
                    Column(column.name + "_percent", column.type, "", "percent"),
                ]

    def note_today(self) -> None:
        """Says what becomes of the days that are not over, where the question has some."""
        if not self._shift.open:
            return
        if not self._shift.complete:
            self._note(f"{self._today} is not over, so it is not compared.")
        elif self._day is not None:
            self._note(f"{self._today} is not over: it is here, but not compared.")
        else:
            self._note(f"{self._today} is not over: a comparison leaves it out.")

    def note_compared(self) -> None:
        grain, compare = self._question.grain, self._question.compare
        if not grain:
            self._note(f"{self._shift.now} is compared with {self._shift.earlier}.")
            return
        if compare == "previous":
            other = f"the {grain} before"
        else:
            other = "the week 52 weeks before" if grain == "week" else "that month a year before"
        self._note(f"Every {grain} is compared with the same days of {other}.")

    def merge(self, now: Iterator[Row], earlier: Iterator[Row]) -> Iterator[Row]:
        """Joins two sorted streams; a row that one of them lacks is there with the metrics of nothing."""
        a, b = next(now, None), next(earlier, None)
        while a is not None or b is not None:
            order = 1 if a is None else -1 if b is None else self._order(a, b)
            yield self._join(a if order <= 0 else None, b if order >= 0 else None)
            if order <= 0:
                a = next(now, None)
            if order >= 0:
                b = next(earlier, None)

    def beside(self, now: list[Row], earlier: Iterator[Row]) -> Iterator[Row]:
        """Joins rows in the order of a metric with the earlier rows of the same groups."""
        wanted = {self._key(row) for row in now}
        found = {self._key(row): row for row in self.moved(earlier) if self._key(row) in wanted}
        return (self._join(row, found.get(self._key(row))) for row in now)

    def moved(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Gives earlier rows the day that they are compared with. What has none is left out, with a note."""
        for row in rows:
            if self._day is not None:
                day = self._shift.later(date.fromisoformat(str(row[self._day])))
                if day is None:
                    self._note(f"{row[self._day]} has no day to be compared with; it is left out.")
                    continue
                row[self._day] = str(day)
            yield row

    def only_groups_of(self, rows: list[Row], others: int) -> list[Filter]:
        """Filters that the groups of all rows pass. A filter cannot name null, nor long values."""
        filters: list[Filter] = []
        for at, _ in self._keys:
            values = list(dict.fromkeys(row[at] for row in rows))
            texts = [value for value in values if isinstance(value, str) and 0 < len(value) <= MAX_FILTER_LENGTH]
            fits = 0 < len(texts) == len(values) <= MAX_FILTER_VALUES and others + len(filters) < MAX_FILTERS
            if at != self._day and fits:
                filters.append({"member": self._now[at].name, "op": "in", "values": texts})
        return filters

    def _key(self, row: Row) -> tuple[Value, ...]:
        return tuple(row[at] for at, _ in self._keys)

    def _order(self, a: Row, b: Row) -> int:
        """Compares the keys of two rows as the server does: by code points, null last in both directions."""
        for at, desc in self._keys:
            x, y = a[at], b[at]
            if x == y:
                continue
            if x is None or y is None:
                return 1 if x is None else -1
            return -1 if (str(x) < str(y)) != desc else 1
        return 0

    def _join(self, now: Row | None, earlier: Row | None) -> Row:
        """A row of the result; None is a row that is not there. Names are the later row's, where it has one."""
        names = now or earlier or []
        row: Row = []
        for i, column in enumerate(self._now):
            if not column.numeric:
                row.append(names[i])
                continue
            absent = 0 if column.kind == "count" else None
            a = now[i] if now else absent
            b = earlier[i] if earlier else absent if self._comparable(names) else None
            row += [a, b, difference(a, b), percent(a, b)]
        return row

    def _comparable(self, row: Row) -> bool:
        """Whether a row is of days that have others to compare with."""
        if self._day is None:
            return self._shift.complete
        return comparable(self._question, date.fromisoformat(str(row[self._day])), self._today)


def difference(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return None
    return float(f"{a - b:.12g}")  # without the noise of binary fractions


def percent(a: Value, b: Value) -> Value:
    """The change relative to the earlier value, to two decimals; None where that is None or 0."""
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)) or b == 0:
        return None
    return _round((float(a) - float(b)) / abs(float(b)) * 1e4) / 1e2


def _round(x: float) -> float:
    """Half away from zero."""
    whole = math.trunc(x)
    return float(whole + math.copysign(1, x)) if abs(x - whole) >= 0.5 else float(whole)
