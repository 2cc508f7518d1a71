package olap_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

const (
	dayAgent = `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day","agent_id"],"limit":50,` + january31
	people   = `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier"],` + january31
	twoDays  = `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":2,` + january31
)

// The first question of an organization after a start takes one statement, if nothing is being stored of it and a page
// may have all rows; two more if further pages follow, or probably will, or if rows are still arriving, and one more
// for asOf if there are no rows.
func TestStatementsOfAFirstQuestion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	var records olaptest.Records
	for day := 1; day <= 3; day++ {
		run := runOn(day, day, "COMPLETED")
		records.Runs = append(records.Runs, run)
	}
	for n := range 62 { // on 31 days by two agents
		run := runOn(100+n, 1+n%31, "COMPLETED")
		run.Organization, run.AgentID = "other", olaptest.ShortID(1+n/31)
		records.Runs = append(records.Runs, run)
	}
	olaptest.Load(t, conn, records)
	stored := time.Now()
	pass(t, conn, 5*time.Millisecond)
	quick, patient := newEngine(conn), olap.NewEngine(conn, []byte("secret"))
	patient.Margin(time.Hour) // so that rows are still expected
	for _, c := range []struct {
		name         string
		engine       *olap.Engine
		organization schema.OrganizationID
		question     string
		rows         int
		page         string
		least, most  uint64 // statements; one more where the clock has not moved on when it is read
	}{
		{"first", quick, "acme", dayAgent, 3, "single", 1, 1},
		{"again", quick, "acme", dayAgent, 3, "single", 1, 1},
		{"first of another one, with pages", quick, "other", dayAgent, 50, "single", 3, 4},
		{"again with pages", quick, "other", dayAgent, 50, "first", 2, 4},
		{"first that may have many rows", quick, "acme", people, 1, "first", 2, 4},
		{"again", quick, "acme", people, 1, "single", 1, 1},
		{"first that has many rows", quick, "acme", twoDays, 2, "first", 2, 4},
		{"again", quick, "acme", twoDays, 2, "first", 2, 4},
		{"first of one without rows", quick, "nobody", dayAgent, 0, "single", 2, 2},
		{"again of one without rows", quick, "nobody", dayAgent, 0, "single", 2, 2},
		{"first of an active one", patient, "acme", dayAgent, 3, "first", 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.engine.FollowOnce(ctx)
			asked, err := request(schema.WholeOrganization(c.organization), []byte(c.question))
			if err != nil {
				t.Fatal(err)
			}
			x, err := c.engine.Explain(ctx, asked)
			if err != nil {
				t.Fatal(err)
			}
			want := olap.Strategy{Reads: "base", Page: c.page, Reason: "rows_below_threshold", Attempt: 1}
			if !reflect.DeepEqual(x.Strategy, want) || x.Rows != c.rows || x.AsOf.Before(stored) {
				t.Errorf("%d rows by %+v as of %v, want %d by %+v", x.Rows, x.Strategy, x.AsOf, c.rows, want)
			}
			if n := x.All.Statements; n < c.least || n > c.most {
				t.Errorf("%d statements, want %d to %d", n, c.least, c.most)
			}
		})
	}
}
