from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Sequence, TypedDict, Union

Value = Union[str, int, float, None]
"""A text or a day written YYYY-MM-DD, a number, or None. A whole number is an int, exact at any size."""

Kind = Literal["text", "date", "count", "number", "percent"]
"""How a column's values are counted: a count is whole and 0 where there is no row, the other numbers are None there."""


class _Eq(TypedDict):
    member: str
    op: Literal["eq"]
    value: str


class _In(TypedDict):
    member: str
    op: Literal["in"]
    values: Sequence[str]


Filter = Union[_Eq, _In]
"""Keeps the rows with one value (eq), or with any of up to 50 values (in)."""


class QueryRange(TypedDict):
    """Whole local days, both inclusive, written YYYY-MM-DD; at most 366 of them."""

    start: str
    end: str
    timezone: str


class OrderTerm(TypedDict):
    """Orders by a selected metric or dimension. In the order of a metric there is a single page."""

    member: str
    direction: Literal["asc", "desc"]


class _QueryRequired(TypedDict):
    model: str
    metrics: Sequence[str]
    range: QueryRange


class Query(_QueryRequired, total=False):
    """One question to one model of the catalog, as the API takes it."""

    dimensions: Sequence[str]
    filters: Sequence[Filter]
    order: Sequence[OrderTerm]
    limit: int
    cursor: str


@dataclass(frozen=True)
class Column:
    """A position of every row."""

    name: str
    type: str
    """string, number or date; a newer server may have others."""
    member: str
    """The catalog's; a companion has its dimension's. Empty for a column that the API does not have."""
    kind: Kind

    @property
    def numeric(self) -> bool:
        return self.kind in ("count", "number", "percent")


@dataclass(frozen=True)
class Range:
    """The range as requested, and what it is in UTC: from start_utc (inclusive) to end_utc (exclusive).

    A start_utc in the year 0, which Python lacks, is the first instant of the year 1.
    """

    start: str
    end: str
    timezone: str
    start_utc: datetime
    end_utc: datetime


@dataclass(frozen=True)
class Warning:
    """A notice about the meaning of an answer."""

    code: str
    member: str
    message: str


@dataclass(frozen=True)
class Page:
    """One page of an answer."""

    query_id: str
    catalog_version: str
    as_of: datetime
    """Rows stored later are in no page of this answer."""
    range: Range
    columns: list[Column]
    rows: list[list[Value]]
    cursor: str | None
    """None on the last page."""
    warnings: list[Warning]
    request_id: str | None
    """Of the header x-request-id, which the server's log names."""


class Deprecated(TypedDict):
    since: str
    note: str


class CatalogMetric(TypedDict):
    name: str
    type: str
    description: str
    additive: bool
    deprecated: Deprecated | None


class CatalogCompanion(TypedDict):
    """A column that comes with a dimension. It is no member: it cannot be selected or filtered."""

    name: str
    type: str
    description: str


class CatalogDimension(TypedDict):
    name: str
    type: str
    description: str
    companions: list[CatalogCompanion]
    deprecated: Deprecated | None


class CatalogModel(TypedDict):
    name: str
    description: str
    grain: str
    eventClock: str
    metrics: list[CatalogMetric]
    dimensions: list[CatalogDimension]


class Catalog(TypedDict):
    """Everything that can be asked."""

    catalogVersion: str
    models: list[CatalogModel]
