package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/logs"
)

type resolved struct{}

func (resolved) LogValue() slog.Value { return slog.StringValue(long) }

var long = strings.Repeat("é", 8000)

// However long the texts of a record are, and wherever they stand: a line stays short, is valid UTF-8, and says what is
// left out. What is short stays as it is.
func TestNoFieldIsLong(t *testing.T) {
	for name, attribute := range map[string]slog.Attr{
		"text":     slog.String("method", long),
		"error":    slog.Any("last", errors.New(long)),
		"list":     slog.Any("refuted", []string{long, long}),
		"map":      slog.Any("by", map[string]string{long: long}),
		"channel":  slog.Any("by", struct{ A, B any }{long, make(chan int)}),
		"resolved": slog.Any("by", resolved{}),
		"group":    slog.Group("strategy", slog.String("reads", long), slog.Group("in", slog.Any("e", errors.New(long)))),
	} {
		var out bytes.Buffer
		logger := slog.New(logs.Bounded(slog.NewJSONHandler(&out, nil)))
		logger.WithGroup("group").With(attribute).Info("short", attribute, "n", 7)
		if n := out.Len(); n > 2000 || !json.Valid(out.Bytes()) || strings.Contains(out.String(), `\ufffd`) ||
			!strings.Contains(out.String(), "bytes more)") || !strings.Contains(out.String(), `"n":7`) {
			t.Errorf("%s: %d bytes: %.3000s", name, n, &out)
		}
	}
	var out bytes.Buffer
	logger := slog.New(logs.Bounded(slog.NewJSONHandler(&out, nil)))
	logger.Info(strings.Repeat("message ", 8000), "cause", "panic: x\n"+strings.Repeat("frame\n", 8000))
	if n := out.Len(); n < 16<<10 || n > 20<<10 {
		t.Errorf("a message and a cause take %d bytes", n)
	}
}

func TestShortFieldsStay(t *testing.T) {
	var got, want bytes.Buffer
	record := slog.NewRecord(time.Time{}, slog.LevelWarn, "message", 0)
	record.Add("text", strings.Repeat("x", 256), "list", []string{"a", "b"}, "error", errors.New("failed"),
		slog.Group("group", "n", 7), "none", nil)
	if err := logs.Bounded(slog.NewJSONHandler(&got, nil)).Handle(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if err := slog.NewJSONHandler(&want, nil).Handle(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got  %s\nwant %s", &got, &want)
	}
}

func TestDurationsAreText(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(logs.Bounded(slog.NewJSONHandler(&out, nil)))
	logger.With("for", time.Minute).Info("m", "took", 1500*time.Millisecond, slog.Group("in", "by", -time.Second))
	if want := `"msg":"m","for":"1m0s","took":"1.5s","in":{"by":"-1s"}}`; !strings.HasSuffix(out.String(), want+"\n") {
		t.Errorf("got %s want …%s", &out, want)
	}
}
