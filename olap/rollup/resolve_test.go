package rollup_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

const marks = "SELECT toInt64(count()) FROM runs WHERE organization_id = 'moved' AND bitAnd(state, 63) = 63"

// Who resolves and dies between any two statements leaves what the next one, or a refresh, makes right.
func TestResolvingSurvivesCrashes(t *testing.T) {
	defer rollup.SetClaimAge(rollup.SetClaimAge(0))
	conn := olaptest.OpenStore(t).Conn()
	var organizations []string
	died, after := true, 0
	for ; died && after < 30; after++ {
		organization := fmt.Sprintf("after-%02d", after)
		organizations = append(organizations, organization)
		since := state(t, conn).Now
		consistent(t, conn, organization)
		broken(t, conn, organization)
		_, err := rollup.New(&dyingConn{Conn: conn, left: after}, quiet, 0).Resolve(ctx, since)
		if died = err != nil; died && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		if after%2 == 0 {
			continue // the refresh finds it
		}
		if _, err := rollup.New(conn, quiet, 0).Resolve(ctx, since); err != nil {
			t.Fatal(err)
		}
	}
	if least := 4; died || after <= least { // the first entry of the log, the claim, two notes, marks, the claim's end
		t.Errorf("the last crash was after %d statements", after-1)
	}
	countedOnce(t, conn, organizations)
}

// Who resolves waits for a refresher that has the claim, and leaves the watermark where that one put it.
func TestResolvingWaitsForTheClaim(t *testing.T) {
	conn := refreshed(t, 10)
	since := state(t, conn).Now
	consistent(t, conn, "moved")
	broken(t, conn, "moved")
	batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	waiting := olaptest.Hold(conn)
	resolved := make(chan error)
	go func() {
		_, err := rollup.New(waiting, quiet, 0).Resolve(ctx, since)
		resolved <- err
	}()
	olaptest.Until(t, "it looks for the claim again and again", func() bool { return waiting.Sent() > 30 })
	if n := number(t, conn, marks); n != 0 {
		t.Errorf("%d marks while another one has the claim", n)
	}
	until := since.Add(-time.Millisecond)
	if err := batch.Done(ctx, until); err != nil {
		t.Fatal(err)
	}
	if err := <-resolved; err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, marks); n != 1 {
		t.Errorf("%d marks, want 1", n)
	}
	if is := state(t, conn).Until; !is.Equal(until) {
		t.Errorf("the watermark is %s, want %s", is, until)
	}
}

// Who resolves and loses the claim, as to a purge that begins, wrote nothing from then on: it takes another one.
func TestResolvingClaimsAgainWhatItLost(t *testing.T) {
	defer rollup.SetClaimAge(rollup.SetClaimAge(0))
	conn := refreshed(t, 10)
	since := state(t, conn).Now
	consistent(t, conn, "moved")
	broken(t, conn, "moved")
	held, robbed := olaptest.Hold(conn), false
	held.After("groupUniqArray(toString(organization_id))", func() { // before the first conflicts are written
		robbed = true
		batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
		if err == nil {
			err = batch.End(ctx)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if _, err := rollup.New(held, quiet, 0).Resolve(ctx, since); err != nil {
		t.Fatal(err)
	}
	if !robbed {
		t.Error("nobody took over the claim")
	}
	for of, count := range map[string]string{
		"marks": marks,
		"attribution records": "SELECT toInt64(uniqExact(id)) FROM " + schema.TableConflicts +
			" WHERE organization_id = 'moved' AND kind = 'attribution'",
	} {
		if n := number(t, conn, count); n < 1 {
			t.Errorf("%d %s after it was resolved", n, of)
		}
	}
}

// What is stored after the store's clock was set back is resolved too, when no refresher has moved the watermark back
// yet: it was not refreshed, although it seems so.
func TestResolvingAfterTheClockWasSetBack(t *testing.T) {
	conn := refreshed(t, 10)
	since := state(t, conn).Now
	batch, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := batch.Done(ctx, since.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	consistent(t, conn, "moved")
	broken(t, conn, "moved")
	if found, err := rollup.New(conn, quiet, 0).Resolve(ctx, since); err != nil || !found {
		t.Errorf("attribution records with conflicts: %t, %v", found, err)
	}
	if n := number(t, conn, marks); n != 1 {
		t.Errorf("%d marks, want 1", n)
	}
}
