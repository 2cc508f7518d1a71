package clickhouse

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strings"
	"text/template"
)

// dataUser is the user of the embedded engine that owns the data. Its password is in
// <data>/engine/password, which only the owner of the data directory can read.
const dataUser = "runlens"

// engineSettings is what the engine's configuration files are made of. Every value is either a
// number, hexadecimal, or a path, which is escaped.
type engineSettings struct {
	layout       layout
	instance     string // asked for as macro runlens_instance
	passwordHash string // SHA-256, hexadecimal
	memoryBytes  uint64 // 0: half of the memory
	listen       string // host:port; port 0 lets the system choose
}

// configTemplate bounds an engine that shares its machine with the processes it serves: caches of
// some ten MiB instead of ClickHouse's 5 GiB, and threads for small machines. The idle time of a connection must exceed the client's (idleConnTimeout), so
// that never a request crosses the closing of its connection. The largest valid query puts
// 1 to 2 MB of parameters into its address, above ClickHouse's default of 1 MiB.
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
    <macros><runlens_instance>{{.Instance}}</runlens_instance></macros>
    <listen_host>{{.Host}}</listen_host>
    <http_port>{{.Port}}</http_port>
    <keep_alive_timeout>3600</keep_alive_timeout>
    {{if .MemoryBytes}}<max_server_memory_usage>{{.MemoryBytes}}</max_server_memory_usage>
    {{else}}<max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
    {{end}}<mark_cache_size>67108864</mark_cache_size>
    <index_mark_cache_size>16777216</index_mark_cache_size>
    <primary_index_cache_size>67108864</primary_index_cache_size>
    <uncompressed_cache_size>0</uncompressed_cache_size>
    <compiled_expression_cache_size>33554432</compiled_expression_cache_size>
    <background_pool_size>2</background_pool_size>
    <background_schedule_pool_size>4</background_schedule_pool_size>
    <max_thread_pool_size>1000</max_thread_pool_size>
</clickhouse>
`)

// usersTemplate gives the data to one user with a password. The engine's own start-up session logs
// in as "default", which therefore must have no password and so is open to everybody on this
// machine: it may only make the engine listen, and its quota is used up by the two start-up
// statements, so that nothing but constants can be asked for through it later. The data user has
// no grant on sources (file, url, remote and so on): no statement can reach out of the engine. Its
// profile takes back what `clickhouse local` sets otherwise than a server.
var usersTemplate = parse("users", `<clickhouse>
    <profiles>
        <default/>
        <data>
            <async_insert>0</async_insert>
            <implicit_select>0</implicit_select>
            <allow_introspection_functions>0</allow_introspection_functions>
        </data>
    </profiles>
    <quotas>
        <default/>
        <startup><interval><duration>2147483647</duration><queries>2</queries></interval></startup>
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
            <grants><query>GRANT SHOW, SELECT, INSERT, ALTER, CREATE, DROP, UNDROP TABLE, TRUNCATE, OPTIMIZE, CHECK, MOVE PARTITION BETWEEN SHARDS, KILL QUERY, SYSTEM, dictGet, TABLE ENGINE ON *.*</query></grants>
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
		Users, Log, Instance, PasswordHash, Host, Port string
		MemoryBytes                                    uint64
	}{escapeXML(s.layout.users()), escapeXML(s.layout.log()), s.instance, s.passwordHash, escapeXML(host), escapeXML(port), s.memoryBytes}
	for path, file := range map[string]*template.Template{s.layout.config(): configTemplate, s.layout.users(): usersTemplate} {
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

func hashPassword(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
