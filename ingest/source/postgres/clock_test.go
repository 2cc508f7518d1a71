package postgres_test

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// A source whose clock is wrong gives wrong times to its records, which no comparison finds.
func TestClockOfTheSource(t *testing.T) {
	t.Parallel()
	address, conn := layout(t)
	do(t, conn, `CREATE SCHEMA shifted; CREATE TABLE shifted.clock AS SELECT interval '0' AS shift;
		CREATE FUNCTION shifted.statement_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS 'SELECT pg_catalog.statement_timestamp() + shift FROM shifted.clock';
		DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET search_path = shifted, pg_catalog, public';
			END $$`)
	database := open(t, address)
	for shift, want := range map[string]struct {
		result finding.Result
		says   string
	}{
		"0":          {finding.OK, "are the same to"},
		"3 hours":    {finding.Problem, "ahead of ours"},
		"-3 hours":   {finding.Problem, "behind ours"},
		"59 seconds": {finding.Warning, "ahead of ours"},
	} {
		do(t, conn, "UPDATE shifted.clock SET shift = '"+shift+"'")
		found, err := database.ExamineSettings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, f := range found {
			if f.Check != "source clock" {
				continue
			}
			if told++; f.Result != want.result || !strings.Contains(f.Says, want.says) ||
				strings.Contains(f.Do, "synchronize") == (want.result == finding.OK) {
				t.Errorf("%s: %+v", shift, f)
			}
		}
		if told != 1 {
			t.Errorf("%s: %d findings", shift, told)
		}
	}
}
