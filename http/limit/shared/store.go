// Package shared keeps the windows of package limit in Redis, so that they hold over all servers that share it.
//
//  1. A hit first takes its place in the server's own window. One that has none there is refused.
//  2. Then a script in Redis takes it into the window of all servers, or refuses it (script.lua has limit's rule).
//     A refusal gives the place in the own window back.
//  3. Where Redis fails or does not answer within a patience, the own window has decided. Redis then counts as away:
//     nobody waits for it until Follow, which tries every second, finds that it works again.
//
// So no server ever admits more than the limit in any span, whatever becomes of Redis, and while Redis is there all
// servers together don't. What Redis said of a full window is kept until a hit leaves it: floods don't reach Redis.
package shared

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/runlens/runlens/http/limit"
)

// Patience is the usual patience of a server: far longer than a Redis takes, and hardly noticed once.
const Patience = 250 * time.Millisecond

// prefix is how the names of all keys in Redis begin.
const prefix = "runlens:"

//go:embed script.lua
var source string

var script = redis.NewScript(source)

// ErrAddress is returned for what is no address of a Redis. It does not repeat the address, which may hold a password.
var ErrAddress = errors.New("no address such as redis://host:6379/0, rediss://host:6379 or unix:///run/redis.sock")

// A Store is a Redis, or a Redis Cluster. It is safe for concurrent use.
type Store struct {
	client   redis.UniversalClient
	logger   *slog.Logger
	patience time.Duration

	away  atomic.Bool
	local atomic.Uint64 // hits that were admitted without Redis
	went  chan struct{} // Redis went away

	mu     sync.Mutex
	since  time.Time // when it went
	alone  uint64    // local, when it went
	failed string    // the tag for which it failed
}

// Open returns the store at an address: redis://user:password@host:port/database, rediss:// for TLS, or unix:///path.
// An address with parameters addr, each another node, is that of a Redis Cluster. A Redis that is away is no error. The
// error is ErrAddress. The patience is the longest that one hit waits for Redis, connecting included.
func Open(address string, patience time.Duration, logger *slog.Logger) (*Store, error) {
	options, err := parse(address)
	if err != nil {
		return nil, ErrAddress
	}
	// Nothing is tried twice: whoever waits has the own window.
	options.MaxRetries, options.DialerRetries, options.ContextTimeoutEnabled = -1, 1, true
	// Nothing is sent but what the script needs.
	options.Protocol, options.DisableIdentity, options.PipelinePoolSize = 2, true, -1
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	silence()
	return &Store{client: redis.NewUniversalClient(options), logger: logger, patience: patience,
		went: make(chan struct{}, 1)}, nil
}

// silence keeps go-redis from writing to standard error: the store logs in words of its own.
var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// parse reads an address. Its error may hold a password.
func parse(address string) (*redis.UniversalOptions, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Host == "" && u.Scheme != "unix" {
		return nil, errors.New("no host")
	}
	parameters := u.Query()
	for name := range parameters {
		if !slices.Contains([]string{"addr", "db", "pool_size", "skip_verify"}, name) {
			return nil, errors.New("an unknown parameter")
		}
	}
	nodes := parameters["addr"]
	parameters.Del("addr")
	u.RawQuery = parameters.Encode()
	one, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	return &redis.UniversalOptions{
		Addrs: append([]string{one.Addr}, nodes...), Username: one.Username,
		Password: one.Password, DB: one.DB, TLSConfig: one.TLSConfig, PoolSize: one.PoolSize,
	}, nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// run runs the script on the key of a name and a tag. A tag in braces alone says which node of a cluster has the key.
func (s *Store) run(name, tag string, most int, span time.Duration, take bool) (bool, limit.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	hits := 0
	if take {
		hits = 1
	}
	key := prefix + name + ":{" + tag + "}"
	reply, err := script.Run(ctx, s.client, []string{key}, most, span.Microseconds(), hits).Int64Slice()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("the script returned %d numbers", len(reply))
	}
	if err != nil {
		return false, limit.State{}, err
	}
	state := limit.State{Limit: most, Remaining: int(reply[1]), Reset: time.Duration(reply[2]) * time.Microsecond}
	return reply[0] == 1, state, nil
}

// Try returns why Redis doesn't work, in words that name no secret, or nothing. It does all that a hit needs.
func (s *Store) Try() string {
	if err := s.try(); err != nil {
		return reason(err)
	}
	return ""
}

// try does what a hit of the tag does for which Redis failed: in a cluster, on the same node.
func (s *Store) try() error {
	s.mu.Lock()
	tag := s.failed
	s.mu.Unlock()
	_, _, err := s.run("try", tag, 1, time.Millisecond, true)
	return err
}
