package main

import (
	"strings"
	"testing"
	"time"
)

// An organization that is moved under a running server is answered all the time, its keys hold and end where it is, and
// what is ingested afterwards is counted. Others notice nothing.
func TestMovingAnOrganization(t *testing.T) {
	d := inThreeCells(t)
	lines, runs := d.records()
	d.run(lines, "ingest", "-")
	base, _, _ := started(t, d.flags...)
	moved, other := d.organizations()[0], d.organizations()[1]
	to := "b"
	if d.of[moved] == to {
		to = "c"
	}
	id, key := d.key(moved)
	_, others := d.key(other)
	d.expectRuns(base, key, runs[moved])
	ended := make(chan string)
	go func() {
		_, _, stderr := command(t, "", append([]string{"cells", "move", moved, "--to", to}, d.flags...)...)
		ended <- stderr
	}()
	for asking := true; asking; {
		d.expectRuns(base, key, runs[moved])
		d.expectRuns(base, others, runs[other])
		select {
		case stderr := <-ended:
			if !strings.Contains(stderr, "purged from the old cell") {
				t.Fatal(stderr)
			}
			asking = false
		case <-time.After(2100 * time.Millisecond): // below the rate limit
		}
	}
	if _, out := d.run("", "cells", "of", moved); out != to+"\n" {
		t.Errorf("%s is in %s", moved, out)
	}
	more := strings.ReplaceAll(lines, "-4000-8000-00000000000", "-4000-8000-00000000010")
	d.run(more, "ingest", "-")
	d.expectRuns(base, key, 2*runs[moved])
	d.run("", "keys", "revoke", id)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		if status, _ := post(t, base, key, countRuns); status == 401 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a key that was revoked in the new cell is valid")
		}
	}
}
