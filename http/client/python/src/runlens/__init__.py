"""Asks a runlens server from Python: the catalog, one query, every page of an answer, or a data frame.

    from runlens import Client, Question
    answer = Client().ask(Question(metrics=["run_count"], dimensions=["day"], last="30d"))
    frame = answer.to_pandas()

A request that is refused with 429, fails with 5xx or loses its connection is sent again: every request only reads, so
a repeat changes nothing. The package depends on the standard library only.
"""

from ._answer import Answer
from ._client import Client
from ._errors import ApiError, NoAnswerError, ResponseError, RunlensError
from ._question import Question
from ._send import Wait
from ._types import (
    Catalog,
    CatalogCompanion,
    CatalogDimension,
    CatalogMetric,
    CatalogModel,
    Column,
    Deprecated,
    Filter,
    Kind,
    OrderTerm,
    Page,
    Query,
    QueryRange,
    Range,
    Value,
    Warning,
)

__all__ = [
    "Answer",
    "ApiError",
    "Catalog",
    "CatalogCompanion",
    "CatalogDimension",
    "CatalogMetric",
    "CatalogModel",
    "Client",
    "Column",
    "Deprecated",
    "Filter",
    "Kind",
    "NoAnswerError",
    "OrderTerm",
    "Page",
    "Query",
    "QueryRange",
    "Question",
    "Range",
    "ResponseError",
    "RunlensError",
    "Value",
    "Wait",
    "Warning",
]
