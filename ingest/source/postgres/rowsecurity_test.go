package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// Of a table from which row-level security hides rows nothing is read: neither at the start, nor when it begins to.
func TestRowSecurity(t *testing.T) {
	address, conn := layout(t)
	do(t, conn, `INSERT INTO runs (organization_id, run_id, agent_id, status, updated_at)
		SELECT 'org-' || n, gen_random_uuid(), gen_random_uuid(), 'RUNNING', '2026-01-01' FROM generate_series(1, 3) AS n`)
	do(t, conn, `CREATE ROLE reader LOGIN PASSWORD 'x'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`)
	defer do(t, conn, "DROP OWNED BY reader; DROP ROLE reader")
	of, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	of.User = url.UserPassword("reader", "x")
	reader := of.String()
	reads := func(database *postgres.Database) (n int, err error) {
		return database.Changed(t.Context(), normalize.KindRun, postgres.Key{}, 10,
			func(*source.Record, postgres.Key) error { return nil })
	}
	const secured = "ALTER TABLE runs ENABLE ROW LEVEL SECURITY"
	const all = "; CREATE POLICY everything ON runs FOR SELECT TO reader USING (true)"
	for name, c := range map[string]struct {
		policies string
		whole    bool
	}{
		"no security":                     {"SELECT", true},
		"no policy":                       {secured, false},
		"some rows":                       {secured + "; CREATE POLICY few ON runs USING (organization_id = 'org-1')", false},
		"all rows":                        {secured + all, true},
		"all rows, of another command":    {secured + "; CREATE POLICY all_of ON runs FOR UPDATE USING (true)", false},
		"all rows, of another role":       {secured + "; CREATE POLICY others ON runs TO CURRENT_USER USING (true)", false},
		"all rows, and a restriction":     {secured + all + "; CREATE POLICY n ON runs AS RESTRICTIVE USING (false)", false},
		"all rows, restricted to nothing": {secured + all + "; CREATE POLICY n ON runs AS RESTRICTIVE USING (true)", true},
	} {
		do(t, conn, "BEGIN; "+c.policies+"; COMMIT")
		database := open(t, reader)
		err := database.Check(t.Context())
		if c.whole && err != nil || !c.whole && !errors.Is(err, postgres.ErrRowSecurity) {
			t.Errorf("%s: %v", name, err)
		}
		if n, err := reads(database); c.whole && (n != 3 || err != nil) || !c.whole && err == nil {
			t.Errorf("%s: read %d, %v", name, n, err)
		}
		if c.whole { // until rows are hidden
			do(t, conn, secured+"; DROP POLICY IF EXISTS everything ON runs")
			if n, err := reads(database); err == nil {
				t.Errorf("%s, and then hidden: read %d", name, n)
			}
		} else if f := database.Examine(t.Context(), false)[1]; f.Result != finding.Problem ||
			!strings.Contains(f.Do, `ALTER ROLE "reader" BYPASSRLS`) {
			t.Errorf("%s: %+v", name, f)
		}
		database.Close()
		do(t, conn, `ALTER TABLE runs DISABLE ROW LEVEL SECURITY; DO $$ DECLARE p text; BEGIN
			FOR p IN SELECT polname FROM pg_policy LOOP EXECUTE format('DROP POLICY %I ON runs', p); END LOOP; END $$`)
	}
	// Behind a view it is the view's owner from whom rows are hidden.
	do(t, conn, secured+`; ALTER TABLE runs FORCE ROW LEVEL SECURITY; CREATE ROLE owner; GRANT SELECT ON runs TO owner;
		CREATE VIEW seen AS SELECT * FROM runs; ALTER VIEW seen OWNER TO owner; GRANT SELECT ON seen TO reader`)
	defer do(t, conn, "DROP OWNED BY owner CASCADE; DROP ROLE owner")
	if err := open(t, reader, "FROM runs", "FROM seen").Check(t.Context()); !errors.Is(err, postgres.ErrRowSecurity) {
		t.Errorf("behind a view: %v", err)
	}
}

// A policy that hides nothing may be new: what reads goes on with it.
func TestPolicyThatIsNew(t *testing.T) {
	address, conn := layout(t)
	do(t, conn, `INSERT INTO agents (organization_id, agent_id, name) VALUES ('acme', gen_random_uuid(), 'Support');
		CREATE ROLE reader LOGIN PASSWORD 'x'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`)
	defer do(t, conn, "DROP OWNED BY reader; DROP ROLE reader")
	of, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	of.User = url.UserPassword("reader", "x")
	database := open(t, of.String())
	if err := database.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, conn, "ALTER TABLE agents ENABLE ROW LEVEL SECURITY; CREATE POLICY everything ON agents FOR SELECT USING (true)")
	for _, passes := range []bool{false, true} {
		n, err := database.Changed(t.Context(), normalize.KindAgent, postgres.Key{}, 10,
			func(*source.Record, postgres.Key) error { return nil })
		if passes && (n != 1 || err != nil) || !passes && !postgres.Retryable(err) {
			t.Errorf("read %d, %v", n, err)
		}
	}
}

// What hides rows is found behind a view and in partitions too, also where policies show all rows of other tables.
// A table that is not read hides none, whatever its name is. A function may read as the role, or as its own one.
func TestRowSecurityOfWhatIsRead(t *testing.T) {
	address, conn := layout(t)
	do(t, conn, `CREATE ROLE reader LOGIN PASSWORD 'x'; CREATE ROLE owner; CREATE ROLE bypassing BYPASSRLS;
		CREATE SCHEMA other; CREATE TABLE other.agents (id int); CREATE TABLE run (id int);
		CREATE TABLE hidden (LIKE runs); CREATE TABLE parted (LIKE runs) PARTITION BY LIST (organization_id);
		CREATE TABLE part PARTITION OF parted DEFAULT;
		ALTER TABLE other.agents ENABLE ROW LEVEL SECURITY; ALTER TABLE run ENABLE ROW LEVEL SECURITY;
		ALTER TABLE agents ENABLE ROW LEVEL SECURITY; CREATE POLICY everything ON agents FOR SELECT USING (true);
		ALTER TABLE part ENABLE ROW LEVEL SECURITY; ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
		CREATE VIEW of_invoker WITH (security_invoker) AS SELECT * FROM hidden;
		CREATE VIEW of_superuser AS SELECT * FROM hidden; CREATE VIEW of_view AS SELECT * FROM of_invoker;
		CREATE VIEW of_owner AS SELECT * FROM hidden; ALTER VIEW of_owner OWNER TO owner;
		CREATE VIEW hidden_view AS SELECT * FROM hidden; ALTER VIEW hidden_view OWNER TO bypassing;
		CREATE TABLE base (LIKE runs); CREATE TABLE child () INHERITS (base); ALTER TABLE child ENABLE ROW LEVEL SECURITY;
		CREATE TABLE shown (LIKE runs); ALTER TABLE shown ENABLE ROW LEVEL SECURITY;
		CREATE POLICY everything ON shown FOR SELECT TO reader USING (true);
		CREATE VIEW of_shown AS SELECT * FROM shown; ALTER VIEW of_shown OWNER TO owner;
		CREATE TABLE shown_parent (LIKE runs) PARTITION BY LIST (organization_id);
		CREATE TABLE month PARTITION OF shown_parent DEFAULT; ALTER TABLE month ENABLE ROW LEVEL SECURITY;
		ALTER TABLE shown_parent ENABLE ROW LEVEL SECURITY; CREATE POLICY everything ON shown_parent USING (true);
		CREATE VIEW of_month WITH (security_invoker) AS SELECT * FROM month;
		CREATE FUNCTION of_role() RETURNS SETOF runs LANGUAGE sql STABLE AS 'SELECT * FROM hidden';
		CREATE FUNCTION of_part() RETURNS SETOF runs LANGUAGE sql STABLE AS 'SELECT * FROM month';
		CREATE FUNCTION status() RETURNS text LANGUAGE sql AS 'SELECT 1::text';
		CREATE FUNCTION of_definer() RETURNS SETOF runs LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT * FROM hidden';
		CREATE FUNCTION of_hidden_definer() RETURNS SETOF runs LANGUAGE sql STABLE SECURITY DEFINER
			AS 'SELECT * FROM shown'; ALTER FUNCTION of_hidden_definer OWNER TO owner;
		CREATE VIEW calling AS SELECT * FROM of_role(); ALTER VIEW calling OWNER TO bypassing;
		GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader, owner, bypassing`)
	defer do(t, conn, `DROP OWNED BY reader, owner, bypassing CASCADE; DROP ROLE reader, owner, bypassing`)
	of, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	of.User = url.UserPassword("reader", "x")
	for table, whole := range map[string]bool{
		"runs": true, "hidden": false, "parted": true, "part": false, "of_invoker": false, "of_view": false,
		"of_superuser": true, "of_owner": false, "hidden_view": true,
		"(TABLE hidden_view UNION ALL TABLE Hidden) AS h": false, "shown_parent": true, "of_month": false,
		"(SELECT * FROM ONLY base UNION ALL TABLE child) AS c":        false,
		"(TABLE shown_parent UNION ALL TABLE month) AS m":             false,
		"(TABLE shown_parent UNION ALL TABLE of_month) AS m":          false,
		"(TABLE hidden_view UNION ALL SELECT * FROM of_role()) AS f":  false,
		"(TABLE shown_parent UNION ALL SELECT * FROM of_role()) AS f": false,
		"(TABLE shown_parent UNION ALL SELECT * FROM of_part()) AS f": false,
		"of_definer() AS f": true, "shown": true, "of_shown": false,
		"(TABLE shown UNION ALL TABLE hidden_view) AS h":                                   true,
		"(TABLE hidden_view UNION ALL TABLE calling) AS c":                                 false,
		"(TABLE shown UNION ALL SELECT * FROM of_hidden_definer()) AS f":                   false,
		"(TABLE hidden_view UNION ALL TABLE of_invoker) AS i":                              false,
		`(TABLE shown UNION ALL TABLE U&"h\0069dden") AS u`:                                false,
		"(TABLE shown UNION ALL SELECT * FROM hidden_view WHERE lower(status) <> '') AS l": true,
	} {
		err := open(t, of.String(), "FROM runs", "FROM "+table).Check(t.Context())
		if whole && err != nil || !whole && !errors.Is(err, postgres.ErrRowSecurity) {
			t.Errorf("%s: %v", table, err)
		}
	}
}
