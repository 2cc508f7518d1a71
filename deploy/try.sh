#!/usr/bin/env bash
# Runs what deploy/compose.yaml runs where no containers run: a PostgreSQL with a sample writer, a server, a worker, and
# a Prometheus if one is on the path. Ctrl-C ends all. The embedded engine is the ClickHouse, unless
# RUNLENS_CLICKHOUSE_URL names one; nothing else stays. With --check it sees them work together, says so and ends.
set -euo pipefail
cd "$(dirname "$0")/.."

check=${1:-}
case $check in
'' | --check) ;;
*) echo "usage: deploy/try.sh [--check]" >&2; exit 2 ;;
esac
# The address of a port that is free now.
free() {
    local port
    while port=$((20000 + RANDOM % 10000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "127.0.0.1:$port"
}
if [ -n "$check" ]; then
    export RUNLENS_LISTEN=127.0.0.1:0
    admin=$(free) worker_admin=$(free) prometheus_address=$(free)
else
    admin=127.0.0.1:9090 worker_admin=127.0.0.1:9091 prometheus_address=127.0.0.1:9095
fi
data=$(mktemp -d)
export RUNLENS_DATA_DIR=$data

processes=()
stop() {
    local status=$? i
    for ((i = ${#processes[@]} - 1; i >= 0; i--)); do
        kill -TERM "${processes[i]}" 2>/dev/null || true
        wait "${processes[i]}" 2>/dev/null || true
    done
    rm -rf "$data"
    exit "$status"
}
trap stop EXIT
trap 'exit 0' INT TERM

# start NAME COMMAND… runs a process in a group of its own, so that Ctrl-C reaches this script alone.
start() {
    local name=$1; shift
    set -m
    "$@" >"$data/$name.out" 2>"$data/$name.log" &
    processes+=($!)
    set +m
}
# alive fails, with the end of a log, unless all processes run.
alive() {
    local i names=(postgres serve worker prometheus)
    for i in "${!processes[@]}"; do
        kill -0 "${processes[i]}" 2>/dev/null || { tail -n 5 "$data/${names[i]}.log" >&2; return 1; }
    done
}
# until_true COMMAND… waits for it while all processes run, a minute at most.
until_true() {
    local deadline=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do
        alive
        [ $SECONDS -lt $deadline ] || { echo "after a minute this still fails: $*" >&2; return 1; }
        sleep 0.2
    done
}

go build -o bin/samplesource ./cmd/samplesource
start postgres bin/samplesource deploy/compose/writer.sql
until_true test -s "$data/postgres.out"
RUNLENS_SOURCE=$(cat "$data/postgres.out")
export RUNLENS_SOURCE

start serve env RUNLENS_ADMIN_LISTEN="$admin" bin/runlens serve --ready-file "$data/ready"
until_true test -s "$data/ready"
url=http://$(cat "$data/ready")
start worker env RUNLENS_ADMIN_LISTEN="$worker_admin" bin/runlens worker

if command -v prometheus >/dev/null; then
    sed -e "s/serve:9090/$admin/" -e "s/worker:9091/$worker_admin/" -e "s|/run/secrets/admin_token|$data/admin.token|" \
        deploy/prometheus/prometheus.yml >"$data/prometheus.yml"
    cp deploy/prometheus/alerts.yml "$data/"
    start prometheus prometheus --config.file="$data/prometheus.yml" --storage.tsdb.path="$data/prometheus" \
        --web.listen-address="$prometheus_address"
fi

question=(--metrics run_count,completed_run_count --dimensions agent_id --last 7d)
key=$data/key
bin/runlens keys create --org acme --output json 2>"$data/keys.log" | sed -E 's/.*"key":"([^"]+)".*/\1/' >"$key"

if [ -n "$check" ]; then
    until_true bin/runlens health --admin-listen "$admin"
    until_true bin/runlens health --admin-listen "$worker_admin"
    # A run that the writer began is counted.
    until_true bin/runlens query --url "$url" --key-file "$key" --metrics run_count --fail-if 'run_count < 1'
    bin/runlens query --url "$url" --key-file "$key" "${question[@]}" >"$data/question.out"
    echo "PostgreSQL, writer, worker and server work together"
    if [ ${#processes[@]} = 4 ]; then
        until_true curl -fsS "http://$prometheus_address/-/ready"
        for job in runlens-serve runlens-worker; do
            seen() { curl -fsS "http://$prometheus_address/api/v1/query" --data-urlencode "query=up{job='$job'} == 1" |
                grep -q '"value"'; }
            until_true seen
        done
        echo "Prometheus sees server and worker"
    else
        echo "no prometheus is on the path: its part was not tried"
    fi
    alive
    exit 0
fi

cat <<EOF

The API answers at $url, and runs are counted a second after they begin:

bin/runlens query --url $url --key-file $key ${question[*]}

Worker: bin/runlens worker status --admin-listen $worker_admin
Logs:   $data/*.log
EOF
[ ${#processes[@]} = 3 ] || echo "Prometheus: http://$prometheus_address"
echo "Stop with Ctrl-C."
while alive; do
    wait -n "${processes[@]}" 2>/dev/null || true
done
exit 1
