from __future__ import annotations

import http.client
import random
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from typing import Callable

from ._errors import ApiError, NoAnswerError, RunlensError, api_error

# How often a request that fails or is lost is sent at most. Being refused with 429 and Retry-After does not count.
MAX_ATTEMPTS = 5
FIRST_BACKOFF = 0.25  # seconds
MAX_BACKOFF = 10.0
MAX_RESPONSE_BYTES = 32 << 20


@dataclass(frozen=True)
class Wait:
    """A pause before a request is sent again."""

    seconds: float
    attempt: int
    """The one that failed, from 1."""
    cause: RunlensError


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key on."""

    def redirect_request(self, *_: object) -> None:
        return None


class Sender:
    """Sends requests to one server, again where that may help: every request only reads."""

    def __init__(
        self, base: str, headers: dict[str, str], proxied: bool, timeout: float, max_wait: float,
        on_wait: Callable[[Wait], None] | None,
    ) -> None:
        self._base, self._headers = base, headers
        self._timeout, self._max_wait, self._on_wait = timeout, max_wait, on_wait
        self._reached = False  # the server has answered at least once
        proxies = urllib.request.ProxyHandler(None if proxied else {})
        self._opener = urllib.request.build_opener(_NoRedirects, proxies)

    def send(self, method: str, path: str, body: bytes | None) -> tuple[bytes, Message]:
        """The body and headers of a 200."""
        waited, failures, attempt = 0.0, 0, 0
        while True:
            attempt += 1
            try:
                return self._once(method, path, body)
            except (ApiError, NoAnswerError) as error:
                cause = error
                limited = isinstance(error, ApiError) and error.status == 429 and bool(error.retry_after)
                failures += not limited
                wait = (isinstance(error, ApiError) and error.retry_after) or _backoff(failures)
                if not self._may_pass(error) or failures >= MAX_ATTEMPTS or waited + wait > self._max_wait:
                    raise
            if self._on_wait:
                self._on_wait(Wait(wait, attempt, cause))
            time.sleep(wait)
            waited += wait

    def _may_pass(self, error: ApiError | NoAnswerError) -> bool:
        """A server that never answered is likelier not there than restarting."""
        if isinstance(error, ApiError):
            return error.retryable
        return not error.final and (self._reached or not error.never)

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[bytes, Message]:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self._base + path, body, headers, method=method)
        try:
            try:
                response = self._opener.open(request, timeout=self._timeout)
            except urllib.error.HTTPError as refused:  # an answer as well
                response = refused
            with response:
                self._reached = True
                content, received, status = _read(response), response.headers, response.status
        except (OSError, http.client.HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            # A BadStatusLine is what came instead of one, and no more.
            spelled = isinstance(cause, http.client.BadStatusLine) and not isinstance(cause, OSError)
            raise NoAnswerError(
                f"no answer from {self._base}: {repr(cause) if spelled else cause or type(cause).__name__}",
                never=isinstance(error, urllib.error.URLError),
                final=isinstance(cause, (ssl.SSLCertVerificationError, _TooLarge)),
            ) from error
        if status != 200:
            raise api_error(status, received, content)
        return content, received


class _TooLarge(OSError):
    pass


def _read(response: http.client.HTTPResponse) -> bytes:
    content = response.read(MAX_RESPONSE_BYTES + 1)
    if len(content) > MAX_RESPONSE_BYTES:
        raise _TooLarge(f"the answer is larger than {MAX_RESPONSE_BYTES} bytes")
    announced = response.headers.get("Content-Length", "")
    if announced.isdigit() and len(content) < int(announced):  # which a read of so many bytes does not report
        raise http.client.IncompleteRead(content, int(announced) - len(content))
    return content


def _backoff(failures: int) -> float:
    """Callers that failed together come back apart."""
    return min(FIRST_BACKOFF * 2.0 ** (max(failures, 1) - 1), MAX_BACKOFF) * random.uniform(0.5, 1.0)
