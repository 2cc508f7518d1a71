package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/conns"
)

const (
	// consoleMaxWait is how long a page waits for the key's rate before it says so.
	consoleMaxWait = time.Minute
	// consoleDrain is how long pages in flight may take when the console ends.
	consoleDrain = 2 * time.Second
)

type consoleCmd struct {
	serverFlags
	tokenFlags
	Listen    string   `env:"RUNLENS_CONSOLE_LISTEN" default:"127.0.0.1:8100" help:"@console_listen"`
	Dashboard []string `sep:"none" placeholder:"FILE" help:"@dashboard"`
	Export    string   `placeholder:"FILE" help:"@export"`
	Share     string   `placeholder:"HOST:PORT" help:"@console_share"`
	Admin     []string `placeholder:"HOST:PORT" help:"@console_admin"`
	DataDir   string   `env:"RUNLENS_DATA_DIR" default:"./data" placeholder:"DIR" help:"@token_dir"`
}

func (consoleCmd) Help() string {
	return `Shows the numbers of an organization in a browser on this machine: it prints an address, which works once.
The key stays with this command. Dashboards are YAML files: a title, last or start and end, timezone, refresh, and
panels, each with the name of a saved question (saved) or a question of its own (question).

Example:
  runlens console
  runlens console --admin 127.0.0.1:9090
  runlens console --share 10.0.0.5:8200
  runlens console --dashboard ./health.yaml --export health.html`
}

func (c consoleCmd) Run(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, consoleDrain, func(ctx context.Context) error { return c.serve(ctx, command, logger, io) })
}

func (c consoleCmd) serve(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	if c.Export != "" && len(c.Dashboard) != 1 {
		return usageError{errors.New("--export writes one dashboard: name it with --dashboard")}
	}
	var shared net.Listener
	if c.Share != "" && c.Export == "" {
		var err error
		if shared, err = listenFew("--share", c.Share, logger); err != nil {
			return err
		}
		defer shared.Close()
	}
	pages, err := c.open(ctx, command, shared, io)
	if err != nil {
		return err
	}
	if c.Export != "" {
		return c.export(ctx, pages)
	}
	listener, err := listenLoopback(c.Listen, logger)
	if err != nil {
		return err
	}
	handler, address := pages.Handler(listener.Addr().String(), func(next string) {
		fmt.Fprintf(io.err, "opened; for another browser: %s\n", next)
	})
	if _, err := fmt.Fprintln(io.out, address); err != nil { // without it nobody can open a page
		return err
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return serveUntil(ctx, conns.NewServer(handler, logger), listener, consoleDrain) })
	if shared != nil {
		links := conns.NewServer(pages.Shared(shared.Addr().String()), logger)
		both.Go(func() error { return serveUntil(ctx, links, shared, consoleDrain) })
	}
	return both.Wait()
}

// open makes the console. shared listens for links; nil for none.
func (c consoleCmd) open(
	ctx context.Context, command *kong.Context, shared net.Listener, io streams,
) (*console.Console, error) {
	asked, err := c.server(explicitFlags(command))
	if err != nil {
		return nil, err
	}
	waits, report := &console.Waits{}, reportWait(io.err)
	to, err := client.New(client.Config{URL: asked.URL, Key: asked.Key, UserAgent: "runlens-console/" + version,
		MaxWait: consoleMaxWait, OnWait: func(wait client.Wait) {
			waits.Began(wait)
			report(wait)
		}})
	if err != nil {
		return nil, usageError{err}
	}
	config := console.Config{
		Client: to, Waits: waits, Home: profile.HomeOrNowhere(), Now: time.Now, Dashboards: c.Dashboard,
	}
	if shared != nil {
		home, err := profile.Home()
		if err != nil {
			return nil, err
		}
		if config.Share, err = sharing(home, asked.Key, shared.Addr()); err != nil {
			return nil, err
		}
	}
	for _, address := range c.Admin {
		token, err := c.adminToken(address, c.DataDir)
		if err != nil {
			return nil, err
		}
		config.Admin = append(config.Admin, console.Admin{Address: address, Token: token})
	}
	return console.New(ctx, config)
}

// export writes the dashboard as one file, which is replaced when all panels are there.
func (c consoleCmd) export(ctx context.Context, pages *console.Console) error {
	read, err := pages.Reads(c.Dashboard[0])
	if err != nil {
		return err
	}
	if err := refuseInputs("--export", c.Export, nil, read...); err != nil {
		return err
	}
	file, err := output.Create(c.Export)
	if err != nil {
		return usageError{fmt.Errorf("--export: %w", err)}
	}
	return file.Fill(func(w io.Writer) error { return pages.Export(ctx, c.Dashboard[0], w) })
}
