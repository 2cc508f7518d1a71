package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/rollup"
)

// stores are where the same organizations are: in one store, or in several cells.
type stores struct {
	process.Product
	engines map[string]*clickhouse.Server // by their folders
	keys    []string                      // of each organization
	cells   []string                      // the engine's folder of each organization
}

func (s *stores) close() {
	for dir, engine := range s.engines {
		closeStore(engine, dir)
	}
}

// openStores ingests a file into new stores and makes the keys. What it returns is to be closed, also with an error.
func (b *bench) openStores(ctx context.Context, name, file string, c class, cells ...string) (*stores, error) {
	s := &stores{Product: b.product(filepath.Join(b.folder.Dir, name)), engines: map[string]*clickhouse.Server{}}
	dirs := []string{s.DataDir}
	if len(cells) > 0 {
		dirs, s.Cells = nil, s.DataDir+".yaml"
		text := "cells:\n"
		for _, cell := range cells {
			dirs = append(dirs, filepath.Join(s.DataDir, cell))
			text += fmt.Sprintf("- {name: %s, data_dir: %s/%[1]s}\n", cell, name)
		}
		if err := os.WriteFile(s.Cells, []byte(text), 0o600); err != nil {
			return s, err
		}
	}
	for _, dir := range dirs {
		engine, err := b.openStore(ctx, dir) // which the commands join
		if err != nil {
			return s, err
		}
		s.engines[dir] = engine
	}
	if out, err := s.Command(ctx, "ingest", file).CombinedOutput(); err != nil {
		return s, fmt.Errorf("ingest: %w: %s", err, out)
	}
	for _, engine := range s.engines {
		if err := refreshAndMerge(ctx, engine.Conn()); err != nil {
			return s, err
		}
	}
	for o := range c.count {
		organization := string(c.organization(o))
		key, err := s.CreateKey(ctx, organization)
		if err != nil {
			return s, err
		}
		dir := s.DataDir
		if len(cells) > 0 {
			out, err := s.Command(ctx, "cells", "of", organization).Output()
			if err != nil {
				return s, fmt.Errorf("cells of: %w", err)
			}
			dir = filepath.Join(dir, strings.TrimSpace(string(out)))
		}
		s.keys, s.cells = append(s.keys, key.Key), append(s.cells, dir)
	}
	return s, nil
}

// refreshAndMerge does what a server does with a store in the minutes after a load.
func refreshAndMerge(ctx context.Context, conn driver.Conn) error {
	if err := refresh(ctx, conn); err != nil {
		return err
	}
	partitions, err := unmerged(ctx, conn)
	if err != nil {
		return err
	}
	return merge(ctx, conn, partitions)
}

// refresh refreshes the rollup with all that was stored.
func refresh(ctx context.Context, conn driver.Conn) error {
	return rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(ctx)
}

// A deployment is servers on stores.
type deployment struct {
	*stores
	servers []*process.Server
	clients []*apiClient // of each organization
	shares  []share      // one for each store with organizations
}

// A share is what is asked of one store while all others rest, so that as many ask a store as ask the only one: what
// they ask at once shares statements.
type share struct {
	clients   []*apiClient
	processes []int // whose processor time counts
}

// deploy starts servers. Of several each answers for the organizations of one store, as on a machine that it has with
// that store's engine alone: what the others use is not counted then.
func (b *bench) deploy(ctx context.Context, s *stores, servers int) (*deployment, error) {
	d := &deployment{stores: s}
	var all []int
	for n := range servers {
		dir := fmt.Sprintf("%s-server-%d", s.DataDir, n)
		server, err := b.serve(ctx, s.Product, dir, b.Share)
		if err != nil {
			d.stop()
			return nil, err
		}
		d.servers, all = append(d.servers, server), append(all, server.PID())
	}
	engines := map[string]int{}
	for dir := range s.engines {
		engine, err := process.Product{DataDir: dir}.Engine()
		if err != nil {
			d.stop()
			return nil, err
		}
		engines[dir], all = engine.PID, append(all, engine.PID)
	}
	of := map[string]int{} // indices of shares
	for o, dir := range s.cells {
		n, known := of[dir]
		if !known {
			n, of[dir] = len(d.shares), len(d.shares)
			d.shares = append(d.shares, share{processes: all})
		}
		server := d.servers[n%servers]
		if servers > 1 {
			d.shares[n].processes = []int{server.PID(), engines[dir]}
		}
		client := newAPIClient(server, s.keys[o])
		d.clients, d.shares[n].clients = append(d.clients, client), append(d.shares[n].clients, client)
	}
	return d, nil
}

func (d *deployment) stop() {
	for _, server := range d.servers {
		server.Stop()
	}
}
