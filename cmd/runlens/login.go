package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
)

const defaultURL = "http://127.0.0.1:8080"

// serverFlags say which server is asked with which key.
type serverFlags struct {
	URL     string `env:"RUNLENS_URL" nopassword:"the API takes a key, in RUNLENS_API_KEY" help:"@api_url"`
	KeyFile string `env:"RUNLENS_API_KEY_FILE" placeholder:"FILE" help:"The API key. Or set RUNLENS_API_KEY."`
	Profile string `env:"RUNLENS_PROFILE" placeholder:"NAME" help:"@profile"`
}

// server is the address and the key: each from a flag, else a variable, else the profile, else the default. A profile
// that --profile names comes before variables. The key of a profile goes to the profile's own address only.
func (s serverFlags) server(given map[string]bool) (p profile.Profile, err error) {
	named := given["profile"]
	if named && (given["url"] || given["key-file"]) {
		return p, usageError{errors.New("--profile has an address and a key of its own; leave out --url and --key-file")}
	}
	if !named {
		p.URL = s.URL
		if p.Key, err = readSecret("--key-file", s.KeyFile, "RUNLENS_API_KEY"); err != nil {
			return p, err
		}
	}
	if p.Key == "" || p.URL == "" {
		if p, err = s.completed(p); err != nil {
			return p, err
		}
	}
	if p.Key == "" {
		return p, usageError{errors.New("an API key is needed: set RUNLENS_API_KEY or run 'runlens login' " +
			"('runlens keys create --org ORG' makes a key)")}
	}
	p.URL = cmp.Or(p.URL, defaultURL)
	return p, nil
}

// completed takes from a profile what is not given.
func (s serverFlags) completed(given profile.Profile) (profile.Profile, error) {
	folder, err := profile.Home()
	if err != nil && s.Profile == "" && given.Key != "" {
		return given, nil // a service may have no home
	}
	if err != nil {
		return given, err
	}
	name := cmp.Or(s.Profile, profile.Default)
	kept, ok, err := folder.Profile(name)
	switch {
	case err != nil:
		return given, usageError{err}
	case !ok && s.Profile != "":
		return given, usageError{fmt.Errorf("there is no profile %s; 'runlens login --profile %s' makes it", name, name)}
	case !ok:
		return given, nil
	case given.URL == "":
		return profile.Profile{URL: kept.URL, Key: cmp.Or(given.Key, kept.Key)}, nil
	case sameAddress(given.URL, kept.URL):
		return kept, nil
	}
	return given, usageError{fmt.Errorf("an API key is needed: that of the profile %s is for %s alone; set "+
		"RUNLENS_API_KEY, or run 'runlens login --url %s --profile NAME'", name, kept.URL, given.URL)}
}

// sameAddress reports whether an address that was given is that of a profile, which the client has completed.
func sameAddress(given, kept string) bool {
	c, err := client.New(client.Config{URL: given, Key: "none"})
	return err == nil && c.URL() == kept
}

// client asks the server; it reports waits on standard error.
func (s serverFlags) client(given map[string]bool, io streams, quiet bool) (*client.Client, error) {
	server, err := s.server(given)
	if err != nil {
		return nil, err
	}
	config := client.Config{URL: server.URL, Key: server.Key, UserAgent: "runlens-cli/" + version}
	if !quiet {
		config.OnWait = reportWait(io.err)
	}
	c, err := client.New(config)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

type loginCmd struct {
	URL     string `env:"RUNLENS_URL" nopassword:"the API takes a key" default:"http://127.0.0.1:8080" help:"@login_url"`
	KeyFile string `env:"RUNLENS_API_KEY_FILE" placeholder:"FILE" help:"@login_key_file"`
	Profile string `env:"RUNLENS_PROFILE" default:"default" placeholder:"NAME" help:"The name to keep them under."`
}

func (loginCmd) Help() string {
	return `Tries an address and a key, and keeps them in a file that only you can read.

Example:
  runlens login --url https://analytics.example.com --profile work
  runlens query --profile work --metrics run_count`
}

func (c loginCmd) Run(ctx context.Context, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error { return c.login(ctx, io) })
}

func (c loginCmd) login(ctx context.Context, io streams) error {
	if err := profile.CheckName(c.Profile); err != nil {
		return usageError{fmt.Errorf("--profile: %w", err)}
	}
	folder, err := profile.Home()
	if err != nil {
		return err
	}
	key, err := readSecret("--key-file", c.KeyFile, "RUNLENS_API_KEY")
	if err == nil && key == "" {
		key, err = typedKey(ctx, io)
	}
	if err != nil {
		return err
	}
	asked, err := client.New(client.Config{URL: c.URL, Key: key, OnWait: reportWait(io.err)})
	if err != nil {
		return usageError{err}
	}
	if _, err := asked.Catalog(ctx); err != nil {
		line, _ := explain.Refusal(ctx, err, client.Query{}, asked.Catalog)
		return errors.New("nothing was kept: " + line)
	}
	path, err := folder.Keep(c.Profile, profile.Profile{URL: asked.URL(), Key: key})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "%s answers; its address and the key are in %s as %s\n", asked.URL(), path, c.Profile)
	return err
}

// typedKey reads a key from the terminal, without showing it, or the first line of standard input.
func typedKey(ctx context.Context, streams streams) (string, error) {
	var line string
	var err error
	if file, ok := streams.in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if state, err := term.GetState(int(file.Fd())); err == nil { // reading goes on after a signal
			stop := context.AfterFunc(ctx, func() { term.Restore(int(file.Fd()), state) })
			defer stop()
		}
		fmt.Fprint(streams.err, "API key: ")
		var typed []byte
		typed, err = term.ReadPassword(int(file.Fd()))
		line = string(typed)
		fmt.Fprintln(streams.err)
	} else {
		line, err = bufio.NewReader(io.LimitReader(streams.in, 4096)).ReadString('\n')
	}
	if key := strings.TrimSpace(line); key != "" {
		return key, nil
	}
	if err != nil && err != io.EOF {
		return "", err
	}
	return "", usageError{errors.New("an API key is needed: type it, pipe it in, or name its file with --key-file")}
}

type logoutCmd struct {
	Profile string `env:"RUNLENS_PROFILE" default:"default" placeholder:"NAME" help:"The name that they are kept under."`
}

func (logoutCmd) Help() string {
	return "Forgets the address and the key of a profile. The key stays valid: 'runlens keys revoke' ends it.\n\n" +
		"Example:\n  runlens logout --profile work"
}

func (c logoutCmd) Run(io streams) error {
	folder, err := profile.Home()
	if err != nil {
		return err
	}
	ok, err := folder.Forget(c.Profile)
	switch {
	case err != nil:
		return err
	case !ok:
		return usageError{fmt.Errorf("there is no profile %s", c.Profile)}
	}
	_, err = fmt.Fprintf(io.out, "forgot %s\n", c.Profile)
	return err
}
