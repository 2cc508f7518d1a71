package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/clickhouse"
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

// A deployment is servers on stores, each of which answers for some of the organizations.
type deployment struct {
	*stores
	servers []*process.Server
	clients []*apiClient // of each organization
}

func (b *bench) deploy(ctx context.Context, s *stores, servers int) (*deployment, error) {
	d := &deployment{stores: s}
	for n := range servers {
		dir := fmt.Sprintf("%s-server-%d", s.DataDir, n)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		server, err := b.serve(ctx, s.Product, dir, b.Share)
		if err != nil {
			d.stop()
			return nil, err
		}
		d.servers = append(d.servers, server)
	}
	for o, key := range s.keys {
		d.clients = append(d.clients, newAPIClient(d.servers[o%servers], key))
	}
	return d, nil
}

func (d *deployment) stop() {
	for _, server := range d.servers {
		server.Stop()
	}
}

// processors is what the servers and the engines have used so far; 0 where the system does not tell.
func (d *deployment) processors() (time.Duration, error) {
	var pids []int
	for _, server := range d.servers {
		pids = append(pids, server.PID())
	}
	for dir := range d.engines {
		engine, err := process.Product{DataDir: dir}.Engine()
		if err != nil {
			return 0, err
		}
		pids = append(pids, engine.PID)
	}
	used, _ := processorTime(pids...)
	return used, nil
}
