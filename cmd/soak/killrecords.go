package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// A recordID names a record: its table, its organization and its id.
type recordID struct {
	table, organization string
	id                  uuid.UUID
}

// versions are the records that must be stored and the newest version of each, in Unix milliseconds; 0 for records
// without versions.
type versions map[recordID]int64

// A sentRun is a run of which a newer version may be sent.
type sentRun struct {
	id      recordID
	created time.Time
	version int64
}

// killRecords are records as they were sent to a store.
type killRecords struct {
	sent  versions
	runs  []sentRun // of the last cycle
	files []string

	people map[string][]recordID // the attribution records of the last cycle, by person
}

// forget takes note that the attribution records of a person are to be gone.
func (r *killRecords) forget(person string) {
	for _, id := range r.people[person] {
		delete(r.sent, id)
	}
}

// epoch is where the records that are sent begin. They lie in three months of two quarters: as many partitions.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// write makes a file with records of an organization, which is the cycle's, in three months, and with newer versions
// of the runs of the cycle before.
func (r *killRecords) write(file, cycle string, runs, attributions, changed int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	instant := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
	send := func(table, organization string, id uuid.UUID, version int64, format string, args ...any) recordID {
		named := recordID{table, organization, id}
		r.sent[named] = version
		fmt.Fprintf(out, format+"\n", args...) // an error is that of Flush
		return named
	}
	sendRun := func(organization string, id uuid.UUID, n int, created time.Time, version int64, status string) sentRun {
		named := send("runs", organization, id, version, `{"record":"run","organization_id":%q,"run_id":%q,"agent_id":%q,`+
			`"status":%q,"initiator_identifier":"p%d@example.com","initiator_name":"P%d","created_at":%q,"updated_at":%q}`,
			organization, id, uuid.UUID{15: byte(n % 3)}, status, n%40, n%7, instant(created.UnixMilli()), instant(version))
		return sentRun{named, created, version}
	}
	for n, old := range r.runs[:min(changed, len(r.runs))] {
		sendRun(old.id.organization, old.id.id, n, old.created, old.version+1000, "COMPLETED")
	}
	r.runs = r.runs[:0]
	for n := range 3 {
		send("agents", cycle, uuid.UUID{15: byte(n)}, epoch.UnixMilli(),
			`{"record":"agent","organization_id":%q,"agent_id":%q,`+
				`"name":"Agent","updated_at":%q}`, cycle, uuid.UUID{15: byte(n)}, instant(epoch.UnixMilli()))
	}
	for n := range runs {
		created := epoch.AddDate(0, 2*(n%3), n%20)
		r.runs = append(r.runs, sendRun(cycle, uuid.New(), n, created, created.UnixMilli(), "RUNNING"))
	}
	r.people = map[string][]recordID{}
	for n := range attributions {
		id, person := uuid.New(), fmt.Sprintf("p%d@example.com", n%40)
		sent := send("attributions", cycle, id, 0,
			`{"record":"attribution","organization_id":%q,"attribution_id":%q,"run_id":%q,`+
				`"agent_id":%q,"user_identifier":%q,"activity_type":"initiated","run_initiation_type":"human",`+
				`"source":"web","occurred_at":%q}`, cycle, id, r.runs[n%len(r.runs)].id.id, uuid.UUID{15: byte(n % 3)},
			person, instant(epoch.AddDate(0, 2*(n%3), n%20).UnixMilli()))
		r.people[person] = append(r.people[person], sent)
	}
	r.files = append(r.files, file)
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// newestStored is SQL, by table, that selects the newest version of every record: organization, id and version.
var newestStored = map[string]string{
	"agents": "SELECT toString(organization_id), agent_id, toUnixTimestamp64Milli(tupleElement(latest, 'updated_at'))" +
		" FROM agents FINAL",
	"runs": "SELECT toString(organization_id), run_id," +
		" toInt64(bitShiftRight(tupleElement(record, 'state'), 10)) - 2208988800000 FROM runs FINAL",
	"attributions": "SELECT toString(organization_id), attribution_id, toInt64(0) FROM attributions FINAL",
}

// compareStored compares every record that is stored with those that must be.
func compareStored(ctx context.Context, conn driver.Conn, want versions) ([]finding, error) {
	of := map[string]*finding{}
	at := func(cycle string) *finding {
		if of[cycle] == nil {
			of[cycle] = &finding{cycle: cycle}
		}
		return of[cycle]
	}
	seen := make(map[recordID]bool, len(want))
	for table, sql := range newestStored {
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			id := recordID{table: table}
			var version int64
			if err := rows.Scan(&id.organization, &id.id, &version); err != nil {
				rows.Close()
				return nil, err
			}
			wanted, known := want[id]
			switch {
			case seen[id]:
				at(id.organization).doubled++
			case !known || version > wanted:
				at(id.organization).differing++
			case version < wanted:
				at(id.organization).lost++
			}
			seen[id] = true
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	for id := range want {
		if !seen[id] {
			at(id.organization).lost++
		}
	}
	var found []finding
	for _, f := range of {
		f.what = fmt.Sprintf("%d records lost, %d doubled, %d others", f.lost, f.doubled, f.differing)
		found = append(found, *f)
	}
	return found, nil
}
