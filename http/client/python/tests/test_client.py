"""What the table of cases has not: frames, values, addresses, and servers that are something else.

RUNLENS_URL and RUNLENS_API_KEY name a real server that has the runs of the table.
"""

import http.server
import socket
import threading
import time
import unittest
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone

from runlens import ApiError, Answer, Client, Column, NoAnswerError, Question, Range, ResponseError
from runlens._compare import difference, percent
from runlens._errors import retry_after

QUESTION = Question(
    metrics=["run_count", "run_success_rate"],
    dimensions=["day", "user_identifier"],
    start=date(2026, 3, 1),
    end="2026-03-05",
)
ROWS = [
    ["2026-03-02", "a@x.example", None, 2, 0.5],
    ["2026-03-03", "b@x.example", None, 1, 1],
    ["2026-03-04", None, None, 1, None],
    ["2026-03-05", "a@x.example", None, 1, None],
]
LARGE = 2**53 + 1
STARTED = datetime(2026, 1, 1, tzinfo=timezone.utc)


def answer(columns, rows):
    spoken = Range("2026-01-01", "2026-01-01", "UTC", STARTED, STARTED)
    return Answer(columns, rows, spoken, STARTED, STARTED, 1, [], [], False)


COUNTS = answer(
    [Column("day", "date", "day", "date"), Column("run_count", "number", "run_count", "count")],
    [["2026-01-01", LARGE], [None, None]],
)


@contextmanager
def server(*answers):
    """Answers requests one after another: each answer is a status, headers and a body, or None for silence."""
    seen, done = [], threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.headers)
            if answers[len(seen) - 1] is None:
                done.wait(60)
                return
            status, headers, body = answers[len(seen) - 1]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}).start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}", seen
    finally:
        done.set()
        listening.shutdown()
        listening.server_close()


class Frames(unittest.TestCase):
    def test_rows_are_those_of_the_api(self):
        asked = Client().ask(QUESTION)
        page = Client().query({
            "model": "agent_runs", "metrics": QUESTION.metrics, "dimensions": QUESTION.dimensions,
            "range": {"start": "2026-03-01", "end": "2026-03-05", "timezone": "UTC"},
        })
        self.assertEqual(asked.rows, ROWS)
        self.assertEqual(asked.rows, page.rows)
        self.assertEqual([warning.member for warning in asked.warnings], ["run_success_rate"])
        self.assertEqual((page.range.start_utc, page.range.end_utc),
                         (datetime(2026, 3, 1, tzinfo=timezone.utc), datetime(2026, 3, 6, tzinfo=timezone.utc)))
        self.assertEqual(asked.dicts()[0]["run_count"], 2)

    def test_range_that_begins_before_python_does(self):
        page = Client().query({
            "model": "agent_runs", "metrics": ["run_count"],
            "range": {"start": "0001-01-01", "end": "0001-01-01", "timezone": "Asia/Tokyo"},
        })
        self.assertEqual((page.range.start_utc, page.range.end_utc),
                         (datetime.min.replace(tzinfo=timezone.utc), datetime(1, 1, 1, 14, 41, 1, tzinfo=timezone.utc)))
        self.assertEqual(page.rows, [[0]])

    def test_pandas(self):
        try:
            import pandas
        except ModuleNotFoundError:
            with self.assertRaisesRegex(ModuleNotFoundError, "to_pandas needs pandas: pip install pandas"):
                COUNTS.to_pandas()
            self.skipTest("there is no pandas")
        frame = Client().ask(QUESTION).to_pandas()
        self.assertEqual([str(t) for t in frame.dtypes], ["datetime64[ns]", "string", "string", "Int64", "float64"])
        back = [[None if pandas.isna(value) else value for value in row] for row in frame.values.tolist()]
        self.assertEqual([[str(row[0].date()), *row[1:]] for row in back], ROWS)
        frame = COUNTS.to_pandas()
        self.assertEqual([str(t) for t in frame.dtypes], ["datetime64[ns]", "Int64"])
        self.assertEqual(int(frame["run_count"][0]), LARGE)
        self.assertTrue(frame["run_count"].isna()[1] and frame["day"].isna()[1])
        empty = answer(COUNTS.columns, []).to_pandas()
        self.assertEqual([str(t) for t in empty.dtypes], ["datetime64[ns]", "Int64"])
        self.assertEqual(len(empty), 0)

    def test_polars(self):
        try:
            import polars
        except ModuleNotFoundError:
            with self.assertRaisesRegex(ModuleNotFoundError, "to_polars needs polars: pip install polars"):
                COUNTS.to_polars()
            self.skipTest("there is no polars")
        frame = Client().ask(QUESTION).to_polars()
        self.assertEqual(frame.dtypes, [polars.Date, polars.String, polars.String, polars.Int64, polars.Float64])
        self.assertEqual([[str(row[0]), *row[1:]] for row in frame.rows()], ROWS)
        frame = COUNTS.to_polars()
        self.assertEqual(frame.rows(), [(date(2026, 1, 1), LARGE), (None, None)])
        self.assertEqual(answer(COUNTS.columns, []).to_polars().dtypes, [polars.Date, polars.Int64])


class Values(unittest.TestCase):
    def test_changes(self):
        for a, b, by, change in [
            (LARGE, 1, LARGE - 1, None), (3, 4, -1, -25), (0.9, 0.85, 0.05, 5.88), (1, 0, 1, None), (0, 0, 0, None),
            (None, 0.5, None, None), (0.5, None, None, None), (-1, -2, 1, 50), (1, 3, -2, -66.67),
            (801, 800, 1, 0.13), (799, 800, -1, -0.13),
        ]:
            self.assertEqual(difference(a, b), by)
            if a != LARGE:
                self.assertEqual(percent(a, b), change, (a, b))

    def test_addresses(self):
        for text, want in {
            "127.0.0.1:8080": "http://127.0.0.1:8080", "localhost": "http://localhost", "[::1]:80": "http://[::1]:80",
            "https://a.example/x/": "https://a.example/x", "a.example": "https://a.example",
            "a.example:8443/api": "https://a.example:8443/api", "http://10.0.0.1": "http://10.0.0.1",
        }.items():
            self.assertEqual(Client(text, "k").url, want)
        for text in [
            "", "ftp://x", "http://", "http://u:p@x", "u:p@x", "http://x?y", "http://x#y", "http://x?", "http://x#",
            "http://x:y", "/x", "a b", "http://a..b", "x" * 64 + ".example",
        ]:
            with self.assertRaises(ValueError) as refused:
                Client(text, "k")
            self.assertNotIn("u:p", str(refused.exception))
        for key in ["", "a b", "a\n", "ä"]:
            with self.assertRaises(ValueError):
                Client("localhost", key)
        self.assertNotIn("secret", repr(Client("localhost", "secret")))

    def test_retry_after(self):
        self.assertEqual([retry_after(h) for h in ["7", "0", "x", "²", None]], [7, 0, None, None, None])
        later = datetime.now(timezone.utc) + timedelta(seconds=60)
        self.assertAlmostEqual(retry_after(later.strftime("%a, %d %b %Y %H:%M:%S GMT")), 60, delta=30)

    def test_days(self):
        for wrong in [datetime(2026, 3, 1), "2026-3-1", "26-03-0100"]:
            with self.assertRaisesRegex(ValueError, "is no day such as"):
                Client().ask(Question(metrics=["run_count"], start=wrong))

    def test_texts_for_lists(self):
        for wrong, says in [
            ({"metrics": "run_count"}, "metrics are needed"), ({"dimensions": "day"}, "dimensions is a list"),
            ({"order": "run_count:desc"}, "order is a list"),
            ({"filters": ["user_type=internal"]}, "filters are texts"),
            ({"filters": {"user_type": None}}, "None is no text"),
        ]:
            with self.assertRaisesRegex(ValueError, says):
                Client().ask(Question(**{"metrics": ["run_count"], "dimensions": ["day"], **wrong}))


class Servers(unittest.TestCase):
    totals = {"model": "agent_runs", "metrics": ["run_count"],
              "range": {"start": "2026-03-01", "end": "2026-03-05", "timezone": "UTC"}}

    def test_catalog_and_pages(self):
        self.assertEqual([m["name"] for m in Client().catalog()["models"]], ["agent_runs", "agent_user_activity"])
        pages = list(Client().pages({**self.totals, "dimensions": ["day"], "limit": 3}))
        self.assertEqual([[row[1] for row in page.rows] for page in pages], [[2, 1, 1], [1]])
        self.assertEqual(pages[0].as_of, pages[1].as_of)
        self.assertTrue(pages[0].request_id)

    def test_refusals(self):
        with self.assertRaises(ApiError) as refused:
            Client().query({**self.totals, "metrics": ["run_cout"]})
        self.assertRegex(str(refused.exception), r"^unknown_member at run_cout: Unknown analytics member. \(request .+\)$")
        with self.assertRaises(ApiError) as refused:
            Client(key="rl_unknown").catalog()
        self.assertEqual((refused.exception.status, refused.exception.code), (401, "unauthorized"))

    def test_waits(self):
        waits = []
        with server((429, {"Retry-After": "1"}, ""), (429, {"Retry-After": "60"}, "")) as (url, seen):
            began = time.monotonic()
            with self.assertRaises(ApiError) as refused:
                Client(url, "k", max_wait=60, on_wait=waits.append).query(self.totals)
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.assertEqual([(w.seconds, w.attempt, w.cause.status) for w in waits], [(1, 1, 429)])
        self.assertEqual((refused.exception.retry_after, refused.exception.code, len(seen)), (60, "", 2))

    def test_something_else(self):
        for body in ["<html>", "{}", "null", "[]", '{"columns":[],"rows":[[1]]}']:
            with server((200, {}, body)) as (url, _), self.assertRaises(ResponseError) as refused:
                Client(url, "k").query(self.totals)
            self.assertNotIn("None", str(refused.exception))

    def test_another_protocol(self):
        def greet():
            with listening.accept()[0] as connection:
                connection.recv(9000)
                connection.sendall(b"SSH-2.0-OpenSSH_9\x1b\r\n")

        with socket.create_server(("127.0.0.1", 0)) as listening:
            threading.Thread(target=greet).start()
            with self.assertRaises(NoAnswerError) as refused:
                Client("127.0.0.1:%d" % listening.getsockname()[1], "k", max_wait=0).query(self.totals)
        self.assertRegex(str(refused.exception), r": BadStatusLine\('SSH-2.0-OpenSSH_9\\x1b.*'\)$")

    def test_a_redirect_is_not_followed(self):
        with server() as (other, seen), server((307, {"Location": other}, "")) as (url, _):
            with self.assertRaises(ApiError) as refused:
                Client(url, "k").query(self.totals)
        self.assertEqual((refused.exception.status, len(seen)), (307, 0))

    def test_nobody(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = "127.0.0.1:%d" % listening.getsockname()[1]
        with self.assertRaisesRegex(NoAnswerError, "no answer from http://127.0.0.1:[0-9]+: .*refused"):
            Client(address, "k", on_wait=self.fail).query(self.totals)
        with server(None) as (url, _), self.assertRaisesRegex(NoAnswerError, "timed out"):
            Client(url, "k", timeout=0.05, max_wait=0).query(self.totals)

    def test_the_key_and_the_agent_are_sent(self):
        with server((500, {}, "")) as (url, seen), self.assertRaises(ApiError):
            Client(url, "k", max_wait=0, user_agent="me").query(self.totals)
        self.assertEqual((seen[0]["Authorization"], seen[0]["User-Agent"]), ("Bearer k", "me"))


if __name__ == "__main__":
    unittest.main()
