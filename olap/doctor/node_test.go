package doctor_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/doctor"
	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// database is that of the node, on which the users below have rights.
const database = "analytics"

// user is a user of the node in XML, with the password x and rights.
func user(name, profile string, rights []string) string {
	var grants strings.Builder
	for _, r := range rights {
		fmt.Fprintf(&grants, "<query>GRANT %s</query>", r)
	}
	return fmt.Sprintf("<%s><password>x</password><networks><ip>::/0</ip></networks><profile>%s</profile><quota>default"+
		"</quota><grants>%s</grants></%[1]s>", name, profile, &grants)
}

// The node has a user with what the doctor names and nothing else, one that lacks two of it, one without a right to see
// the system's tables, and two of its own log tables, one of them without a TTL.
var sharedNode = sync.OnceValues(func() (*clickhousetest.Node, error) {
	exact := doctor.Rights(database)
	without := slices.DeleteFunc(slices.Clone(exact), func(r string) bool {
		return strings.HasPrefix(r, "OPTIMIZE ") || strings.HasSuffix(r, "system.events")
	})
	const log = "<%s><database>system</database><table>%[1]s</table>%s</%[1]s>"
	return clickhousetest.NewNode(clickhousetest.NodeConfig{
		Name:     "doctored",
		Profiles: "<readonly><readonly>1</readonly></readonly>",
		Users:    user("exact", "default", exact) + user("less", "default", without) + user("reader", "readonly", exact),
		Server: fmt.Sprintf(log, "query_log", "") + fmt.Sprintf(log, "part_log", "<ttl>event_date + INTERVAL 3 DAY</ttl>") +
			"<max_open_files>4096</max_open_files>",
	})
})

func TestMain(m *testing.M) {
	code := m.Run()
	if node, err := sharedNode(); err == nil {
		node.Remove()
	}
	os.Exit(code)
}

func theNode(t *testing.T) *clickhousetest.Node {
	t.Helper()
	node, err := sharedNode()
	if err != nil {
		t.Fatal(err)
	}
	node.Answers(t)
	node.Do(t, "CREATE DATABASE IF NOT EXISTS "+database)
	return node
}

// as opens the node's database as a user with settings, over HTTP or the native protocol.
func as(t *testing.T, scheme, name string, settings url.Values) *clickhouse.Server {
	t.Helper()
	return of(t, scheme, name, database, settings)
}

// of is as for any database.
func of(t *testing.T, scheme, name, database string, settings url.Values) *clickhouse.Server {
	t.Helper()
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{
		URL:    scheme + "://" + name + ":x@" + theNode(t).Addr(scheme) + "/" + database + "?" + settings.Encode(),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// migrated is the node's database with the tables, as a user.
func migrated(t *testing.T, name string) *clickhouse.Server {
	t.Helper()
	store := as(t, "clickhouse", name, nil)
	olaptest.Migrate(t, store, schema.Own)
	return store
}

// patient is a store as the command examines it.
func patient(store *clickhouse.Server) doctor.Store {
	return doctor.Store{Conn: store.Conn(), Database: store.Database(), Embedded: store.Embedded(),
		Servers: store.Servers(), Limits: doctor.Usual, State: func(ctx context.Context) (schema.State, error) {
			var db *sql.DB
			db, err := store.DB()
			if err != nil {
				return schema.State{}, err
			}
			defer db.Close()
			return schema.Own.Status(ctx, db)
		}}
}

// about are the findings of a check.
func about(found []finding.Finding, check string) (of []finding.Finding) {
	for _, f := range found {
		if f.Check == check {
			of = append(of, f)
		}
	}
	return of
}

// expect wants one finding with a result, and words in what it says and in what to do.
func expect(t *testing.T, found []finding.Finding, result finding.Result, says, do string) {
	t.Helper()
	if len(found) != 1 || found[0].Result != result || !strings.Contains(found[0].Says, says) ||
		!strings.Contains(found[0].Do, do) {
		t.Errorf("found %+v, want one that is %s, says %q and does %q", found, result, says, do)
	}
}
