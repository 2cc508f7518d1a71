#!/usr/bin/env bash
# Runs the API over sample data: loads what is missing of it, makes a demo key once, starts the
# server and a console, and prints the console's address and requests to paste. Run it again at any time; nothing is loaded twice.
set -euo pipefail
cd "$(dirname "$0")/../.."

data=${RUNLENS_DATA_DIR:-./data}
export RUNLENS_DATA_DIR=$data
mkdir -p "$data"
chmod 700 "$data"
today=$(date -u +%F)
hour=$(date -u +%FT%H:00:00Z)
server=
console=

stop() {
    if [ -n "$console" ]; then
        kill -TERM "$console" 2>/dev/null || true
        wait "$console" || true
    fi
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" || true
    fi
}
trap stop EXIT
trap 'exit 0' INT TERM

# The server comes first: it starts the engine, and the commands below join it.
ready=$data/demo.ready
rm -f "$ready"
# In a process group of its own: Ctrl-C reaches this script, which stops the server once and waits. A person who looks
# around in the console asks more than a key may by default.
set -m
bin/runlens serve --rate-limit-per-minute 600 --ready-file "$ready" 2>"$data/server.log" &
server=$!
set +m
until [ -s "$ready" ]; do
    if ! kill -0 "$server" 2>/dev/null; then
        tail -n 5 "$data/server.log" >&2
        server=
        exit 1
    fi
    sleep 0.1
done
address=$(cat "$ready")

# The sample is not mixed with records of somebody: the store has the demo key, or nothing at all.
id=$(cut -d_ -f2 "$data/demo.key" 2>/dev/null || true)
if [ -z "$id" ] || ! bin/runlens keys list --org acme --output json 2>/dev/null | grep "$id" >/dev/null; then
    organizations=$(bin/runlens orgs list --output json)
    if [ -n "$organizations" ]; then
        cat >&2 <<EOF
The store has records or keys, and not the key that 'make run' makes, so that the sample would be mixed with them.
Unset RUNLENS_DATA_DIR, RUNLENS_CLICKHOUSE_URL and RUNLENS_CELLS, or name an empty store. ('make clean' removes ./data.)
EOF
        exit 1
    fi
    rm -f "$data/demo.until"
    (umask 077 && bin/runlens keys create --org acme --name demo --output json 2>/dev/null |
        sed -E 's/.*"key":"([^"]+)".*/\1/' >"$data/demo.key")
fi

# The sample ends today; on a later day only its new rows change anything.
if [ "$(cat "$data/demo.until" 2>/dev/null)" != "$today" ]; then
    echo "Loading sample data up to $hour"
    go run ./cmd/sampledata --until "$hour" | bin/runlens ingest -
    echo "$today" >"$data/demo.until"
fi
key=$(cat "$data/demo.key")
start=$(date -u -d "$today -29 days" +%F 2>/dev/null || date -u -v-29d +%F)

# The console's address is on its standard output once it answers.
admin=${RUNLENS_ADMIN_LISTEN:-127.0.0.1:9090}
flags=(--url "http://$address" --key-file "$data/demo.key" --dashboard deploy/demo/health.yaml)
if [ "$admin" != off ]; then
    flags+=(--admin "$admin")
fi
: >"$data/console.address"
set -m
bin/runlens console "${flags[@]}" >"$data/console.address" 2>"$data/console.log" &
console=$!
set +m
until [ -s "$data/console.address" ] || ! kill -0 "$console" 2>/dev/null; do
    sleep 0.1
done
look="See it in a browser: $(cat "$data/console.address")"
if [ ! -s "$data/console.address" ]; then
    look="The console did not start: $(tail -n 1 "$data/console.log")"
    console=
fi

cat <<EOF

runlens is running at http://$address (log: $data/server.log).

$look

Or paste one of these into another terminal:

# Runs of the last 30 days: totals
curl -s http://$address/api/v1/analytics/query \\
  -H 'Authorization: Bearer $key' \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"agent_runs","metrics":["run_count","completed_run_count","run_success_rate","unique_initiator_count"],
       "range":{"start":"$start","end":"$today","timezone":"UTC"}}'

# The same by day
curl -s http://$address/api/v1/analytics/query \\
  -H 'Authorization: Bearer $key' \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"agent_runs","metrics":["run_count","failed_run_count"],"dimensions":["day"],
       "range":{"start":"$start","end":"$today","timezone":"Europe/Stockholm"}}'

# The same from the command line, as a plot, and every user of the year in a spreadsheet
bin/runlens query --url http://$address --key-file $data/demo.key --metrics run_count,failed_run_count --dimensions day --output plot
bin/runlens query --url http://$address --key-file $data/demo.key --metrics run_count --dimensions day,user_identifier --last 366d --all -o users.xlsx

Stop with Ctrl-C.
EOF
wait "$server"
