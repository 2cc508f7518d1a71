package keys_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A follower reads what changed of a store's keys, as a server does.
type follower struct {
	t     *testing.T
	conn  *olaptest.Held
	store keys.Store
	state any
}

func follow(t *testing.T, conn driver.Conn) *follower {
	held := olaptest.Hold(conn)
	f := &follower{t: t, conn: held, store: keys.NewStore(held)}
	f.exec("SYSTEM STOP MERGES api_keys") // those that the test does not ask for
	if changes := f.changes(); !changes.All {
		t.Errorf("the first time: %+v", changes)
	}
	return f
}

func (f *follower) changes() schema.APIKeyChanges {
	f.t.Helper()
	changes, err := f.store.Changed(context.Background(), f.state)
	if err != nil {
		f.t.Fatal(err)
	}
	f.state = changes.State
	return changes
}

// want checks which keys changed; nil for any.
func (f *follower) want(what string, ids ...string) {
	f.t.Helper()
	changes := f.changes()
	slices.Sort(changes.KeyIDs)
	if changes.All != (ids == nil) || !slices.Equal(changes.KeyIDs, ids) {
		f.t.Errorf("%s: any key: %v, these: %q; want %q", what, changes.All, changes.KeyIDs, ids)
	}
}

func (f *follower) exec(statement string) {
	f.t.Helper()
	if err := f.conn.Conn.Exec(context.Background(), statement); err != nil {
		f.t.Fatal(err)
	}
}

func (f *follower) put(keys ...schema.APIKey) {
	f.t.Helper()
	for _, k := range keys {
		if err := f.store.Put(context.Background(), k); err != nil {
			f.t.Fatal(err)
		}
	}
}

// many is SQL that stores keys of these numbers in one insert.
func many(from, to int) string {
	return fmt.Sprintf("INSERT INTO api_keys (key_id, organization_id, scopes, secret_hash, created_at)"+
		" SELECT 'key' || toString(number), 'acme', ['analytics:read'], 'x', now64(3) FROM numbers(%d, %d)", from, to-from)
}

var none = []string{}

// change executes a statement that merges or mutates parts.
func (f *follower) change(statement string) {
	f.t.Helper()
	f.exec("SYSTEM START MERGES api_keys")
	f.exec(statement)
	f.exec("SYSTEM STOP MERGES api_keys")
}

const mergeAll = "OPTIMIZE TABLE api_keys FINAL"

// A server reads the keys that changed, whatever the clocks of those who write say, and whatever is merged in between.
// Where it cannot tell them, it reads all.
func TestChanged(t *testing.T) {
	f := follow(t, olaptest.OpenStore(t).Conn())
	at := func(minutes time.Duration) *time.Time { t := noon.Add(minutes * time.Minute); return &t }
	f.exec(many(0, 20_000))
	f.want("the first keys")
	f.want("nothing", none...)
	f.change(mergeAll)
	f.want("a merge", none...)

	first, second := key("first", "acme", noon), key("second", "globex", noon)
	ending, revoked, earlier := first, first, second
	ending.ExpiresAt, revoked.RevokedAt, earlier.RevokedAt = at(60), at(10), at(-10)
	more := revoked
	more.Scopes = none
	for what, k := range map[string]schema.APIKey{
		"a key": first, "an expiry": ending, "a revocation": revoked, "a late repeat of the creation": first,
		"a revocation by a clock that is behind": earlier, "the row of a revoked key with other scopes": more,
	} {
		f.put(k)
		f.want(what, k.KeyID)
	}
	f.put(first, second)
	f.change(mergeAll)
	f.want("two keys in a part with all others")
	f.put(first)
	f.want("a key after that", "first")
	f.change(mergeAll)
	f.want("a merge of what is known", none...)
	f.exec(many(0, 10_000))
	if changes := f.changes(); changes.All || len(changes.KeyIDs) != 10_000 {
		t.Errorf("10,000 keys: any: %v, %d", changes.All, len(changes.KeyIDs))
	}
	f.exec(many(0, 10_001))
	f.want("more keys than are named")

	f.change("DELETE FROM api_keys WHERE organization_id = 'globex'")
	f.want("a purge")
	f.want("nothing after a purge", none...)
	f.put(second)
	f.want("a key after a purge", "second")
	f.change("DELETE FROM api_keys WHERE key_id = 'nobody'")
	f.want("a purge of what came and went", nil...)
	f.change("ALTER TABLE api_keys DELETE WHERE key_id = 'second' SETTINGS mutations_sync = 2")
	f.want("a mutation")
	f.put(first, second)
	f.want("two keys", "first", "second")
	f.change(mergeAll)
	f.changes() // the number of the mutation is no block's
	f.put(first)
	f.want("a key", "first")
	f.change(mergeAll)
	f.want("a merge after a mutation", none...)

	// A part is dropped, and comes back, and all of them go.
	f.put(second)
	f.want("a key", "second")
	f.exec("ALTER TABLE api_keys DETACH PARTITION tuple()")
	f.want("no key")
	f.exec("ALTER TABLE api_keys ATTACH PARTITION tuple()")
	f.want("keys that came back")
	f.exec("TRUNCATE TABLE api_keys")
	f.want("all deleted")
	f.want("nothing in an empty table", none...)
	f.put(first)
	f.want("a first key")
}

// A restored table can have parts of the same names, and a merged one of those that were there before.
func TestATableThatWasReplacedIsReadAgain(t *testing.T) {
	for _, merged := range []bool{false, true} {
		f := follow(t, olaptest.OpenStore(t).Conn())
		f.exec("CREATE TABLE another AS api_keys")
		for range 3 {
			f.put(key("first", "acme", noon))
			f.exec("INSERT INTO another (key_id, created_at) VALUES ('another', now64(3))")
		}
		f.changes()
		if merged {
			f.exec("OPTIMIZE TABLE another FINAL")
		}
		f.exec("EXCHANGE TABLES another AND api_keys")
		f.want("a table of another store")
	}
}

// What happens between the two statements is not lost: what a merge took away is read where it went, and what was added
// is read the next time.
func TestAChangeBetweenTheStatements(t *testing.T) {
	const listed = "FROM system.parts"
	f := follow(t, olaptest.OpenStore(t).Conn())
	first, second, third := key("first", "acme", noon), key("second", "acme", noon), key("third", "acme", noon)
	f.put(first)
	f.changes()
	f.put(second)
	f.conn.After(listed, func() { f.change(mergeAll) })
	f.want("a key that was merged with another one", "first", "second")
	f.put(second)
	f.conn.After(listed, func() { f.put(third) })
	f.want("a key before the statement", "second")
	f.want("a key in between", "third")
	f.put(second)
	f.conn.After(listed, func() { f.change("DELETE FROM api_keys WHERE key_id = 'second'") })
	f.want("a key that was purged")
	// It is merged again and again.
	merges := 0
	var merge func()
	merge = func() {
		if merges++; merges < 3 {
			f.conn.After(listed, merge)
		}
		f.put(first)
		f.change(mergeAll)
	}
	f.conn.After(listed, merge)
	f.put(first)
	f.want("parts that nobody can read in time")
	f.want("then", "first", "third")
}

// Whatever happens to the keys, in whatever order, each key that changed is named, or any may have.
func TestNoChangeIsMissed(t *testing.T) {
	f := follow(t, olaptest.OpenStore(t).Conn())
	f.put(key("kept", "acme", noon)) // to delete from an empty table changes nothing
	f.changes()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	touched := map[string]bool{} // since the list of parts was read last
	named, any := 0, 0
	var history []string
	change := func() {
		id := fmt.Sprint("key", random.IntN(20))
		k := key(id, "acme", noon)
		what := random.IntN(20)
		history = append(history, fmt.Sprint(what, " ", id))
		switch what {
		case 0:
			f.change("DELETE FROM api_keys WHERE key_id = '" + id + "'")
		case 1:
			f.change("ALTER TABLE api_keys DELETE WHERE key_id = '" + id + "' SETTINGS mutations_sync = 2")
		case 2, 3, 4, 5:
			f.change(mergeAll)
			return
		case 6:
			for i := range 5 {
				touched[fmt.Sprint("key", i)] = true
			}
			f.exec(many(0, 5))
			return
		case 7:
			k.RevokedAt = &noon
			f.put(k)
		default:
			f.put(k)
		}
		touched[id] = true
	}
	for range 40 {
		for range random.IntN(4) {
			change()
		}
		want := map[string]bool{}
		var listed func()
		listed = func() {
			maps.Copy(want, touched)
			clear(touched)
			f.conn.After("FROM system.parts", listed) // if they are listed again
			if random.IntN(3) == 0 {
				change()
			}
		}
		f.conn.Restart()
		f.conn.After("FROM system.parts", listed)
		changes := f.changes()
		history = append(history, fmt.Sprint("read ", changes.All, " ", changes.KeyIDs))
		if changes.All {
			any++
			continue
		}
		for id := range want {
			named++
			if !slices.Contains(changes.KeyIDs, id) {
				t.Fatalf("%s changed and is not among %q; seed %d, after %q", id, changes.KeyIDs, seed, history)
			}
		}
	}
	if named == 0 || any == 0 {
		t.Errorf("%d keys were named, and %d times it was any", named, any)
	}
}
