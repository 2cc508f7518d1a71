// Command runlens is the whole product in one binary: the API server, the copying commands and
// the tools around them. The files here only wire packages together, one file per subcommand.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"time"
	_ "time/tzdata" // for machines without tz data: a question's periods end today in its zone

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/completion"
	"github.com/runlens/runlens/cmd/internal/logs"
	"github.com/runlens/runlens/cmd/internal/output"
)

// Exit codes of contract 2.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitRejected = 3

	// exitThreshold says that a condition of runlens query --fail-if holds.
	exitThreshold = 4
)

// An exitError ends the process with a code of its own. Its message, if any, has been printed.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// A usageError is a wrong value that kong cannot know to be wrong; it exits like a wrong flag.
type usageError struct{ error }

type cli struct {
	Init       initCmd       `cmd:"" help:"Copy records once, and write a key and a dashboard: begin here."`
	Serve      serveCmd      `cmd:"" help:"Run the HTTP API."`
	Ingest     ingestCmd     `cmd:"" help:"Copy records from files or standard input into the store."`
	Push       pushCmd       `cmd:"" help:"Send records from files to a server that stores them."`
	Worker     workerCmd     `cmd:"" help:"Copy records continuously from a PostgreSQL database."`
	Verify     verifyCmd     `cmd:"" help:"Prove that the store has what files or a database have."`
	Conform    conformCmd    `cmd:"" help:"Prove a server's answers with cases that were worked out by hand."`
	Purge      purgeCmd      `cmd:"" help:"Remove an organization or a person from the store for good."`
	Rollup     rollupCmd     `cmd:"" help:"Check the rollup against its base tables, or rebuild it."`
	Health     healthCmd     `cmd:"" help:"Say whether a running server or worker is ready."`
	Doctor     doctorCmd     `cmd:"" help:"Find what is wrong with ClickHouse or a source, and what to do."`
	Migrate    migrateCmd    `cmd:"" help:"Apply, roll back or show schema migrations."`
	Query      queryCmd      `cmd:"" help:"Send one query to a running server and print the answer."`
	Catalog    catalogCmd    `cmd:"" help:"Show what a running server can be asked: models, metrics and dimensions."`
	Console    consoleCmd    `cmd:"" help:"Show the numbers in a browser on this machine."`
	Login      loginCmd      `cmd:"" help:"Keep the address of a server and a key for it."`
	Logout     logoutCmd     `cmd:"" help:"Forget the address and the key of a server."`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Let an assistant ask a server, over the Model Context Protocol."`
	Keys       keysCmd       `cmd:"" help:"Create, list, rotate and revoke API keys."`
	Orgs       orgsCmd       `cmd:"" help:"Show which organizations the store has."`
	Explain    explainCmd    `cmd:"" help:"Answer a question on the store itself and say how."`
	Usage      usageCmd      `cmd:"" help:"Show who asks what over the API, and what it takes."`
	Cells      cellsCmd      `cmd:"" help:"Show the ClickHouse services among which organizations are divided."`
	Audit      auditCmd      `cmd:"" help:"Show who did what to keys and records."`
	Completion completionCmd `cmd:"" help:"Print a script for the shell that completes command lines."`
	Man        manCmd        `cmd:"" help:"Write manual pages."`
	Engine     engineCmd     `cmd:"" help:"Run the embedded ClickHouse engine alone."`
	Version    versionCmd    `cmd:"" help:"Show the versions of runlens and of the engine."`
}

// Streams are a command's standard streams; tests bring their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// self begins the command lines that are printed to be pasted: this program as it was started, which need not be on the
// path.
var self = "runlens"

func main() {
	ownProcess, self = true, output.Quoted(os.Args[0])
	stderr := output.Guarded(os.Stderr)
	lines := logs.NewQueue(stderr)
	forgetEmptyVariables()
	log.SetOutput(lines) // where libraries log that take no logger
	code := runLogging(context.Background(), os.Args[1:], streams{os.Stdin, output.Guarded(os.Stdout), stderr}, lines)
	lines.Flush(logPatience)
	os.Exit(code)
}

// logPatience is how long a process that ends waits for whoever reads its log.
const logPatience = time.Second

// runLogging executes one command line and returns the exit code. Log lines, and why the command ended, go to lines.
func runLogging(ctx context.Context, args []string, io streams, lines io.Writer) int {
	logger := slog.New(logs.Bounded(slog.NewJSONHandler(lines, nil)))
	out := &watched{Writer: io.out}
	if !output.IsTerminal(io.out) {
		io.out = out
	}
	code := perform(ctx, args, logger, lines, io)
	if err := out.failed(); err != nil && code != exitFailed {
		say(lines, "runlens: the output is not whole: %v", err)
		return exitFailed
	}
	return code
}

func perform(ctx context.Context, args []string, logger *slog.Logger, lines io.Writer, io streams) int {
	exited, typed := -1, args
	var help bytes.Buffer // kong would take a failure to write it for wrong usage
	completes := len(args) > 0 && args[0] == completion.Command
	if completes {
		typed = args[1:max(1, len(args)-1)] // the last word is not complete
	}
	parser, err := newParser(grammar(typed),
		kong.Writers(&help, io.err),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(logger, io),
	)
	if err != nil {
		panic(err) // a mistake in the struct tags
	}
	if completes {
		complete(ctx, parser.Model, args[1:], io)
		return exitDone
	}
	if err := cmp.Or(refuseKeys(args), refusePasswords(args), refuseNotUTF8(args, os.Environ())); err != nil {
		say(io.err, "runlens: %v", err)
		return exitUsage
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help
		_, _ = help.WriteTo(io.out) // runLogging looks at whether it could
		return exited
	}
	if err == nil {
		err = vet(command, io.in)
	}
	if err != nil {
		name := commandName(command, err)
		say(io.err, "%s: %v; '%s --help' says what it takes", name, err, name)
		return exitUsage
	}
	io = outlivesReaders(command.Selected().Target.Interface(), io, lines)
	return exitCode(command.Run(io), commandName(command, nil), lines)
}

// commandName is the command as it was typed, as far as it is known.
func commandName(command *kong.Context, err error) string {
	if parsing, ok := errors.AsType[*kong.ParseError](err); ok {
		command = parsing.Context
	}
	name := "runlens"
	if command == nil {
		return name
	}
	for _, element := range command.Path {
		if element.Command != nil {
			name += " " + element.Command.Name
		}
	}
	return name
}

// exitCode reports why a command ended, and returns the worst exit code of its errors. command is its name.
func exitCode(err error, command string, stderr io.Writer) int {
	for _, one := range joinedErrors(err) {
		var exit exitError
		switch {
		case errors.As(one, &exit):
		case codeOf(one) == exitUsage:
			say(stderr, "%s: %s", command, withoutStatements(one))
		default:
			say(stderr, "runlens: %s", withoutStatements(one))
		}
	}
	return codeOf(err)
}

// codeOf is the exit code of errors: that which says most.
func codeOf(err error) int {
	bySeverity := []int{exitDone, exitRejected, exitThreshold, exitUsage, exitFailed}
	worst := 0
	for _, one := range joinedErrors(err) {
		code := exitFailed
		if exit, ok := errors.AsType[exitError](one); ok {
			code = exit.code
		} else if _, ok := errors.AsType[usageError](one); ok {
			code = exitUsage
		}
		worst = max(worst, slices.Index(bySeverity, code))
	}
	return bySeverity[worst]
}

// joinedErrors are the errors that errors.Join has put together, also of those that were joined before.
func joinedErrors(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok || errors.Join(joined.Unwrap()...).Error() != err.Error():
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, joinedErrors(one)...)
	}
	return all
}

// say writes one line for a person. Whatever it quotes, of a file or a server, stays within the line: who reads a log
// or a mail of cron takes each line for ours.
func say(w io.Writer, format string, values ...any) {
	fmt.Fprintln(w, output.Printable(fmt.Sprintf(format, values...)))
}
