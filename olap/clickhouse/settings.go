package clickhouse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net"
	"strings"
	"text/template"
)

// dataUser is the user of the embedded engine that owns the data. Its password is in
// <data>/engine/password, which only the owner of the data directory can read.
const dataUser = "runlens"

// engineSettings is what the engine's configuration files are made of. Every value is a number, hexadecimal or
// base64, or a path, which is escaped.
type engineSettings struct {
	layout      layout
	challenge   challenge
	password    string // of the data user
	memoryBytes uint64 // 0: half of the memory
	listen      string // host:port; port 0 lets the system choose
}

// configTemplate bounds an engine that shares its machine with the processes it serves: caches of some ten MiB
// instead of ClickHouse's 5 GiB, and threads for small machines. The idle time of a connection must exceed the
// client's (idleConnTimeout), so that never a request crosses the closing of its connection. The largest valid
// query puts nearly 1 MiB of parameters into its address, which is ClickHouse's default limit. A table that finds the
// pool of merges and mutations full tries again after 0.1 s and more, without the random time of up to a second that
// ClickHouse adds: a purge would spend it after every four parts. How much memory the process has is read twice a
// second instead of twenty times, which was a fifth of what an engine uses that has nothing to do. It is that of the
// process, not of its control group: servers, workers and whatever else runs in the same container, unit or terminal
// would use up what the engine may have.
//
// The handlers are all that the port answers, and there is no default one: /ping, /play and the rest do not exist. The
// first answers the challenge. The second takes statements, of the data user only: it requires that user's own
// Authorization header, so nobody can query as "default", or without credentials.
//
// Two loggers are silent: on every statement that fails or is cancelled, executeQuery writes its text with the values
// in place of the parameters, and DynamicQueryHandler writes the exception, which may quote them. A log outlives a
// purge. Whoever sent the statement has the exception as its answer. (query_masking_rules do nothing in this engine.)
var configTemplate = parse("config", `<clickhouse>
    <users_config>{{.Users}}</users_config>
    <logger>
        <log>{{.Log}}</log>
        <size>10M</size>
        <count>1</count>
        <levels>
            <logger><name>executeQuery</name><level>none</level></logger>
            <logger><name>DynamicQueryHandler</name><level>none</level></logger>
        </levels>
    </logger>
    <http_handlers>
        <rule>
            <url>/{{.Instance}}</url>
            <methods>GET</methods>
            <handler><type>static</type><status>200</status><response_content>{{.Proof}}</response_content></handler>
        </rule>
        <rule>
            <headers><Authorization>{{.Authorization}}</Authorization></headers>
            <handler><type>dynamic_query_handler</type><query_param_name>query</query_param_name></handler>
        </rule>
    </http_handlers>
    <backups><allowed_path>{{.Backups}}</allowed_path></backups>
    <listen_host>{{.Host}}</listen_host>
    <http_port>{{.Port}}</http_port>
    <keep_alive_timeout>3600</keep_alive_timeout>
    <max_connections>{{.Connections}}</max_connections>
    <max_concurrent_queries>{{.ConcurrentQueries}}</max_concurrent_queries>
    {{if .MemoryBytes}}<max_server_memory_usage>{{.MemoryBytes}}</max_server_memory_usage>
    {{else}}<max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
    {{end}}<mark_cache_size>67108864</mark_cache_size>
    <index_mark_cache_size>16777216</index_mark_cache_size>
    <primary_index_cache_size>67108864</primary_index_cache_size>
    <uncompressed_cache_size>0</uncompressed_cache_size>
    <compiled_expression_cache_size>33554432</compiled_expression_cache_size>
    <background_pool_size>2</background_pool_size>
    <background_schedule_pool_size>4</background_schedule_pool_size>
    <background_processing_pool_task_sleep_seconds_when_no_work_random_part>0
    </background_processing_pool_task_sleep_seconds_when_no_work_random_part>
    <max_thread_pool_size>1000</max_thread_pool_size>
    <memory_worker_period_ms>500</memory_worker_period_ms>
    <memory_worker_use_cgroup>0</memory_worker_use_cgroup>
</clickhouse>
`)

// usersTemplate gives the data to one user with a password. The engine's own start-up session logs
// in as "default", which therefore must have no password: it may only make the engine listen, its quota is used up by
// the start-up statement, and no handler of the port lets it in.
//
// The data user has what migrations, writes, questions and tests need, and nothing that reaches out of the engine: no
// sources (file, url, remote and so on), no table engine but those that keep their rows in the data directory, none of
// the BACKUP, FREEZE and FETCH kind, no functions, dictionaries or named collections, and of SYSTEM only what stops
// merges. A table cannot name a disk of its own, since a disk may lie on another host or anywhere in the file system.
// RESTORE needs no grant here to try another host, but does not try twice. The profile also revokes what `clickhouse
// local` sets otherwise than a server. What grants do not cover in this build is confined's part.
var usersTemplate = parse("users", `<clickhouse>
    <profiles>
        <default/>
        <data>
            <async_insert>0</async_insert>
            <implicit_select>0</implicit_select>
            <backup_restore_s3_retry_attempts>0</backup_restore_s3_retry_attempts>
            <allow_introspection_functions>0</allow_introspection_functions>
            <constraints><merge_tree_disk><readonly/></merge_tree_disk></constraints>
        </data>
    </profiles>
    <quotas>
        <default/>
        <startup><interval><duration>2147483647</duration><queries>1</queries></interval></startup>
    </quotas>
    <users>
        <default>
            <password></password>
            <networks><ip>127.0.0.1</ip></networks>
            <profile>default</profile>
            <quota>startup</quota>
            <grants><query>GRANT SYSTEM LISTEN ON *.*</query></grants>
        </default>
        <`+dataUser+`>
            <password_sha256_hex>{{.PasswordHash}}</password_sha256_hex>
            <networks><ip>::/0</ip></networks>
            <profile>data</profile>
            <quota>default</quota>
            <grants>
                <query>GRANT SHOW DATABASES, SHOW TABLES, SHOW COLUMNS, SELECT, INSERT ON *.*</query>
                <query>GRANT CREATE DATABASE, CREATE TABLE, CREATE VIEW ON *.*</query>
                <query>GRANT DROP DATABASE, DROP TABLE, DROP VIEW, TRUNCATE, OPTIMIZE ON *.*</query>
                <query>GRANT ALTER UPDATE, ALTER DELETE, ALTER COLUMN, ALTER INDEX, ALTER PROJECTION ON *.*</query>
                <query>GRANT ALTER CONSTRAINT, ALTER TTL, ALTER MATERIALIZE TTL, ALTER SETTINGS ON *.*</query>
                <query>GRANT ALTER VIEW MODIFY QUERY ON *.*</query>
                <query>GRANT KILL QUERY, SYSTEM MERGES ON *.*</query>
                <query>GRANT BACKUP, CHECK ON *.*</query>
                <query>GRANT TABLE ENGINE ON MergeTree</query>
                <query>GRANT TABLE ENGINE ON ReplacingMergeTree</query>
                <query>GRANT TABLE ENGINE ON AggregatingMergeTree</query>
                <query>GRANT TABLE ENGINE ON CollapsingMergeTree</query>
            </grants>
        </`+dataUser+`>
    </users>
</clickhouse>
`)

func parse(name, text string) *template.Template {
	return template.Must(template.New(name).Parse(text))
}

// write puts the engine's two configuration files in place.
func (s engineSettings) write() error {
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return err
	}
	values := struct {
		Users, Log, Backups         string
		Host, Port                  string
		Authorization, PasswordHash string
		Instance, Proof             string
		MemoryBytes                 uint64
		Connections                 int
		ConcurrentQueries           int
	}{
		Users: escapeXML(s.layout.users()), Log: escapeXML(s.layout.log()), Backups: escapeXML(s.layout.backups()),
		Host: escapeXML(host), Port: escapeXML(port),
		Authorization: basicAuthorization(dataUser, s.password), PasswordHash: hashPassword(s.password),
		Instance: s.challenge.Instance, Proof: s.challenge.Proof,
		MemoryBytes: s.memoryBytes,
		Connections: embeddedConnections, ConcurrentQueries: embeddedConcurrentQueries,
	}
	for path, file := range map[string]*template.Template{s.layout.config(): configTemplate,
		s.layout.users(): usersTemplate} {
		var text strings.Builder
		if err := file.Execute(&text, values); err != nil {
			return err
		}
		if err := writeFileAtomic(path, []byte(text.String())); err != nil {
			return err
		}
	}
	return nil
}

// basicAuthorization is the Authorization header of HTTP's basic authentication (RFC 7617), letter by letter as
// clients send it.
func basicAuthorization(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func hashPassword(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
