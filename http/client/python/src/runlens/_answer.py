from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._types import Column, Range, Value, Warning

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True)
class Answer:
    """What a question is answered with."""

    columns: list[Column]
    rows: list[list[Value]]
    """Each has a value for every column, as the API gives it: a day is a text."""
    range: Range
    """What was asked for, without days that are not over where these are not compared."""
    as_of: datetime
    """Rows stored later are in no page of this answer. The earliest one, where several queries were asked."""
    as_of_last: datetime
    pages: int
    warnings: list[Warning]
    """Each once."""
    notes: list[str]
    """What a person should know of the rows, each once."""
    more: bool
    """There are further rows, beyond the question's limit."""

    def dicts(self) -> list[dict[str, Value]]:
        """The rows by the names of their columns."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row)) for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of pandas 1.5 or newer.

        Texts are of type string, days datetime64, counts Int64 and other numbers float64. What is null is missing.
        """
        pd = _library("pandas")

        def series(column: Column, values: list[Value]) -> Any:
            if column.kind == "date":
                return pd.to_datetime(pd.Series(values, dtype="object"), format="%Y-%m-%d")
            if column.kind == "text":
                return pd.Series(values, dtype="string")
            return pd.Series(pd.array(values, dtype="Int64") if _whole(column, values) else values,
                             dtype=None if _whole(column, values) else "float64")

        return pd.DataFrame({column.name: series(column, values) for column, values in self._series()})

    def to_polars(self) -> polars.DataFrame:
        """A frame of polars 1 or newer. Texts are String, days Date, counts Int64 and other numbers Float64."""
        pl = _library("polars")

        def series(column: Column, values: list[Value]) -> Any:
            if column.kind == "date":
                days = [None if value is None else date.fromisoformat(str(value)) for value in values]
                return pl.Series(column.name, days, dtype=pl.Date)
            if column.kind == "text":
                return pl.Series(column.name, values, dtype=pl.String)
            if _whole(column, values):
                return pl.Series(column.name, values, dtype=pl.Int64)
            numbers = [None if value is None else float(value) for value in values]
            return pl.Series(column.name, numbers, dtype=pl.Float64)

        return pl.DataFrame([series(column, values) for column, values in self._series()])

    def _series(self) -> list[tuple[Column, list[Value]]]:
        return [(column, [row[i] for row in self.rows]) for i, column in enumerate(self.columns)]


def _whole(column: Column, values: list[Value]) -> bool:
    return column.kind == "count" and not any(isinstance(value, float) for value in values)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"to_{name} needs {name}: pip install {name}", name=name) from None
