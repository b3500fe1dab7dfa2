"""Reads the reports on some logs with parsers that are not ours, and compares them.

    readers.py FOLDER      with report.json, .xml, .sarif, .csv and .trace of the same logs

Ends with 0 where all of them are well-formed and say the same, else with a traceback.
"""

import csv
import json
import pathlib
import sys

import jsonschema
import junitparser

HERE = pathlib.Path(__file__).parent


def junit(path, summary):
    report = junitparser.JUnitXml.fromfile(str(path))
    suites = list(report)
    assert [suite.name for suite in suites] == [log["log"] for log in summary["logs"]]
    for suite, log in zip(suites, summary["logs"]):
        cases = list(suite)
        assert suite.tests == len(cases) and len({case.name for case in cases}) == len(cases)
        failed = {
            case.name
            for case in cases
            for result in case.result
            if isinstance(result, junitparser.Failure)
        }
        denied = {
            one["subject"] for one in log["policy"]["objections"] if one["level"] == "deny"
        }
        assert failed == denied, (failed, denied)
        errors = [
            case.name
            for case in cases
            for result in case.result
            if isinstance(result, junitparser.Error)
        ]
        lacking = log["policy"]["missing"] or log["faults"]
        assert errors == (["coverage"] if lacking else []), errors


def sarif(path, summary):
    document = json.loads(path.read_text("utf-8"))
    schema = json.loads((HERE / "sarif-schema-2.1.0.json").read_text("utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    faults = [f"{list(fault.path)}: {fault.message[:200]}" for fault in validator.iter_errors(document)]
    assert not faults, "\n".join(faults)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    found = [one["rule"] for log in summary["logs"] for one in log["findings"]]
    assert [result["ruleId"] for result in run["results"]] == found


def calls(path, summary):
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    for log in summary["logs"]:
        outcomes = {}
        for row in rows:
            if row["log"] == log["log"]:
                assert None not in row and None not in row.values(), row
                outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + 1
        assert outcomes == {word: n for word, n in log["calls"].items() if n}, outcomes


def trace(path, summary):
    """The fields that the Trace Event Format asks for, phase by phase."""
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    named = {
        event["pid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "process_name"
    }
    open_slices, slices = {}, 0
    for event in events:
        for field, kind in [("name", str), ("cat", str), ("ph", str), ("ts", int), ("pid", int)]:
            assert isinstance(event[field], kind), event
        assert event["ts"] >= 0 and event["pid"] in named, event
        key = (event["cat"], event.get("id"))
        if event["ph"] == "b":
            assert event["id"] and key not in open_slices, event
            open_slices[key] = event
            slices += 1
        elif event["ph"] == "e":
            begun = open_slices.pop(key)
            assert begun["ts"] <= event["ts"] and begun["pid"] == event["pid"], event
        elif event["ph"] == "i":
            assert event["s"] == "p", event
        else:
            assert event["ph"] == "M", event
    assert not open_slices, open_slices
    assert slices == 2 * sum(sum(log["calls"].values()) for log in summary["logs"])
    for log in summary["logs"]:
        for connection in log["connections"]:
            server = connection["server"]["name"]
            assert server is None or any(server in name for name in named.values()), server


def main():
    folder = pathlib.Path(sys.argv[1])
    summary = json.loads((folder / "report.json").read_text("utf-8"))
    for read, name in [(junit, "xml"), (sarif, "sarif"), (calls, "csv"), (trace, "trace")]:
        read(folder / f"report.{name}", summary)


main()
