package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const (
	// nobody is the other user, who owns nothing.
	nobody = 65534
	// spyings is how often the other user tries everything.
	spyings        = 8
	spyingPatience = 2 * time.Minute
	// mostPaths bounds the paths that are tried at once.
	mostPaths = 2000
)

// A stranger is what another user of the machine could read.
type stranger struct {
	program, probe string // of the other user; empty where nobody can become another user
	tried          counts
	read           examples
	runs           int
}

// openToStrangers lets other users pass the folders above the data directory, and list the directory itself: what
// is in it has to keep them out by itself.
func (g *siege) openToStrangers() error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir := g.target.dir
	for _, folder := range []string{g.folder.Dir, dir, g.target.product.DataDir} {
		if err := os.Chmod(folder, 0o755); err != nil {
			return err
		}
	}
	// What `go run` built is in a folder that nobody else may enter.
	own, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(own)
	if err != nil {
		return err
	}
	defer from.Close()
	g.stranger.program = filepath.Join(dir, "stranger")
	to, err := os.OpenFile(g.stranger.program, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	g.stranger.probe = filepath.Join(dir, "probe")
	return errors.Join(err, to.Close(), os.WriteFile(g.stranger.probe, nil, 0o644))
}

// trySpying has another user try everything, several times.
func (g *siege) trySpying(ctx, end context.Context) {
	if g.stranger.program == "" {
		return
	}
	for wait := g.SiegeFor / spyings / 2; harness.Pause(end, wait); wait = g.SiegeFor / spyings {
		if err := g.spy(ctx); err != nil && ctx.Err() == nil {
			g.stranger.read.add("it is not known: %v", err)
		}
	}
}

// spy runs the stranger once.
func (g *siege) spy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, spyingPatience)
	defer cancel()
	engine, err := g.target.product.AwaitEngine(ctx)
	if err != nil {
		return err
	}
	admin, err := g.target.server.AdminAddress()
	if err != nil {
		return err
	}
	task, err := json.Marshal(strangerTask{Probe: g.stranger.probe, Paths: pathsBelow(g.target.product.DataDir),
		Engine: engine.Addr, Admin: admin, API: g.target.server.Address, PIDs: []int{g.target.server.PID(), engine.PID}})
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, g.stranger.program, strangerCommand)
	command.Dir, command.Env, command.Stdin = "/", []string{}, bytes.NewReader(task)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := command.Output()
	if err != nil {
		return err
	}
	var found strangerFinding
	if err := json.Unmarshal(out, &found); err != nil {
		return err
	}
	if found.UID != nobody || !found.Probe {
		return fmt.Errorf("user %d, who reads what everybody may: %v", found.UID, found.Probe)
	}
	g.stranger.runs++
	for kind, times := range found.Tried {
		g.stranger.tried.addAll(kind, times)
	}
	for _, what := range found.Read {
		g.stranger.read.add("%s", what)
	}
	for _, name := range []string{"engine/password", "admin.token"} {
		secret, _ := os.ReadFile(filepath.Join(g.target.product.DataDir, name)) // some versions have none
		if text := strings.TrimSpace(string(secret)); text != "" && strings.Contains(found.Seen, text) {
			g.stranger.read.add("processes: the text of %s", name)
		}
	}
	return nil
}

// pathsBelow are the files, folders and sockets below a folder, up to mostPaths.
func pathsBelow(folder string) (paths []string) {
	filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if len(paths) == mostPaths {
			return fs.SkipAll
		}
		if err == nil && path != folder { // else it is gone again
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

func (o *stranger) report(g *siege) {
	if o.program == "" {
		g.see("what another user could read", "not tried: only root can become another user")
		return
	}
	g.see("tries of another user", "%d times: %s", o.runs, &o.tried)
	g.hold("times that another user tried everything", fmt.Sprint(o.runs), "at least 1", o.runs > 0)
	g.none("what another user could read", &o.read)
}
