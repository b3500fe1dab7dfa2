#!/usr/bin/env python3
"""Set what the observer wrote of a run against the ground truth.

    compare.py RUN_DIR [--log FILE]

RUN_DIR was written by run_host.py; the audit log is RUN_DIR/audit.jsonl unless --log names
another (one log may hold several runs: `observer watch`).  Prints one JSON object, and exits
with 0 where everything is right, 1 where something is wrong, 2 where there is nothing to compare.

Two things are compared, for each server process:
    bytes     every line of both directions: its size and its SHA-256
    verdicts  for each tools/call: its outcome and the findings about it

What a verdict has to be follows from what the server saw (`expected`): a call that was answered,
one whose cancellation came, one that lost its connection, one that was given up in silence.
"""
import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

from scenarios import SCENARIOS

GRACE = 2  # seconds that a host may take to cancel: the observer's own default
# Hosts that give themselves out for their library: nobody knows whether they call one tool after the other, and the
# same call again after 2 s may be another conversation's.
UNKNOWN = ["py-agent"]
# A call that was under way when its session ended.
TORN_DOWN = {"outcome": ["torn-down"], "rule": "torn-down-pending", "never_confirmed": ["abandoned-call"]}


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


# ------------------------------------------------------------------ ground truth

class Server:
    """One server process, as it logged itself."""

    def __init__(self, pid, log):
        self.pid, self.start = pid, log[0]["t"]
        self.lines = {"client": [(e["bytes"], e["sha256"]) for e in log if e["ev"] == "recv"],
                      "server": [(e["bytes"], e["sha256"]) for e in log if e["ev"] == "send"]}
        # Killed in the middle of something: what was under way may be missing on either side.
        self.killed = not any(e["ev"] == "eof" for e in log) or any(e["ev"] in ("signal", "send_error") for e in log)
        self.calls = []
        answers = {json.dumps(self.id_of(e)): e["t"] for e in reversed(log)
                   if e["ev"] == "send" and "method" not in (e.get("msg") or {})}
        for e in log:
            message = e.get("msg")
            if e["ev"] != "recv" or not isinstance(message, dict):
                continue
            key = json.dumps(message.get("id"))
            if message.get("method") == "tools/call":
                self.calls.append({"id": message["id"], "key": key, "at": e["t"], "cancelled": None,
                                   "what": {k: message["params"].get(k) for k in ("name", "arguments")},
                                   "answered": answers.get(key)})
            elif message.get("method") == "notifications/cancelled":
                for call in self.calls:
                    if call["key"] == json.dumps((message.get("params") or {}).get("requestId")):
                        call["cancelled"] = call["cancelled"] or e["t"]

    @staticmethod
    def id_of(entry):
        return (entry.get("msg") or entry).get("id")


def truth(folder):
    log = read_jsonl(folder / "server.jsonl")
    return [Server(pid, [e for e in log if e["pid"] == pid]) for pid in dict.fromkeys(e["pid"] for e in log)]


def expected(scenario, calls, call):
    """What the observer may say of a call: outcomes, a rule that must be found, rules that must not."""
    s = SCENARIOS[scenario]
    retried = any(other["what"] == call["what"] and call["at"] + (s.get("limit") or 99) <= other["at"]
                  and (call["answered"] or 1e12) > other["at"] for other in calls)
    if call["cancelled"] and call["cancelled"] < (call["answered"] or 1e12):
        return {"outcome": ["cancelled"], "never": ["abandoned-call"]}
    if retried:
        late = call["answered"] is not None
        return {"outcome": ["abandoned"], "rule": "abandoned-call",
                "confidence": ["confirmed"] if late else ["probable", "confirmed"]}
    if call["answered"]:
        # A host that gave up in silence, and an answer soon after: nothing need be visible.
        if s.get("limit") and call["answered"] - call["at"] > s["limit"]:
            return {"outcome": ["answered", "abandoned"]}
        return {"outcome": ["answered"], "never": ["abandoned-call"]}
    if s.get("watch", 0) > GRACE:
        return {"outcome": ["abandoned"], "rule": "abandoned-call", "confidence": ["probable", "confirmed"],
                "evidence": "key-esc"}
    if s.get("limit") or s.get("abort") or s.get("drop") or scenario == "quit":
        return {"outcome": ["torn-down", "abandoned"]}
    return dict(TORN_DOWN)


def seen_by(backend, host, want):
    """What is left of it for a backend: a relay sees no keys, and where one alone would tell that a host gave a
    call up, the end of the session is all that there is to see.  And of a host: nothing proves what an unknown one did."""
    if backend == "relay" and want.get("evidence") == "key-esc":
        return dict(TORN_DOWN)
    return {**want, "confidence": ["probable", "confirmed"]} if host in UNKNOWN and "confidence" in want else want


# --------------------------------------------------------------------- audit log

SPACE = re.compile(r"[\s,:]*")


def member_text(line, name):
    """The text of one member of the JSON object in `line`, as it is written there."""
    decoder, at = json.JSONDecoder(), line.index("{") + 1
    key = None
    while key != name:
        key, at = decoder.raw_decode(line, SPACE.match(line, at).end())
        start = SPACE.match(line, at).end()
        _, at = decoder.raw_decode(line, start)
    return line[start:at]


class Log:
    """The observer's audit log."""

    def __init__(self, path):
        self.servers, self.lines, self.gaps = {}, {}, []
        self.calls, self.findings, self.cancels, self.summary = {}, {}, set(), {}
        self.joined, self.backend = False, None
        for line in path.read_text().splitlines():
            record = json.loads(line)
            getattr(self, "on_" + record["type"], lambda *_: None)(record, line)

    def direction(self, record):
        return self.lines.setdefault((record.get("conn", 1), record["from"]), [])

    def on_header(self, record, _):
        # What went before an observer came is not its fault; one that was there has no such excuse.
        self.joined, self.backend = record["scope"]["kind"] != "run", record["backend"]

    def on_connection(self, record, _):
        if record.get("server"):
            self.servers[record.get("conn", 1)] = record["server"]["pid"]

    def on_message(self, record, line):
        text = member_text(line, "json").encode()
        self.direction(record).append((record["bytes"], hashlib.sha256(text).hexdigest()))
        message = record["json"]
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            self.cancels.add((record.get("conn", 1), json.dumps((message.get("params") or {}).get("requestId"))))

    def on_noise(self, record, _):
        self.direction(record).append((record["bytes"], None))

    def on_gap(self, record, _):
        self.gaps.append(record)

    def on_call(self, record, _):
        self.calls[record.get("conn", 1), record["from"], json.dumps(record["id"])] = record

    def on_finding(self, record, _):
        self.findings[record["finding"]] = record
        self.findings.pop(record.get("supersedes"), None)

    def on_summary(self, record, _):
        self.summary = record

    def excused(self, gap):
        return self.joined and gap["reason"] == "mid-stream"

    def about(self, conn, key):
        """The findings that stand about one request."""
        return [f for f in self.findings.values()
                if f.get("conn", 1) == conn and "id" in f and json.dumps(f["id"]) == key]

    def connection_of(self, server):
        """The connection of a server process: by its pid, or (behind a wrapper, in another PID namespace) by
        what went through."""
        mine = [conn for conn, pid in self.servers.items() if pid == server.pid]
        if not mine:
            mine = [conn for conn, side in self.lines if side == "client"
                    and starts_alike(self.lines[conn, side], server.lines["client"])]
        return mine[0] if mine else None


def same(a, b):
    """Whether two lines are one; noise in the log has no digest."""
    return a[0] == b[0] and (a[1] == b[1] or None in (a[1], b[1]))


def starts_alike(a, b):
    return all(map(same, a, b)) and bool(a) and bool(b)


# ------------------------------------------------------------------------- judge

def line_faults(log, conn, server):
    """What is wrong with the lines of one connection."""
    for gap in log.gaps:
        if gap.get("conn", 1) == conn and not log.excused(gap):
            yield "gap: %s" % json.dumps(gap)
    for side in ("client", "server"):
        seen, real = log.lines.get((conn, side), []), server.lines[side]
        if any(g.get("conn", 1) == conn and g["from"] == side and log.excused(g) for g in log.gaps):
            real = real[max(0, len(real) - len(seen)):]
        # A killed server leaves lines unread, and says of some that it is about to write them.
        if len(seen) != len(real) and not (server.killed and (len(seen) > len(real)) == (side == "client")):
            yield "from %s: %d lines seen, %d are real" % (side, len(seen), len(real))
        for n, (a, b) in enumerate(zip(seen, real)):
            if not same(a, b):
                yield "from %s, line %d: %d bytes seen, %d are real%s" % (
                    side, n + 1, a[0], b[0], ", and they differ" if a[0] == b[0] else "")
                break


def call_faults(log, conn, run, server, call):
    """What is wrong with the verdict on one call."""
    want = seen_by(log.backend, run["host"], expected(run["scenario"], server.calls, call))
    if (conn, call["key"]) in log.cancels and "torn-down" in want["outcome"]:
        want["outcome"] = want["outcome"] + ["cancelled"]  # sent, and never read
        want.pop("rule", None)
    record = log.calls.get((conn, "client", call["key"]))
    outcome = record and record["outcome"]
    if outcome not in want["outcome"]:
        yield "call %s: %s, not %s" % (call["key"], outcome, " or ".join(want["outcome"]))
    about = log.about(conn, call["key"])
    by_rule = [f for f in about if f["rule"] == want.get("rule")]
    if want.get("rule") and not by_rule:
        yield "call %s: no %s" % (call["key"], want["rule"])
    for f in by_rule:
        if f["confidence"] not in want.get("confidence", [f["confidence"]]):
            yield "call %s: %s only %s" % (call["key"], f["rule"], f["confidence"])
        if want.get("evidence") and want["evidence"] not in [e["kind"] for e in f["evidence"]]:
            yield "call %s: %s without %s" % (call["key"], f["rule"], want["evidence"])
    for f in about:
        if f["rule"] in want.get("never", []) or (
                f["rule"] in want.get("never_confirmed", []) and f["confidence"] == "confirmed"):
            yield "call %s: %s, %s" % (call["key"], f["rule"], f["confidence"])


def lost(summary):
    """Whether the kernel had to drop something; the relay has no such counters."""
    loss = summary.get("loss")
    return loss is not None and any(loss[counter] for counter in ("ring_full", "unreadable", "events_lost"))


def compare(folder, log_path):
    summary = json.loads((folder / "summary.json").read_text())
    log, faults, calls, size = Log(log_path), [], [], 0
    servers = truth(folder)
    if not any(server.calls for server in servers):
        faults.append("no tools/call reached the server: %s" % "; ".join(summary["notes"]))
    for server in servers:
        size += sum(n for side in server.lines.values() for n, _ in side)
        conn = log.connection_of(server)
        if conn is None:
            if server.lines["client"]:
                faults.append("server %d: not in the log" % server.pid)
            continue
        faults += line_faults(log, conn, server)
        for call in server.calls:
            faults += call_faults(log, conn, summary, server, call)
            record = log.calls.get((conn, "client", call["key"])) or {}
            calls.append({"id": call["id"], "outcome": record.get("outcome"),
                          "findings": ["%s (%s)" % (f["rule"], f["confidence"]) for f in log.about(conn, call["key"])]})
    if log.summary.get("complete") != (not log.gaps) or lost(log.summary):
        faults.append("the log says that it is not complete: %s" % json.dumps(log.summary))
    return {"host": summary["host"], "scenario": summary["scenario"], "server": summary["server"],
            "right": not faults, "faults": faults, "calls": calls, "bytes": size}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run_dir", type=Path)
    p.add_argument("--log", type=Path)
    opt = p.parse_args()
    try:
        result = compare(opt.run_dir, opt.log or opt.run_dir / "audit.jsonl")
    except FileNotFoundError as e:
        print("nothing to compare: %s" % e, file=sys.stderr)
        return 2
    print(json.dumps(result, indent=1))
    return 0 if result["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
