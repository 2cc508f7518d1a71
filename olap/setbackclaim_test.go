package olap_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// A refresher that finds the clock set back while another one has a claim moves the watermark back later: the rows that
// were stored meanwhile seem to be older than it.
func TestClockSetBackDuringAClaimIsNotForgotten(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t).Conn()
	stamps, held, other := olaptest.StampsOf(t, store), olaptest.Hold(store), olaptest.Hold(store)
	setClock := func(to time.Duration) {
		stamps.Shift(t, to)
		held.Shift(to)
		other.Shift(to)
	}
	runs := 0
	stored := func() {
		runs++
		olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{runOn(runs, runs, "FAILED")}})
	}
	refresher := rollup.New(held, quiet, rollup.Margin)
	stored()
	setClock(40 * time.Second)
	refreshed(t, refresher)
	stored()
	setClock(43 * time.Second)
	claimed, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	other.After("INSERT INTO rollup_log", func() { close(claimed); <-end })
	go func() {
		ended <- rollup.New(other, quiet, rollup.Margin).Refresh(ctx)
	}()
	<-claimed
	setClock(34 * time.Second)
	stored()
	if _, err := refresher.Step(ctx); err != nil {
		t.Fatal(err)
	}
	for at := storeClock(t, store); storeClock(t, store).Sub(at) < rollup.Margin+500*time.Millisecond; {
		later(t, store, storeClock(t, store))
	}
	close(end)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	refreshed(t, refresher)
	setClock(time.Minute)
	refreshed(t, refresher)
	engine := engineWith(held, asLarge)
	if got := ask(t, engine, "acme", totals).Rows[0][0]; got != float64(runs) {
		t.Errorf("%v runs, want %d", got, runs)
	}
}
