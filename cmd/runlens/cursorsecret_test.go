package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest/logtest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// A running server takes over a secret that the store got meanwhile, and cursors of both are accepted.
func TestARunningServerFollowsTheStoresSecrets(t *testing.T) {
	flags := store(t)
	ingestTwoDays(t, flags)
	joined, err := openMigrated(context.Background(), storeFlags{DataDir: flags[1], EngineLib: flags[3]},
		slog.New(slog.DiscardHandler))
	must(t, err)
	defer joined.Close()
	ctx, cancel := context.WithCancel(context.Background())
	conn := joined.Conn()
	first, err := olap.CursorSecrets(ctx, conn)
	must(t, err)
	run := func(engine *olap.Engine, body string) (cursor string, err error) {
		t.Helper()
		q, err := query.Parse([]byte(body))
		must(t, err)
		result, err := engine.Run(ctx,
			olap.Request{Access: schema.WholeOrganization("acme"), Query: q, QueryID: uuid.New(), RequestID: "r", KeyID: "k"})
		if err != nil {
			return "", err
		}
		return jsonField(t, result.AppendJSON(nil), "cursor"), nil
	}
	running := olap.NewEngine(conn, first...)
	before, err := run(running, firstDay+"}")
	must(t, err)
	// A rotation of some time ago, which signs already, of which this server has not heard.
	if err := conn.Exec(ctx, "INSERT INTO secrets (name, value, created_at) SELECT 'cursor/2', 'a secret of later', "+
		"now64(9) - INTERVAL 1 DAY"); err != nil {
		t.Fatal(err)
	}
	second, err := olap.CursorSecrets(ctx, conn)
	if err != nil || len(second) != 2 || string(second[0]) != "a secret of later" {
		t.Fatal(len(second), err)
	}
	after, err := run(olap.NewEngine(conn, second...), firstDay+"}")
	must(t, err)
	if _, err := run(running, firstDay+`,"cursor":"`+after+`"}`); err == nil {
		t.Fatal("the new secret is known before it was read")
	}
	ended := make(chan struct{})
	go func() {
		followCursorSecrets(ctx, conn, running, time.Millisecond, slog.New(slog.DiscardHandler))
		close(ended)
	}()
	if !harness.Poll(t.Context(), 30*time.Second, 10*time.Millisecond, func() bool {
		_, err := run(running, firstDay+`,"cursor":"`+after+`"}`)
		return err == nil
	}) {
		t.Fatal("the new secret is not taken over")
	}
	if _, err := run(running, firstDay+`,"cursor":"`+before+`"}`); err != nil {
		t.Errorf("a cursor from before the rotation: %v", err)
	}
	cancel()
	<-ended
}

// jsonField is a text in a JSON object.
func jsonField(t *testing.T, object []byte, name string) string {
	t.Helper()
	var fields map[string]any
	must(t, json.Unmarshal(object, &fields))
	text, _ := fields[name].(string)
	return text
}

// A mute is a ClickHouse whose answers are lost.
type mute struct{ driver.Conn }

func (mute) Select(ctx context.Context, _ any, _ string, _ ...any) error {
	<-ctx.Done()
	return ctx.Err()
}

// An answer that is lost doesn't keep a server from reading the secrets again.
func TestSecretsAreReadAgainAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), olap.CursorSecretDelay)
		defer cancel()
		var log logtest.Buffer
		followCursorSecrets(ctx, mute{}, nil, cursorSecretPoll, slog.New(slog.NewTextHandler(&log, nil)))
		if !strings.Contains(log.String(), "the cursor secrets could not be read again") {
			t.Errorf("it waited for all of %v: %q", olap.CursorSecretDelay, log.String())
		}
	})
}
