package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/schema"
)

// The store has organizations of other sources too. One that the type of organization_id has no value for is none of
// this source's; neither is one that the type takes for the same.
func TestTypesOfOrganizations(t *testing.T) {
	const u = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
	for name, c := range map[string]struct {
		before, declared, mine string
		others                 []string
	}{
		"text": {"", "text", "acme", []string{u, "ACME"}},
		"char": {"", "char(9)", "acme", []string{u, "ACME"}},
		"uuid": {"", "uuid", u, []string{"acme", strings.ToUpper(u), strings.ReplaceAll(u, "-", "")}},
		"enum": {"CREATE TYPE tenant AS ENUM ('acme', 'other')", "tenant", "acme", []string{u, "ACME"}},
		"name": {"", "name", "acme", []string{u, "ACME"}},
		"case": {
			"CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
			`text COLLATE nocase`, "acme", []string{u, "ACME"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			url, conn := layout(t)
			do(t, conn, c.before)
			do(t, conn, "ALTER TABLE runs ALTER organization_id TYPE "+c.declared+" USING organization_id::"+c.declared)
			id := uuid.MustParse("00000000-0000-0000-0000-000000000001")
			do(t, conn, "INSERT INTO runs (organization_id, run_id, agent_id, status, created_at) VALUES ('"+c.mine+"', '"+
				id.String()+"', gen_random_uuid(), 'RUNNING', '2026-01-01T12:00Z')")
			database := open(t, url)
			if err := database.Check(ctx); err != nil {
				t.Fatal(err)
			}
			for _, organization := range append([]string{c.mine}, c.others...) {
				var found []string
				visit := func(r *source.Record) error {
					found = append(found, string(r.Raw.Values[0]))
					return nil
				}
				day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				of := schema.OrganizationID(organization)
				if err := database.OfDays(ctx, normalize.KindRun, of, []time.Time{day}, visit); err != nil {
					t.Errorf("the days of %s: %v", organization, err)
				}
				if err := database.OfIDs(ctx, normalize.KindRun, of, []uuid.UUID{id}, visit); err != nil {
					t.Errorf("the ids of %s: %v", organization, err)
				}
				var want []string
				if organization == c.mine {
					want = []string{c.mine, c.mine} // of the day, and of the id
				}
				if !slices.Equal(found, want) {
					t.Errorf("of %s it has %q, want %q", organization, found, want)
				}
			}
		})
	}
}

// Pages find each organization and each id, also where the column takes two for the same.
func TestPagesOfLikeTexts(t *testing.T) {
	for _, at := range []string{"'2026-01-01Z'", "NULL"} {
		url, conn := layout(t)
		do(t, conn, `CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
			ALTER TABLE runs DROP CONSTRAINT runs_pkey, ALTER organization_id TYPE text COLLATE nocase,
				ALTER run_id TYPE text COLLATE nocase, ALTER updated_at DROP NOT NULL;
			INSERT INTO runs (organization_id, run_id, agent_id, status, updated_at)
				SELECT organization, id, gen_random_uuid(), 'RUNNING', `+at+`::timestamptz
				FROM unnest(ARRAY['ACME', 'Acme', 'acme']) AS organization, unnest(ARRAY['x', 'X', 'y']) AS id`)
		database := open(t, url)
		read := database.Changed
		if at == "NULL" {
			read = database.Timeless
		}
		var found []string
		for after, n := (postgres.Key{}), 1; n == 1; {
			var err error
			n, err = read(t.Context(), normalize.KindRun, after, 1, func(r *source.Record, key postgres.Key) error {
				found, after = append(found, key.ID+string(key.Organization)), key
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"XACME", "XAcme", "Xacme", "xACME", "xAcme", "xacme", "yACME", "yAcme", "yacme"}
		if !slices.Equal(found, want) {
			t.Errorf("of %s the pages have %q, want %q", at, found, want)
		}
	}
}

// A row without an id or an organization has no place in the order of changes. Pages leave it out, however many there
// are, and find every other row, also one whose id is an empty text; one statement reads those that pages leave out.
func TestRowsWithoutAKey(t *testing.T) {
	for name, at := range map[string]string{
		"an instant": "'2026-01-01Z'", "NULL": "NULL", "infinity": "'infinity'", "-infinity": "'-infinity'",
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			url, conn := layout(t)
			do(t, conn, `ALTER TABLE runs DROP CONSTRAINT runs_pkey;
				ALTER TABLE runs ALTER organization_id DROP NOT NULL, ALTER run_id DROP NOT NULL, ALTER run_id TYPE text,
					ALTER updated_at DROP NOT NULL;
				INSERT INTO runs (organization_id, run_id, agent_id, status, updated_at)
					SELECT organization, id, gen_random_uuid(), 'RUNNING', `+at+`::timestamptz FROM (VALUES
						('acme', NULL), ('acme', NULL), ('acme', NULL), (NULL, 'a'), (NULL, 'b'), (NULL, 'b'), (NULL, NULL),
						('acme', ''), ('other', ''), ('acme', 'a'), ('acme', 'b'), ('other', 'b')) AS v (organization, id)`)
			database := open(t, url)
			read := database.Timeless
			if name == "an instant" {
				read = database.Changed
			}
			var found []string
			const limit = 2
			after := postgres.Key{}
			for n := limit; n == limit && len(found) < 100; {
				var err error
				n, err = read(ctx, normalize.KindRun, after, limit, func(r *source.Record, key postgres.Key) error {
					found, after = append(found, key.ID+" of "+string(key.Organization)), key
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			want := []string{" of acme", " of other", "a of acme", "b of acme", "b of other"}
			if !slices.Equal(found, want) {
				t.Errorf("the pages have %q, want %q", found, want)
			}
			keyless := 0
			if err := database.Keyless(ctx, normalize.KindRun, func(r *source.Record) error {
				if r.Raw.Values[0] != nil && r.Raw.Values[1] != nil {
					t.Errorf("%q has a key", r.Raw.Values[:2])
				}
				keyless++
				return nil
			}); err != nil || keyless != 7 {
				t.Errorf("%d rows without a key, %v, want 7", keyless, err)
			}
		})
	}
}
