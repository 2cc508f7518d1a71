from __future__ import annotations

import ipaddress
import json
import os
import re
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, cast
from urllib.parse import urlsplit

from ._answer import Answer
from ._errors import ResponseError
from ._question import MAX_LIMIT, Question
from ._report import Report
from ._send import Sender, Wait
from ._types import Catalog, Column, Kind, Page, Query, Range, Warning

_PRINTABLE = re.compile("[!-~]+")


class Client:
    """Asks one server with one key. It sends nothing until it is asked.

    url: the server's address, such as https://analytics.example.com; RUNLENS_URL where it is left out. Without a
        scheme it is http for loopback addresses and https for all others.
    key: an API key with the scope analytics:read; RUNLENS_API_KEY where it is left out.
    timeout: seconds within which a connection must be made, and within which more of an answer must come.
    max_wait: bounds the pauses of one request together, in seconds, inclusive. 0 sends everything once.
    on_wait: is called before each pause.

    An address or a key that cannot be one is a ValueError.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 120,
        max_wait: float = 600,
        on_wait: Callable[[Wait], None] | None = None,
        user_agent: str = "runlens-python",
    ) -> None:
        key = os.environ.get("RUNLENS_API_KEY", "") if key is None else key
        if not _PRINTABLE.fullmatch(key):
            raise ValueError("the API key is empty, or has characters that no key has")
        self.url, loopback = _address(os.environ.get("RUNLENS_URL", "") if url is None else url)
        headers = {"Authorization": "Bearer " + key, "User-Agent": user_agent}
        self._sender = Sender(self.url, headers, not loopback, timeout, max_wait, on_wait)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def catalog(self) -> Catalog:
        """Lists everything that can be asked."""
        content, _ = self._sender.send("GET", "/api/v1/analytics/catalog", None)
        catalog = _read_json(content)
        if not isinstance(catalog, dict) or not isinstance(catalog.get("models"), list):
            raise ResponseError("the answer is no catalog")
        return cast(Catalog, catalog)

    def query(self, query: Query) -> Page:
        """Asks for one page."""
        content, headers = self._sender.send("POST", "/api/v1/analytics/query", json.dumps(query).encode())
        return _page(_read_json(content), headers.get("x-request-id"))

    def pages(self, query: Query) -> Iterator[Page]:
        """Asks for every page of an answer, one after another, of 500 rows unless the query has a limit.

        All have the same as_of. Nothing is asked ahead, so a loop that ends early sends nothing more.
        """
        following = query.copy()
        following.setdefault("limit", MAX_LIMIT)
        while True:
            page = self.query(following)
            if page.cursor is not None and page.cursor == following.get("cursor"):
                raise ResponseError("the same cursor came again")
            yield page
            if page.cursor is None:
                return
            following["cursor"] = page.cursor

    def ask(self, question: Question, *, now: datetime | None = None) -> Answer:
        """Answers a question as runlens query does, with all rows unless it has a limit.

        now is when its period is seen from; a ValueError says what is wrong with it before anything is sent.
        """
        return Report(self.pages, question, now).answer()


def _address(text: str) -> tuple[str, bool]:
    """The address without a trailing slash, and whether it is of this machine."""
    wrong = ValueError(f"{text!r} is no address such as http://127.0.0.1:8080")
    try:
        parts = urlsplit(text if "://" in text else "//" + text)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")  # else the first request finds that it is no name
    except ValueError:
        raise wrong from None
    if "@" in parts.netloc:
        raise ValueError("the address must not hold a user or a password; the API takes a key")
    loopback = host == "localhost"
    try:
        loopback = loopback or ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass  # a name
    scheme = parts.scheme or ("http" if loopback else "https")
    if not host or scheme not in ("http", "https") or "?" in text or "#" in text or not _PRINTABLE.fullmatch(text):
        raise wrong
    return f"{scheme}://{parts.netloc}{parts.path}".rstrip("/"), loopback


def _read_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ResponseError("the answer is not JSON") from error


def _page(answer: Any, request_id: str | None) -> Page:
    try:
        page = Page(
            query_id=answer["queryId"],
            catalog_version=answer["catalogVersion"],
            as_of=_instant(answer["asOf"]),
            range=_range(**answer["range"]),
            columns=[Column(c["name"], c["type"], c["member"], _kind(c)) for c in answer["columns"]],
            rows=answer["rows"],
            cursor=answer["cursor"],
            warnings=[Warning(w["code"], w["member"], w["message"]) for w in answer["warnings"]],
            request_id=request_id,
        )
        whole = all(len(row) == len(page.columns) for row in page.rows)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ResponseError("the answer is no page" + _under(request_id)) from error
    if not whole:
        raise ResponseError("a row has not as many values as there are columns" + _under(request_id))
    return page


def _under(request_id: str | None) -> str:
    return f" (request {request_id})" if request_id else ""


def _range(start: str, end: str, timezone: str, startUtc: str, endUtc: str, **_: object) -> Range:
    return Range(start, end, timezone, _instant(startUtc), _instant(endUtc))


def _instant(text: str) -> datetime:
    if text.startswith("0000-"):  # east of UTC a range of year 1 begins before the first instant that Python has
        return datetime.min.replace(tzinfo=timezone.utc)
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _kind(column: dict[str, str]) -> Kind:
    """The API does not say which numbers are whole; by its names those that end in _count are."""
    if column["type"] == "number":
        return "count" if column["name"].endswith("_count") else "number"
    return "date" if column["type"] == "date" else "text"
