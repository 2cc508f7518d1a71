"""Asks every question of the table of cases, each at an address of its own, and prints what came of them as JSON."""

import json
import sys
from datetime import datetime

from runlens import ApiError, Client, Question


def outcome(url, key, question, now):
    try:
        answer = Client(url, key).ask(Question(**question), now=now)
    except ValueError as error:
        return {"usage": str(error)}
    except ApiError as error:
        return {"error": {"status": error.status, "code": error.code, "param": error.param or ""}}
    return {
        "range": [answer.range.start, answer.range.end],
        "columns": [column.name for column in answer.columns],
        "rows": answer.rows,
        "notes": answer.notes,
        "more": answer.more,
    }


asked = json.load(sys.stdin)
table = json.loads(asked["table"])
now = datetime.fromisoformat(table["now"].replace("Z", "+00:00"))
cases = zip(asked["urls"], table["cases"])
json.dump([outcome(url, asked["key"], case["question"], now) for url, case in cases], sys.stdout)
