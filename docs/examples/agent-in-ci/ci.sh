#!/usr/bin/env bash
# Runs an agent under observer, writes reports on what it did, and fails when it left a tool call
# running.
#
#   ci.sh COMMAND [ARGUMENT...]
#
#   OBSERVER         the program                [observer]
#   OBSERVER_OUT     where log and reports go   [observer-report]
#   OBSERVER_POLICY  what is denied             [observer.toml beside this script]
#
# Ends with the command's own status where that is not 0, else with what the policy makes of the
# run: 0 passed, 1 denied, 3 not shown (no MCP traffic was seen, or not all of it).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
observer=$(command -v "${OBSERVER:-observer}")
out=${OBSERVER_OUT:-observer-report}
policy=${OBSERVER_POLICY:-$here/observer.toml}

mkdir -p "$out"
log=$out/audit.jsonl

# Only the observing needs root. The command itself runs as the user who called sudo.
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo --preserve-env)

status=0
"${as_root[@]}" "$observer" run --quiet --log "$log" -- "$@" || status=$?

# In a workflow: annotations, and the job's summary. Elsewhere: text.
told=text
[ -z "${GITHUB_ACTIONS:-}" ] || told=github

verdict=0
"$observer" report --policy "$policy" \
  --format "$told" \
  --format "html=$out/report.html" \
  --format "junit=$out/junit.xml" \
  --format "sarif=$out/observer.sarif" \
  "$log" || verdict=$?

[ "$status" = 0 ] || exit "$status"
exit "$verdict"
