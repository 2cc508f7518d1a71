package clickhouse

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// reportTailBytes is how much of the end of an engine's log is read after a failure.
const reportTailBytes = 16 << 10

// explain turns a failed start into a sentence that says what to do. log is the end of what the engine
// wrote; it goes to the log, never into the sentence.
func explain(err error, log string) error {
	text := log + err.Error()
	switch {
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, "o space left on device"),
		strings.Contains(text, "NOT_ENOUGH_SPACE"):
		return fmt.Errorf("the disk of the data directory is full; free some space, or move the directory and set "+
			"RUNLENS_DATA_DIR: %w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("the data directory cannot be written; make it a directory of this user, or set RUNLENS_DATA_DIR "+
			"to another one: %w", err)
	case strings.Contains(text, "Cannot lock file"):
		return fmt.Errorf("the data directory is in use by another ClickHouse; stop that one, or set RUNLENS_DATA_DIR to "+
			"another directory: %w", err)
	case strings.Contains(text, "Cannot allocate memory"), strings.Contains(text, "MEMORY_LIMIT_EXCEEDED"):
		return fmt.Errorf("the engine has too little memory; raise RUNLENS_ENGINE_MEMORY or free some: %w", err)
	case strings.Contains(text, "Too many open files"):
		return fmt.Errorf("the engine may open too few files; raise the limit, 'ulimit -n' in a shell: %w", err)
	case strings.Contains(text, "Address already in use"), strings.Contains(text, "Cannot assign requested address"):
		return cannotListen(err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("the data directory is a link to what does not exist; make that, or set RUNLENS_DATA_DIR to "+
			"another directory: %w", err)
	case errors.Is(err, errNoVersion):
		return fmt.Errorf("the engine library does not work on this machine; remove it and run `runlens engine fetch`, or "+
			"set RUNLENS_ENGINE_LIB to another copy: %w", err)
	case strings.Contains(text, "necessary to have the grant"): // its user has what the binary knew that started it
		return fmt.Errorf("an older version of runlens started the engine, which does not allow it; end every process that "+
			"uses the data directory, so that this version starts it: %w", err)
	}
	return err
}

// unreached is why ClickHouse was not reached, without what the driver puts around it: its steps, the address with
// every setting, and pages of what answered instead.
func unreached(err error) error {
	var exception *clickhouse.Exception
	var unsent *url.Error
	var other *clickhouse.HTTPError
	switch {
	case errors.As(err, &exception):
	case errors.As(err, &unsent):
		return unsent.Err
	case errors.As(err, &other):
		return instead{other}
	case strings.Contains(err.Error(), "unexpected packet"):
		return fmt.Errorf("what answers does not speak the native protocol; for a port of HTTP the address begins with "+
			"http:// or https:// (%w)", err)
	}
	return err
}

// An instead is what answered in place of ClickHouse, without its pages.
type instead struct{ answer *clickhouse.HTTPError }

func (e instead) Error() string {
	return fmt.Sprintf("%s (HTTP %d)", likely(e.answer.StatusCode), e.answer.StatusCode)
}

func (e instead) Unwrap() error { return e.answer }

// likely says what gives an answer of a status that ClickHouse explains in a header, without that header.
func likely(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "what answers does not take this user and password, or is no ClickHouse"
	case status == http.StatusTooManyRequests:
		return "a gateway or load balancer answers, and lets no more statements through"
	case status >= http.StatusBadGateway: // 502 to 504, and those of gateways that have more
		return "a gateway or load balancer answers, and ClickHouse behind it does not"
	}
	return "what answers is no ClickHouse"
}

// diskFull reports whether the file system of dir has less space than an engine needs to come up, and perhaps too
// little to say so in its log.
func diskFull(dir string) bool {
	const enough = 1 << 20
	var stat syscall.Statfs_t
	return syscall.Statfs(dir, &stat) == nil && uint64(stat.Bavail)*uint64(stat.Bsize) < enough
}

// report is the end of what the engine wrote.
func (l layout) report() string { return tail(l.output()) + "\n" + tail(l.log()) }

// tail returns the last lines of the file at path, "" when there is no such file.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		file.Seek(max(0, size-reportTailBytes), io.SeekStart)
	}
	content, _ := io.ReadAll(file)
	return string(content)
}

// messageBytes is how much of a message of ClickHouse goes into the log.
const messageBytes = 500

// beginning is a message of ClickHouse without the stack trace that follows it, cut to messageBytes.
func beginning(message string) string {
	message, _, _ = strings.Cut(message, ", Stack trace")
	if len(message) > messageBytes {
		message = strings.ToValidUTF8(message[:messageBytes], "") + "…"
	}
	return message
}

// lastLines returns at most n last lines of text that are not stack frames.
func lastLines(text string, n int) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, ". ? @ 0x") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-n):], "\n")
}
