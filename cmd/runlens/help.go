package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/completion"
	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/olap/clickhouse"
)

// flagHelp has the texts of flags whose struct tags would be too long for a line. A tag names its text: help:"@listen".
var flagHelp = kong.Vars{
	// storeFlags
	"clickhouse_url": "The ClickHouse server: clickhouse://user@host:9000/database, or http(s)://host:8123/database. " +
		"Only the variable may contain a password. Without a server the command starts or joins the embedded engine.",
	"password_file": "File with the password of the server's user, instead of one in RUNLENS_CLICKHOUSE_URL.",
	"engine_lib":    "The embedded engine's library. Default: that of 'runlens engine fetch' or 'make engine'.",
	"engine_memory": fmt.Sprintf("The most memory the embedded engine may use, at least %d. Default: half of the "+
		"machine's, or of the container's.", clickhouse.MinEngineMemoryBytes),
	"data_dir": "Where the embedded engine keeps its data.",
	"cells": "File that names several ClickHouse services instead, among which organizations are divided " +
		"(deploy/cells.md).",

	// adminFlags
	"admin_token_file": "File with the token that the admin address requires, except for /healthz and /readyz. " +
		"Or set RUNLENS_ADMIN_TOKEN. Default: admin.token in the data directory, for usage, explanations and profiles only.",
	"pprof": "Serve profiles on the admin address. Default: only on a loopback address.",

	// redisFlags
	"redis_url": "A Redis that the servers share, so that the two limits a minute hold over all of them: " +
		"redis://user@host:6379/0, rediss:// for TLS. Only the variable may contain a password.",

	// pushFlags
	"ingest_listen":     "Take records at an address of its own, and not at the API's.",
	"ingest_rate_limit": "Requests with records per key in 60 seconds.",

	// databaseFlags
	"source": "The operational database: postgres://user@host:5432/database. Only the variable may contain a " +
		"password. " +
		"PGPASSWORD and PGPASSFILE work too.",
	"mapping": "File with one SELECT per kind of records, for other tables than those of 'runlens worker layout'.",

	// formatFlags
	"record":         "The kind of all records of CSV and Parquet files: agent, run or attribution.",
	"format":         "ndjson, csv or parquet. Default: by the file's name; NDJSON for other names and standard input.",
	"delimiter":      "What separates the cells of CSV: one character, or tab.",
	"null":           "An unquoted CSV cell with this text is null, like an empty one.",
	"ignore_unknown": "Ignore fields and columns that records of the kind don't have. Without it they are an error.",

	// ingest
	"ingest_files": "Files or glob patterns (quoted, ** for folders). - is standard input.",
	"rejects":      "Write rejected records to FILE, one JSON object a line. Replaced when the run ends.",
	"on_error":     "At a rejected record: continue, or stop at the first one.",

	// init
	"init_files": "Files or glob patterns (quoted) instead of --source.",
	"init_org":   "The organization of the key. Default: the only one that the store has.",
	"init_url":   "The address of the server to be, which is kept with the key.",

	// conform
	"conform_url": "Address of the server, on the same store. The command makes keys of its own.",

	// serve
	"listen":          "API address. Port 0 picks a free one.",
	"admin_listen":    "Address of health, readiness, metrics and profiles. off disables it.",
	"ready_file":      "Write the API address to FILE once requests are accepted.",
	"rate_limit":      "Requests of a key in any 60 seconds.",
	"verify_limit":    "Verifications a minute, all together, of keys that were not used in seven days.",
	"answer_cache":    "Memory for answers that are asked for again; 0 for none.",
	"org_concurrency": "Queries of one organization at once.",
	"max_connections": "Connections to the API at once. When all are open, a new one takes the place of one of the " +
		"address that holds most, never of an idle one of a client with a key at another address.",
	"max_per_address": "Connections of one client address at once; trusted proxies have no such limit. Default: half " +
		"of all, and an eighth once half are taken; at least 16.",
	"max_body_bytes": "Largest request body, in bytes.",
	"cursor_secret_file": "File with the secret that signs cursors, the same on every server. A second line is " +
		"accepted too. " +
		"Or set RUNLENS_CURSOR_SECRET. Default: the secret that the store keeps.",
	"query_timeout": "Longest time for one query.",
	"maintenance_share": "The most of one core to spend on refreshing, checking and merging, from 0 to 1. 0 turns " +
		"it off.",
	"drain_timeout": "Longest time to finish requests after a signal.",
	"tls_cert":      "Certificate chain in PEM. With --tls-key the API speaks TLS.",
	"tls_key":       "Private key in PEM. Both files are read again when they change.",
	"trusted_proxies": "Comma-separated networks of proxies. Their X-Forwarded-For says where a request comes from, " +
		"for keys with networks. They may hold any number of connections.",

	// worker
	"health_listen":   "The admin address of the server or worker.",
	"status_listen":   "The worker's admin address.",
	"worker_listen":   "Address of health, status, metrics and profiles. off disables it.",
	"poll_interval":   "Pause between two polls for changes.",
	"overlap":         "How far back every poll reads, for changes that were committed late.",
	"reconcile_every": "Pause between two full comparisons. 0 turns them off.",
	"delete_missing": "Let a full comparison delete what the source lacks, of organizations that no other worker's " +
		"source has. That includes records that were pushed, or ingested from files.",
	"delete_missing_share": "With --delete-missing: delete nothing of a kind if more than this share of its rows, " +
		"and more than 100, are missing.",

	"engine_listen": "Where the engine serves ClickHouse's HTTP protocol. Other addresses than loopback are for " +
		"containers.",

	"engine_registry": "The npm registry that has the engine. Only the variable may contain a password. Default: the " +
		"one that this binary was built with, or that npm is set to.",
	"engine_dir": "Where the library goes, in a folder of its version. Default: a folder of the user, where it is " +
		"found. For all users: lib/runlens beside the folder of the binary, such as /usr/lib/runlens.",
	"engine_package": "A packed package that is already here, as by npm pack, instead of one from a registry.",

	"move_to": "The database that gets the store, made if it does not exist: https://user@host:8443/database, or " +
		"http:// with port 8123.",
	"move_password": "File with the password of the user in --to.",
	"backup_lists":  "Only keys, secrets, the list of purged people and the audit log: small, for after each purge.",
	"restore_lists": "The latest backup, of which keys, secrets, the list of purged people and the audit log are " +
		"restored.",

	// keys
	"key_expires": "When the key expires: 90d, 36h, a day such as 2027-01-31 (its first instant in UTC), " +
		"or an RFC 3339 instant. Default: never.",
	"key_networks": "Comma-separated networks from which the key is valid, such as 10.0.0.0/8,2001:db8::/32. " +
		"Default: all.",
	"key_agent": "The key sees only runs, and records of runs, of the agent with this id (a UUID, no slug). Repeat it " +
		"for more of them.",
	"key_person": "The key sees only runs that this person started, and what is recorded of the person: an email " +
		"address or a phone number. Repeat it for more of them.",
	"key_domain": "The same for all people with an email address of this domain. Repeat it for more of them.",
	"key_days": "The key sees the last N whole days in UTC, and today. A question that begins earlier is refused. " +
		"Default: all.",
	"key_min_people":  "The key sees no person, and only groups with N different people or more. Default: all.",
	"key_scopes":      "Comma-separated scopes: analytics:read asks, ingest:write pushes records. Empty for none.",
	"overlap_key":     "How long the replaced key stays valid, such as 36h or 7d. 0s ends it at once.",
	"rotated_expires": "When the new key expires, as for keys create. Required if the replaced key expires.",

	"usage_by": "What questions are summed up by: organization, key, shape (model, members, operators of filters, days, " +
		"timezone and limit), question (organization and shape) or refusal (code and the limit that was hit).",

	// verify
	"verify_files": "Files or glob patterns, instead of --source.",
	"subset": "The source has only some of the records: more records, or newer versions, in the store are no " +
		"difference.",
	"recheck_after": "With --source: compare again after this time what differs, in case it was being copied.",

	// serverFlags, login and mcp
	"api_url": "The API. Address and key come each from a flag, else a variable, else the profile; the address else is " +
		"http://127.0.0.1:8080.",
	"profile": "The address and the key that 'runlens login' kept under this name; as a flag they come before " +
		"variables. Default: default. The key goes to this address only.",
	"login_url":      "The API.",
	"login_key_file": "The API key. Or set RUNLENS_API_KEY, type it when asked, or pipe it in.",
	"mcp_listen": "Serve streamable HTTP on this loopback address instead of standard input and output. Port 0 " +
		"picks a free one. Callers send the API key as a bearer token.",

	// console
	"console_listen": "The loopback address of the console. Port 0 picks a free one.",
	"dashboard": "A dashboard, besides those in ~/.config/runlens/dashboards. May be repeated; the first one is the " +
		"first page.",
	"export": "Write the dashboard as a page of its own, which needs no server and runs no script, and end.",
	"console_share": "Another address, for links that show others a dashboard until they end, and nothing else. It " +
		"speaks plain HTTP: beyond a network that you trust, put a proxy with TLS before it.",
	"console_admin": "Comma-separated admin addresses of servers and workers, for the operator's page. Their token " +
		"comes from RUNLENS_ADMIN_TOKEN, --admin-token-file or, on this machine, their data directory.",
	"token_dir": "The data directory of the servers on this machine, whose admin.token --admin sends.",
	// query
	"saved": "A saved question, or a file such as @./weekly.yaml. Flags beside it win.",
	"save":  "Save the question as a YAML file of this name, once it is answered.",
	"file": "Write to a file, which is replaced when all rows are there; - is standard output. Its ending names the " +
		"format if --output does not.",
	"spreadsheet": "CSV for spreadsheets: text such as +15550100004, 007 or =1+1 stays text. Other programs read " +
		"such text as a formula.",
	"output": "table, csv, json (one document), ndjson (an object a row), parquet, xlsx, markdown or plot. " +
		"Default: by the ending of -o, else table.",
	"filter": "Keep rows with this value; several separated by commas, one that holds a comma in double " +
		"quotes. May be repeated.",
	"start": "First day, YYYY-MM-DD. Default: 29 days before --end.",
	"last": "Instead of --start: so many days up to --end, or calendar weeks or months with that of --end " +
		"as the last one.",
	"limit":      "The most rows, of each week or month with --grain.",
	"grain":      "Ask for every week or month by itself, so that distinct counts are exact.",
	"week_start": "First day of a week.",
	"compare": "Beside every metric its value in the period before (previous) or a year earlier (year), the " +
		"difference, and the change in percent. Days that are not over are not compared.",
	"weekdays": "Compare with the same weekdays: previous is whole weeks before, year is 52 weeks.",
	"fill": "Add the days without data: counts are 0, rates empty. The rows come day by day within the other " +
		"dimensions.",
	"fail_if": "Exit with code 4 if this holds for a row; <, <=, >, >=, == or !=. An empty value is compared with " +
		"nothing. May be repeated.",
	"min_count": "--fail-if leaves out rows whose first metric that counts, such as run_count, is less than this.",
	"on_change": "FILE keeps for which rows --fail-if held. Only those for which it did not hold before are told, and " +
		"exit with code 4; those for which it no longer holds are told as resolved. Rows that --limit leaves out stay as " +
		"they were.",
}

// tagWords are parts of struct tags that would be too long for a line, or are needed elsewhere too.
var tagWords = kong.Vars{
	"queries":     strconv.Itoa(usualQueries),
	"connections": strconv.Itoa(usualConnections),

	"formats":  strings.Join(output.Formats, ","),
	"shells":   strings.Join(completion.Shells, ","),
	"weekdays": "monday,tuesday,wednesday,thursday,friday,saturday,sunday",
}

// grammar is what a command line is parsed into: the command that its first word names, since all of them take 20 ms to
// prepare, or all where it names none.
func grammar(words []string) any {
	for field := range reflect.TypeFor[cli]().Fields() {
		if len(words) > 0 && words[0] == strings.ToLower(field.Name) {
			return reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface()
		}
	}
	return &cli{}
}

// newParser parses command lines into a grammar.
func newParser(grammar any, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammar, append([]kong.Option{
		kong.Name("runlens"),
		kong.Description("Exact analytics over agent runs, from ClickHouse, over HTTP.\n\n" +
			"Flags win over variables of the same names, such as RUNLENS_LISTEN. Results go to standard output, logs and " +
			"progress to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 finished, but some records were " +
			"rejected, 4 a threshold of query --fail-if was crossed.\n\n" +
			"Example:\n  runlens serve --data-dir ./data"),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(describe),
		tagWords,
	}, options...)...)
}

// describe returns the help of a flag or an argument with its default and its environment variable.
func describe(value *kong.Value) string {
	text, notes := value.Help, []string(nil)
	if name, found := strings.CutPrefix(text, "@"); found {
		text = flagHelp[name]
	}
	if value.Flag != nil && value.HasDefault && value.Default != "" && !value.IsBool() {
		notes = append(notes, "default "+value.Default)
	}
	for _, name := range value.Tag.Envs {
		notes = append(notes, "$"+name)
	}
	if len(notes) == 0 {
		return text
	}
	return text + " (" + strings.Join(notes, ", ") + ")"
}
