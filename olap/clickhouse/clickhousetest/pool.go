package clickhousetest

import (
	"context"
	"log/slog"
	"os"
	"path"
	"sync"

	"github.com/runlens/runlens/olap/clickhouse"
)

// servers are those of this test binary.
var servers = newPool()

// A pool lends servers to tests, to one at a time each: what runs in one database is in the list of what runs on the
// server. It starts an engine when no other is free, so that there are as many as tests run side by side. Of a server
// that was named, or runs in a container, there is one, for which tests wait.
type pool struct {
	mu       sync.Mutex
	returned *sync.Cond
	only     bool // there is one server
	free     []clickhouse.Config
	lent     map[string]*loan // by test
}

func newPool() *pool {
	p := &pool{lent: map[string]*loan{}}
	p.returned = sync.NewCond(&p.mu)
	return p
}

// A loan is a server that a test has until it has given it back as often as it took it.
type loan struct {
	config clickhouse.Config
	taken  int
}

// lend returns the configuration of the server of a test, which is the one that a test around it has, and what gives it
// back.
func (p *pool) lend(test string) (_ clickhouse.Config, giveBack func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for outer := test; outer != "."; outer = path.Dir(outer) {
		if p.lent[outer] != nil {
			test = outer
			break
		}
	}
	l := p.lent[test]
	if l == nil {
		l = &loan{}
		if l.config, err = p.take(); err != nil {
			return l.config, nil, err
		}
		p.lent[test] = l
	}
	l.taken++
	return l.config, func() { p.takeBack(test) }, nil
}

// take returns a server that nobody has.
func (p *pool) take() (config clickhouse.Config, err error) {
	for p.only && len(p.free) == 0 {
		p.returned.Wait()
	}
	if last := len(p.free) - 1; last >= 0 {
		config, p.free = p.free[last], p.free[:last]
		return config, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	config, err = start(ctx)
	p.only = err == nil && config.URL != ""
	return config, err
}

func (p *pool) takeBack(test string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lent[test]
	if l.taken--; l.taken == 0 {
		p.free = append(p.free, l.config)
		delete(p.lent, test)
		p.returned.Signal()
	}
}

func start(ctx context.Context) (clickhouse.Config, error) {
	config := clickhouse.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr,
		&slog.HandlerOptions{Level: slog.LevelWarn}))}
	var err error
	switch {
	case os.Getenv(urlVariable) != "":
		config.URL = os.Getenv(urlVariable)
	case os.Getenv(containerVariable) == "1":
		config.URL, err = startContainer(ctx)
	default:
		err = startEngine(ctx, &config)
	}
	return config, err
}
