package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/completion"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
)

type completionCmd struct {
	Shell string `arg:"" enum:"${shells}" help:"The shell: bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `Prints a script that makes Tab complete commands, flags, members of the catalog, values of filters such as
agents, time zones, profiles and saved questions. A Tab asks the server that 'runlens query' would ask, for a second
at most. Put the script where the shell finds it, or have the shell read it: source <(runlens completion bash).

Example:
  runlens completion bash > ~/.local/share/bash-completion/completions/runlens
  runlens completion zsh > "${fpath[1]}/_runlens"
  runlens completion fish > ~/.config/fish/completions/runlens.fish`
}

func (c completionCmd) Run(io streams) error {
	_, err := fmt.Fprint(io.out, completion.Script(c.Shell))
	return err
}

// tabPatience is longer in tests, which a busy machine must not keep from finding values.
var tabPatience = completion.Patience

// complete answers a script of completionCmd.
func complete(ctx context.Context, program *kong.Application, words []string, io streams) {
	folder, _ := profile.Home()
	values := completion.Values{Server: typedServer, Home: folder, Now: time.Now}
	if caches, err := os.UserCacheDir(); err == nil {
		values.Cache = filepath.Join(caches, "runlens")
	}
	completer := completion.Completer{Program: program, Describe: describe, Values: values, Patience: tabPatience}
	completer.Answer(ctx, words, io.out)
}

// typedServer is the server of a command line that is not complete yet. Nothing is sent twice: the person waits.
func typedServer(line *completion.Line) (*client.Client, error) {
	flags := serverFlags{URL: line.Value("url"), KeyFile: line.Value("key-file"), Profile: line.Value("profile")}
	given := make(map[string]bool)
	for _, name := range []string{"url", "key-file", "profile"} {
		given[name] = line.Given(name)
	}
	server, err := flags.server(given)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: server.URL, Key: server.Key, UserAgent: "runlens-completion/" + version,
		MaxWait: -1})
}
