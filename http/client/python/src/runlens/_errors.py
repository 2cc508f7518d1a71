from __future__ import annotations

import email.utils
import json
import time
from http.client import responses
from typing import Mapping

# The reason of a query that takes more time or memory than a query may: it would be refused again.
TOO_EXPENSIVE = "query_too_expensive"


class RunlensError(Exception):
    """What every error of this package is, but for wrong arguments (ValueError)."""


class ResponseError(RunlensError):
    """What came with status 200 is not an answer of this API."""


class NoAnswerError(RunlensError, ConnectionError):
    """No whole answer came: the server is not running, the address is wrong, or the connection broke."""

    def __init__(self, message: str, *, never: bool = False, final: bool = False) -> None:
        super().__init__(message)
        self.never = never
        """No connection was made."""
        self.final = final
        """A repeat would end in the same way."""


class ApiError(RunlensError):
    """The server refused, or failed."""

    def __init__(
        self,
        status: int,
        code: str = "",
        message: str = "",
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        reason: str | None = None,
    ) -> None:
        self.status = status
        self.code = code
        """Such as unknown_member; empty if what answered is no runlens server, as a proxy's 502."""
        self.message = message
        self.param = param
        """The place in the request, such as range.timezone, or the unknown member."""
        self.request_id = request_id
        """Under which the server's log has the cause."""
        self.retry_after = retry_after
        """Seconds that the server asks to wait; None if it does not say."""
        self.reason = reason
        """Which limit a 429 is about, such as query_too_expensive; what restricted_key forbids, such as range.start."""
        super().__init__(status, code, message, param, request_id)

    def __str__(self) -> str:
        if not self.code:
            return f"the server answered {self.status} {responses.get(self.status, '')}".rstrip()
        place = f" at {self.param}" if self.param else ""
        return f"{self.code}{place}: {self.message} (request {self.request_id})"

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status >= 500 or self.status == 429 and self.reason != TOO_EXPENSIVE


def api_error(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Reads an answer that is no result."""
    try:
        envelope = json.loads(body)["error"]
        code, message, param = envelope["code"], envelope["message"], envelope.get("param")
        request_id = envelope["request_id"]
    except (ValueError, LookupError, TypeError, AttributeError):
        code, message, param, request_id = "", "", None, headers.get("x-request-id")
    wait = retry_after(headers.get("Retry-After"))
    return ApiError(status, code, message, param, request_id, wait, headers.get("x-runlens-reason"))


def retry_after(header: str | None) -> float | None:
    """Reads the header's two forms, seconds and a date."""
    if header is None:
        return None
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
