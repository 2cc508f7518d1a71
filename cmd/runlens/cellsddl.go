package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
)

type cellsDDLCmd struct {
	storeFlags
}

func (cellsDDLCmd) Help() string {
	return `Prints the configuration and the tables by which one ClickHouse server reads the records of all cells, for
queries of your own. Nothing of runlens reads them. While organizations are moved such queries are wrong: what is on its
way is in two cells, or in neither.

Example:
  runlens cells ddl --cells cells.yaml`
}

// distributed is the name of the cluster whose shards are the cells.
const distributed = "runlens_cells"

func (c cellsDDLCmd) Run(_ context.Context, _ *slog.Logger, io streams) error {
	if c.Cells == "" {
		return usageError{errors.New("--cells is missing: the file that names the cells")}
	}
	list, err := cells.ReadFile(c.Cells)
	if err != nil {
		return usageError{fmt.Errorf("--cells: %w", err)}
	}
	config, err := clusterOf(list)
	if err != nil {
		return err
	}
	var tables strings.Builder
	for _, table := range []string{schema.TableAgents, schema.TableRuns, schema.TableAttributions} {
		fmt.Fprintf(&tables, "CREATE TABLE IF NOT EXISTS all_%[1]s AS %[1]s ENGINE = Distributed('%[2]s', '', '%[1]s');\n",
			table, distributed)
	}
	_, err = fmt.Fprintf(io.out, `-- While organizations are moved, queries of these tables are wrong:
-- what is on its way is in two cells, or in neither.
-- They are for SQL of your own; nothing of runlens reads them. Read them with FINAL: a record may be stored twice.
--
-- 1. Into config.d/%[1]s.xml of one ClickHouse server that has a cell, with the passwords in its environment:
/*
%[2]s
*/
-- 2. On that server, in the cell's database:
%[3]s-- For instance: SELECT organization_id, count() FROM all_runs FINAL GROUP BY organization_id;
`, distributed, config, tables.String())
	return err
}

type replica struct {
	Host     string `xml:"host"`
	Port     int    `xml:"port"`
	Secure   int    `xml:"secure,omitempty"`
	Database string `xml:"default_database"`
	User     string `xml:"user"`
	Password struct {
		FromEnv string `xml:"from_env,attr"`
	} `xml:"password"`
}

// clusterOf is the configuration of a cluster whose shards are the cells.
func clusterOf(list []cells.Cell) (string, error) {
	type shard struct {
		Replica replica `xml:"replica"`
	}
	var config struct {
		XMLName xml.Name `xml:"clickhouse"`
		Shards  []shard  `xml:"remote_servers>runlens_cells>shard"`
	}
	for _, c := range list {
		if c.URL == "" {
			return "", fmt.Errorf("the cell %s is an embedded engine, which no other server can reach", c.Name)
		}
		at, err := url.Parse(c.URL)
		if err != nil {
			return "", fmt.Errorf("the url of the cell %s can't be read", c.Name)
		}
		r := replica{Host: at.Hostname(), Port: 9000, Database: strings.TrimPrefix(at.Path, "/"), User: at.User.Username()}
		if at.Scheme == "https" || at.Query().Get("secure") == "true" {
			r.Port, r.Secure = 9440, 1
		}
		if port, err := strconv.Atoi(at.Port()); err == nil && at.Scheme == "clickhouse" {
			r.Port = port
		}
		r.Password.FromEnv = "RUNLENS_" + strings.ToUpper(strings.ReplaceAll(c.Name, "-", "_")) + "_PASSWORD"
		config.Shards = append(config.Shards, shard{r})
	}
	text, err := xml.MarshalIndent(config, "", "  ")
	return string(text), err
}
