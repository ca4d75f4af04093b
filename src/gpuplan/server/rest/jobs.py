"""Jobs in SQLite: what was acknowledged is on the disk, and survives whatever ends the server."""

import json
import sqlite3
import threading
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import time
from typing import Any, NamedTuple
from uuid import uuid4

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, owner TEXT NOT NULL,
    verb TEXT NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL, key TEXT,
    state TEXT NOT NULL, result TEXT, error TEXT,
    created_s REAL NOT NULL, started_s REAL, ended_s REAL, UNIQUE (owner, key));
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, n);
CREATE INDEX IF NOT EXISTS by_digest ON jobs (owner, digest, state);
CREATE TABLE IF NOT EXISTS saved (
    owner TEXT NOT NULL, name TEXT NOT NULL, job TEXT NOT NULL, address TEXT NOT NULL,
    created_s REAL NOT NULL, PRIMARY KEY (owner, name));
"""
COLUMNS = (
    "n, id, owner, verb, body, digest, key, state, result, error, created_s, started_s, ended_s"
)
OPEN, ENDED = ("queued", "running"), ("done", "failed", "cancelled")
QUICK, SHEET = "+quick", "+sheet"  # answers to a hand on a slider, and to a page
KEPT_S = {QUICK: 86400.0, SHEET: 30 * 86400.0}  # unless they are saved; others stay
N_USUAL = 20  # jobs that tell how long a verb usually takes


class Job(NamedTuple):
    """One question and what became of it."""

    n: int
    id: str
    owner: str
    verb: str
    body: str
    digest: str
    key: str | None
    state: str  # queued, running, done, failed, cancelled
    result: str | None
    error: str | None
    created_s: float
    started_s: float | None
    ended_s: float | None

    @property
    def is_ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ENDED


class SavedPlan(NamedTuple):
    """A plan that was kept under a name: its job, and the address of the page that asked it."""

    name: str
    job: str
    address: str
    created_s: float


def digest_of(verb: str, body: Mapping[str, Any], version: str) -> str:
    """The same question to the same program has the same digest."""
    text = json.dumps([verb, body, version], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


class JobStore:
    """All jobs; every call is one transaction, whole or not at all."""

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.RLock()
        self.stages: dict[str, str] = {}  # of jobs that run now, by their id
        self._base = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=FULL")
        self._base.executescript(SCHEMA)
        # What ran when the server ended runs again: it was acknowledged.
        self._write("UPDATE jobs SET state='queued', started_s=NULL WHERE state='running'")
        self._forget_shown(time())
        self.queued = threading.Condition()

    def _forget_shown(self, now_s: float) -> None:
        """Answers that only pages show are made again when they are asked for again."""
        for form, kept_s in KEPT_S.items():
            text = "DELETE FROM jobs WHERE verb LIKE ? AND ended_s < ?"
            unsaved = " AND id NOT IN (SELECT job FROM saved)"
            self._write(text + unsaved, f"%{form}", now_s - kept_s)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    def add(
        self, owner: str, verb: str, body: Mapping[str, Any], digest: str, key: str | None = None
    ) -> Job:
        """A new job; the one that the owner's key names, or an equal one that is done or runs."""
        with self._lock:
            known = self.keyed(owner, key) or self.answered(owner, digest)
            if known is None and key is None:
                known = self._one("owner=? AND digest=? AND state IN (?,?)", owner, digest, *OPEN)
            if known is not None and (key is None or known.key == key):
                return known
            found = uuid4().hex
            fields = (found, owner, verb, json.dumps(body), digest, key, "queued", time())
            self._write(
                "INSERT INTO jobs (id, owner, verb, body, digest, key, state, created_s)"
                " VALUES (?,?,?,?,?,?,?,?)",
                *fields,
            )
            if known is not None:  # an equal question under a new key
                self.end(found, "done", result=known.result)
        with self.queued:
            self.queued.notify_all()
        job = self.get(found)
        assert job is not None
        return job

    def keyed(self, owner: str, key: str | None) -> Job | None:
        """The owner's job of this idempotency key."""
        return None if key is None else self._one("owner=? AND key=?", owner, key)

    def answered(self, owner: str, digest: str) -> Job | None:
        """A finished job of the owner with the same question."""
        return self._one("owner=? AND digest=? AND state='done'", owner, digest)

    def get(self, job_id: str) -> Job | None:
        """The job of this id."""
        return self._one("id=?", job_id)

    def page(self, owner: str, before: int | None, limit: int) -> list[Job]:
        """The owner's jobs, newest first."""
        text = f"SELECT {COLUMNS} FROM jobs WHERE owner=? AND n<? ORDER BY n DESC LIMIT ?"
        with self._lock:
            rows = self._base.execute(text, (owner, before or 2**62, limit)).fetchall()
        return [Job(*row) for row in rows]

    def n_waiting(self, owner: str | None = None) -> int:
        """Jobs that nobody has begun, of one owner or of all."""
        text = "SELECT count(*) FROM jobs WHERE state='queued'"
        with self._lock:
            if owner is None:
                return int(self._base.execute(text).fetchone()[0])
            return int(self._base.execute(f"{text} AND owner=?", (owner,)).fetchone()[0])

    def n_ahead(self, job: Job) -> int:
        """Jobs that wait before this one."""
        text = "SELECT count(*) FROM jobs WHERE state='queued' AND n<?"
        with self._lock:
            return int(self._base.execute(text, (job.n,)).fetchone()[0])

    def usual_s(self, verb: str) -> float | None:
        """Median of how long the latest jobs of a verb took; None: there was none."""
        text = (
            "SELECT ended_s - started_s FROM jobs WHERE verb=? AND state='done'"
            " AND started_s IS NOT NULL ORDER BY n DESC LIMIT ?"
        )
        with self._lock:
            found = self._base.execute(text, (verb, N_USUAL)).fetchall()
        return median(row[0] for row in found) if found else None

    def save(self, owner: str, saved: SavedPlan) -> None:
        """Keep a plan under a name; an older one of that name gives way."""
        text = "INSERT OR REPLACE INTO saved (owner, name, job, address, created_s)"
        self._write(text + " VALUES (?,?,?,?,?)", owner, *saved)

    def saved(self, owner: str) -> list[SavedPlan]:
        """The owner's saved plans, newest first."""
        text = "SELECT name, job, address, created_s FROM saved WHERE owner=?"
        with self._lock:
            rows = self._base.execute(f"{text} ORDER BY created_s DESC", (owner,)).fetchall()
        return [SavedPlan(*row) for row in rows]

    def forget(self, owner: str, name: str) -> None:
        """Take a plan off the list of saved ones; its job stays."""
        self._write("DELETE FROM saved WHERE owner=? AND name=?", owner, name)

    def take(self, *, is_quick: bool | None = None) -> Job | None:
        """The oldest waiting job, from now on running; None: nothing waits.

        Where a worker is kept for quick ones it takes those alone, and the others the others.
        """
        lanes = {
            None: "",
            True: f" AND verb LIKE '%{QUICK}'",
            False: f" AND verb NOT LIKE '%{QUICK}'",
        }
        with self._lock:
            job = self._one(f"state='queued'{lanes[is_quick]} ORDER BY n")
            if job is not None:
                self._write(
                    "UPDATE jobs SET state='running', started_s=? WHERE id=?", time(), job.id
                )
            return job

    def end(
        self, job_id: str, state: str, *, result: str | None = None, error: str | None = None
    ) -> None:
        """The job's last state; what has ended stays as it is."""
        text = "UPDATE jobs SET state=?, result=?, error=?, ended_s=? WHERE id=?"
        open_states = " AND state IN ('queued','running')"
        self._write(text + open_states, state, result, error, time(), job_id)

    def _one(self, where: str, *values: object) -> Job | None:
        with self._lock:
            text = f"SELECT {COLUMNS} FROM jobs WHERE {where} LIMIT 1"
            row = self._base.execute(text, values).fetchone()
        return None if row is None else Job(*row)

    def _write(self, text: str, *values: object) -> None:
        with self._lock:
            self._base.execute(text, values)
