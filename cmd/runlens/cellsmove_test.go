package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// An organization that is moved under a running server is answered all the time, pages go on, its keys hold and end
// where it is, and what is ingested meanwhile is counted once. Others notice nothing. A move whose command died says so
// to writers and in the list, and goes on.
func TestMovingAnOrganization(t *testing.T) {
	d := inThreeCells(t)
	lines, runs := d.records()
	d.run(lines, "ingest", "-")
	quiet := slog.New(slog.DiscardHandler)
	app, err := startApp(t.Context(), serveWith(t, append(d.flags, "--rate-limit-per-minute", "100000",
		"--query-timeout", "10m")...), quiet)
	must(t, err)
	defer app.Close(context.WithoutCancel(t.Context()))
	base := "http://" + app.Address()
	moved, other := d.organizations()[4], d.organizations()[1]
	from, to := d.of[moved], d.elsewhere(moved)
	id, key := d.key(moved)
	_, others := d.key(other)
	first := pageOf(t, base, key, "")
	second := pageOf(t, base, key, first.Cursor)
	if first.Cursor == "" || second.Cursor == "" {
		t.Fatal("there are less than three pages")
	}

	d.die(moved, to, move.Damaged)
	d.goOn(app, moved, to, from)
	if _, out := d.run("", "cells", "list"); !strings.Contains(out, "in "+from+": organization:"+moved+" to "+to+
		": closing") {
		t.Errorf("the list does not show a move that has not ended:\n%s", out)
	}
	if _, out := d.run("", "orgs", "list"); strings.Count(out, "\n"+moved+" ") != 1 {
		t.Errorf("two cells have %s, and it is listed otherwise than once:\n%s", moved, out)
	}
	more := strings.ReplaceAll(lines, "-4000-8000-00000000000", "-4000-8000-00000000010")
	ingested := d.waiting(more, "ingest", "-")
	created := d.waiting("", "keys", "create", "--org", moved)
	ended := make(chan string)
	go func() {
		_, _, stderr := command(t, "", append([]string{"cells", "move", moved, "--to", to}, d.flags...)...)
		ended <- stderr
	}()
	if !harness.Poll(t.Context(), 10*time.Minute, 50*time.Millisecond, func() bool {
		if again := pageOf(t, base, key, first.Cursor); !reflect.DeepEqual(again.Rows, second.Rows) ||
			again.AsOf != first.AsOf {
			t.Fatalf("the second page is %+v, and was %+v", again, second)
		}
		if status, body := post(t, base, others, countRuns); status != 200 {
			t.Errorf("of another organization: %d %s", status, body)
		}
		select {
		case stderr := <-ended:
			if !strings.Contains(stderr, string(move.Purged)) {
				t.Fatal(stderr)
			}
			return true
		default:
			return false
		}
	}) {
		t.Fatal("the move did not end")
	}
	<-ingested
	<-created
	if _, out := d.run("", "cells", "of", moved); out != to+"\n" {
		t.Errorf("%s is in %s", moved, out)
	}
	runs[moved] *= 2
	d.expectRuns(base, key, runs[moved])
	d.expectRuns(base, others, 2*runs[other])

	// The server is paused between its question where the organization is and its statement, until the organization has
	// been moved back, and more was stored.
	paused := app.cells[strings.Index("abc", to)]
	opened := *paused.opened.Load()
	held := olaptest.Hold(opened.store.Conn())
	secrets, err := olap.CursorSecrets(t.Context(), held)
	must(t, err)
	opened.engine = olap.NewEngine(held, secrets...)
	paused.opened.Store(&opened)
	held.Restart()
	once := sync.OnceFunc(func() {
		d.run("", "cells", "move", moved, "--to", from)
		d.run(strings.ReplaceAll(lines, "-4000-8000-00000000000", "-4000-8000-00000000020"), "ingest", "-")
	})
	held.Before(1, once)
	runs[moved] += runs[moved] / 2
	d.expectRuns(base, key, runs[moved])
	if held.Sent() == 0 {
		t.Error("the server was not paused")
	}
	d.moveUnseen(app, moved, from, to, func() { d.expectRuns(base, key, runs[moved]) })
	d.run("", "keys", "revoke", id)
	if !harness.Poll(t.Context(), revoked, 500*time.Millisecond, func() bool {
		status, _ := post(t, base, key, countRuns)
		return status == 401
	}) {
		t.Fatal("a key that was revoked in the new cell is valid")
	}
}

// goOn asks a server for a page of an organization in a cell, and for the next one in another cell, as when one server
// has heard of the switch, and another one has not.
func (d *deployment) goOn(app *app, organization string, in ...string) {
	d.Helper()
	rest := ""
	for _, cell := range in {
		q, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":1,` +
			`"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}` + rest + "}"))
		must(d, err)
		result, err := app.cells[strings.Index("abc", cell)].Run(d.Context(),
			olap.Request{Access: schema.WholeOrganization(schema.OrganizationID(organization)), Query: q, QueryID: uuid.New()})
		if err != nil {
			d.Errorf("%s does not go on in %s: %v", organization, cell, err)
			return
		}
		rest = `,"cursor":"` + jsonField(d.T, result.AppendJSON(nil), "cursor") + `"`
	}
}

var errDied = errors.New("died")

// moveUnseen moves an organization, and asks when it has been switched, while the server knows that from the old cell,
// and relies on what the new one said just before.
func (d *deployment) moveUnseen(app *app, organization, from, to string, ask func()) {
	d.Helper()
	heard := func(cell string) error {
		_, err := app.placed.directory.Told(d.Context(), cell, d.cells[cell].Conn(), time.Now())
		return err
	}
	err := d.move(organization, to, func(step move.Step) error {
		switch step {
		case move.Damaged:
			return heard(to)
		case move.Switched:
			if err := heard(from); err != nil {
				return err
			}
			ask()
		}
		return nil
	})
	if err != nil {
		d.Error(err)
	}
}

// die moves an organization by a command that dies after a step.
func (d *deployment) die(organization, to string, after move.Step) {
	d.Helper()
	err := d.move(organization, to, func(step move.Step) error {
		if step == after {
			return errDied
		}
		return nil
	})
	if !errors.Is(err, errDied) {
		d.Fatal(err)
	}
}

func (d *deployment) move(organization, to string, reached func(move.Step) error) error {
	conns := map[string]driver.Conn{}
	for name, store := range d.cells {
		conns[name] = store.Conn()
	}
	return move.Run(d.Context(), move.Options{
		Cells: conns, Secrets: olap.AcceptCursorSecrets, Logger: slog.New(slog.DiscardHandler), Progress: func(uint64) {},
		Reached: reached,
	}, cells.OrganizationSubject(schema.OrganizationID(organization)), to)
}

// waiting starts a command and returns when it says that it waits for a move. What it returns is closed when the
// command has ended.
func (d *deployment) waiting(stdin string, args ...string) (ended chan struct{}) {
	d.Helper()
	ended = make(chan struct{})
	reading, writing := io.Pipe()
	go func() {
		defer close(ended)
		defer writing.Close()
		code := run(context.Background(), append(args, d.flags...),
			streams{in: strings.NewReader(stdin), out: io.Discard, err: writing})
		if code != exitDone {
			d.Errorf("%v: exit code %d", args, code)
		}
	}()
	said := make(chan struct{})
	go func() {
		text, waits := "", sync.OnceFunc(func() { close(said) })
		defer waits()
		for buffer := make([]byte, 4096); ; {
			n, err := reading.Read(buffer)
			if text += string(buffer[:n]); strings.Contains(text, write.MovingText[:40]) {
				waits()
			}
			if err != nil {
				if !strings.Contains(text, write.MovingText[:40]) {
					d.Errorf("%v does not say that it waits: %s", args, text)
				}
				return
			}
		}
	}()
	<-said
	return ended
}
