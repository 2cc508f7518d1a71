package clickhouse_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
)

// An outside is what statements must not reach: a port, a file that any user can read, and a folder that any can
// write to.
type outside struct {
	addr, dir, file string
	visits          atomic.Int64 // connections to addr
}

const treasure = "what only the file holds"

func newOutside(t *testing.T) *outside {
	t.Helper()
	dir, err := os.MkdirTemp("", "runlens-outside-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &outside{dir: dir, file: filepath.Join(dir, "file.csv")}
	if err := os.WriteFile(o.file, []byte(treasure+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	o.addr = listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.visits.Add(1)
			conn.Close()
		}
	}()
	return o
}

// expectRefused executes statements in which ADDR, DIR and FILE are replaced by the outside, and expects each to fail
// and to leave no trace.
func (o *outside) expectRefused(t *testing.T, s *clickhouse.Server, statements []string) {
	t.Helper()
	names := strings.NewReplacer("ADDR", o.addr, "DIR", o.dir, "FILE", o.file)
	for _, statement := range statements {
		statement = names.Replace(statement)
		answer, err := execute(s, statement)
		if err == nil || strings.Contains(answer+err.Error(), treasure) {
			t.Errorf("%s: answers %q, %v", statement, answer, err)
		}
		if n := o.visits.Swap(0); n != 0 {
			t.Errorf("%s: connected %d times", statement, n)
		}
		if entries, err := os.ReadDir(o.dir); err != nil || len(entries) != 1 {
			t.Fatalf("%s: the folder holds %v, %v", statement, entries, err)
		}
	}
	if !works(s) {
		t.Error("the engine does not answer any more")
	}
}

// execute sends the statement with the server's own pool and returns the first value it answers, if there is one.
func execute(s *clickhouse.Server, statement string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows, err := s.Conn().Query(ctx, statement)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&answer)
	}
	return answer, errors.Join(err, rows.Err())
}

// dictionary and tableOn return statements that make a dictionary with the source, a table on the disk.
func dictionary(source string) string {
	return "CREATE DICTIONARY u (s String) PRIMARY KEY s SOURCE(" + source + ") LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)"
}

func tableOn(disk string) string {
	return "CREATE TABLE u (s String) ENGINE = MergeTree ORDER BY s SETTINGS disk = " + disk
}

// Not even the user of the data can reach out of the engine.
func TestStatementsReachNothingOutside(t *testing.T) {
	s := open(t, config(dataDir(t)))
	for _, statement := range []string{
		"CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s",
		"INSERT INTO t VALUES ('x')",
	} {
		if err := s.Conn().Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	statements := []string{
		// Table functions.
		"SELECT * FROM file('FILE', LineAsString)",
		"SELECT * FROM fileCluster('default', 'FILE', LineAsString)",
		"INSERT INTO FUNCTION file('DIR/new', LineAsString) SELECT 'x'",
		"SELECT * FROM url('http://ADDR/', LineAsString)",
		"INSERT INTO FUNCTION url('http://ADDR/', LineAsString) SELECT 'x'",
		"SELECT * FROM s3('http://ADDR/bucket/key', LineAsString)",
		"SELECT * FROM gcs('http://ADDR/bucket/key', LineAsString)",
		"SELECT * FROM hdfs('hdfs://ADDR/x', LineAsString)",
		"SELECT * FROM azureBlobStorage('http://ADDR/a', 'c', 'p', 'n', 'a2V5', 'CSV')",
		"SELECT * FROM iceberg('http://ADDR/bucket/table')",
		"SELECT * FROM deltaLake('http://ADDR/bucket/table')",
		"SELECT * FROM icebergLocal('DIR')",
		"SELECT * FROM remote('ADDR', system.one)",
		"SELECT * FROM remoteSecure('ADDR', system.one)",
		"SELECT * FROM mysql('ADDR', 'd', 't', 'u', 'p')",
		"SELECT * FROM postgresql('ADDR', 'd', 't', 'u', 'p')",
		"SELECT * FROM mongodb('ADDR', 'd', 't', 'u', 'p', 's String')",
		"SELECT * FROM redis('ADDR', 'k', 'k String')",
		"SELECT * FROM sqlite('FILE', 't')",
		"SELECT * FROM odbc('DSN=x', 'd', 't')",
		"SELECT * FROM jdbc('jdbc:x', 'd', 't')",
		"SELECT * FROM executable('cat', LineAsString, 's String')",
		"CREATE TABLE u AS file('FILE', LineAsString)",
		"CREATE TABLE u AS url('http://ADDR/', LineAsString)",
		// Table engines.
		"CREATE TABLE u (s String) ENGINE = File(LineAsString, 'DIR/new')",
		"CREATE TABLE u (s String) ENGINE = File(LineAsString)",
		"CREATE TABLE u (s String) ENGINE = URL('http://ADDR/', LineAsString)",
		"CREATE TABLE u (s String) ENGINE = S3('http://ADDR/bucket/key', LineAsString)",
		"CREATE TABLE u (s String) ENGINE = S3Queue('http://ADDR/bucket/*', LineAsString) SETTINGS mode = 'unordered'",
		"CREATE TABLE u (s String) ENGINE = HDFS('hdfs://ADDR/x', LineAsString)",
		"CREATE TABLE u (s String) ENGINE = FileLog('DIR', LineAsString)",
		"CREATE TABLE u (s String) ENGINE = Executable('cat', LineAsString)",
		"CREATE TABLE u (s String) ENGINE = SQLite('DIR/new', 't')",
		"CREATE TABLE u (s String) ENGINE = EmbeddedRocksDB(0, 'DIR/new') PRIMARY KEY s",
		"CREATE TABLE u (s String) ENGINE = MySQL('ADDR', 'd', 't', 'u', 'p')",
		"CREATE TABLE u (s String) ENGINE = PostgreSQL('ADDR', 'd', 't', 'u', 'p')",
		"CREATE TABLE u (s String) ENGINE = Redis('ADDR') PRIMARY KEY s",
		"CREATE TABLE u (s String) ENGINE = Kafka('ADDR', 't', 'g', 'LineAsString')",
		"CREATE TABLE u (s String) ENGINE = Distributed('default', 'system', 'one')",
		"CREATE TABLE u (s String) ENGINE = Buffer(currentDatabase(), 't', 1, 1, 1, 1, 1, 1, 1)",
		"CREATE TABLE u (s String) ENGINE = Memory",
		"CREATE TEMPORARY TABLE u (s String) ENGINE = File(LineAsString)",
		// Databases.
		"CREATE DATABASE d ENGINE = SQLite('DIR/new')",
		"CREATE DATABASE d ENGINE = MySQL('ADDR', 'd', 'u', 'p')",
		"CREATE DATABASE d ENGINE = PostgreSQL('ADDR', 'd', 'u', 'p')",
		"CREATE DATABASE d ENGINE = S3('http://ADDR/bucket')",
		"CREATE DATABASE d ENGINE = HDFS('hdfs://ADDR')",
		// Disks of a table's own.
		tableOn("disk(type = 'web', endpoint = 'http://ADDR/x/')"),
		tableOn("disk(type = 's3', endpoint = 'http://ADDR/bucket/x/')"),
		tableOn("disk(type = 'object_storage', object_storage_type = 'local'," +
			" metadata_type = 'plain_rewritable', path = 'DIR/new/'), table_disk = 1"),
		"ALTER TABLE t MODIFY SETTING disk = disk(type = 'web', endpoint = 'http://ADDR/x/')",
		"ATTACH TABLE u FROM 'DIR' (s String) ENGINE = MergeTree ORDER BY s",
		// Dictionaries, functions, collections, accounts.
		dictionary("FILE(path 'FILE' format 'LineAsString')"),
		dictionary("HTTP(url 'http://ADDR/' format 'LineAsString')"),
		dictionary("EXECUTABLE(command 'cat' format 'LineAsString')"),
		"CREATE FUNCTION f AS x -> x",
		"CREATE NAMED COLLECTION c AS url = 'http://ADDR/'",
		"CREATE USER u",
		"CREATE ROLE u",
		"GRANT READ ON FILE TO runlens",
		"SELECT catboostEvaluate('FILE', 1)",
		// Files of a query, backups.
		"SELECT 'x' INTO OUTFILE 'DIR/new'",
		"INSERT INTO t FROM INFILE 'FILE' FORMAT LineAsString",
		"BACKUP TABLE t TO File('DIR/new')",
		"BACKUP TABLE t TO Disk('default', 'new')",
		"BACKUP TABLE t TO S3('http://ADDR/bucket/new')",
		"RESTORE TABLE u FROM File('DIR')",
		"RESTORE TABLE u FROM Disk('default', 'new')",
		"ALTER TABLE t FREEZE",
		"ALTER TABLE t FETCH PARTITION tuple() FROM '/x'",
		// The engine itself.
		"SYSTEM SHUTDOWN",
		"SYSTEM KILL",
		"SYSTEM START LISTEN TCP",
		"SYSTEM START LISTEN HTTP",
		"SYSTEM STOP LISTEN HTTP",
		"SYSTEM RELOAD CONFIG",
		"SYSTEM RELOAD USERS",
		"SYSTEM RELOAD FUNCTIONS",
		"SYSTEM ENABLE FAILPOINT dummy_failpoint",
		"SYSTEM DROP MARK CACHE",
		"SYSTEM FLUSH LOGS",
		"SHOW CREATE USER runlens",
	}
	newOutside(t).expectRefused(t, s, statements)
}
