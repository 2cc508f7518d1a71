package main

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/http/limit/redistest"
)

// A server with a Redis keeps its limits there, and goes on, ready and without an error, when it is gone.
func TestServeWithRedis(t *testing.T) {
	redis := redistest.Start(t, "requirepass", "hunter2hunter2")
	flags := store(t)
	t.Setenv("RUNLENS_REDIS_URL", strings.Replace(redis.URL(), "unix://", "unix://:hunter2hunter2@", 1))
	base, admin, _ := started(t, append([]string{"--rate-limit-per-minute", "3"}, flags...)...)
	_, key := createKey(t, flags)
	shows := func(want string) bool {
		_, body := get(t, admin+"/metrics", "")
		return strings.Contains(body, "\n"+want+"\n")
	}
	if code, body := post(t, base, key, totals); code != 200 || !shows("runlens_redis_up 1") {
		t.Fatalf("%d %s", code, body)
	}
	names := redis.Do("-a", "hunter2hunter2", "--no-auth-warning", "KEYS", "*")
	if !strings.Contains(names, `"runlens:rate:{`) || !strings.Contains(names, `"runlens:verification:{`) {
		t.Errorf("Redis has %s", names)
	}
	redis.Kill()
	for _, want := range []int{200, 200, 429} {
		if code, body := post(t, base, key, totals); code != want {
			t.Errorf("without Redis: %d %s, want %d", code, body, want)
		}
	}
	if !shows("runlens_redis_up 0") || !shows("runlens_redis_decided_alone_total 2") {
		t.Error("the metrics don't say that Redis is away")
	}
	if code, body := get(t, admin+"/readyz", ""); code != 200 {
		t.Errorf("not ready without Redis: %d %s", code, body)
	}
	// It is no problem of the deployment for the doctor either.
	found := diagnose(t, exitDone, flags...)
	if told := found.told("redis"); !strings.HasPrefix(told, "warning: nothing listens at its address") {
		t.Errorf("the doctor says %q", told)
	}
	redis.Restart()
	if told := diagnose(t, exitDone, flags...).told("redis"); !strings.HasPrefix(told, "ok: ") {
		t.Errorf("the doctor says %q", told)
	}
	if !harness.Poll(t.Context(), time.Minute, 50*time.Millisecond, func() bool { return shows("runlens_redis_up 1") }) {
		t.Fatal("Redis is back, and the server doesn't see it")
	}
}

// An address that is none is wrong usage, in a line that doesn't repeat it.
func TestRedisAddresses(t *testing.T) {
	for _, address := range []string{"redis:6379", "http://:hunter2@redis", "redis://:hunter2@redis/x",
		"redis://:hunter2%zz@h"} {
		t.Setenv("RUNLENS_REDIS_URL", address)
		for _, args := range [][]string{{"serve"}, {"doctor", "--clickhouse-url", "http://127.0.0.1:1/x"}} {
			code, _, stderr := command(t, "", args...)
			if code != exitUsage || !strings.Contains(stderr, "--redis-url: no address such as redis://") ||
				strings.Contains(stderr, "hunter2") {
				t.Errorf("%s: exit code %d\n%s", args[0], code, stderr)
			}
		}
	}
}
