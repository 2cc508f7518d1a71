package clickhouse

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// What the engine and the system say, and the words a user needs to hear.
func TestExplain(t *testing.T) {
	plain := errors.New("plain")
	for _, test := range []struct {
		name string
		err  error
		log  string
		want string
	}{
		{"our own write", &fs.PathError{Op: "write", Path: "p", Err: syscall.ENOSPC}, "",
			"disk of the data directory is full"},
		{"the engine's write", plain, "std::exception. Code: 1001, type: std::__1::__fs::filesystem::filesystem_error, " +
			"e.what() = No space left on device", "disk of the data directory is full"},
		{"the engine's reservation", plain,
			"Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)",
			"disk of the data directory is full"},
		{"no right", &fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES}, "", "cannot be written"},
		{"read-only disk", &fs.PathError{Op: "open", Path: "p", Err: syscall.EROFS}, "", "cannot be written"},
		{"another server's data", plain, "Code: 76. DB::Exception: Cannot lock file /d/status. Another server instance in " +
			"same directory is already running. (CANNOT_OPEN_FILE)", "in use by another ClickHouse"},
		{"a taken address", plain, "Net Exception: Address already in use: 127.0.0.1:23456", "--listen"},
		{"another machine's address", plain, "Net Exception: Cannot assign requested address: 10.9.9.9:1", "--listen"},
		{"too few files", plain, "Code: 76. DB::ErrnoException: errno: 24, strerror: Too many open files", "ulimit -n"},
		{"a link to nothing", &fs.PathError{Op: "mkdir", Path: "p", Err: syscall.EEXIST}, "", "a link to what"},
		{"an older binary's engine", plain, "Code: 497. DB::Exception: runlens: Not enough privileges. To execute this " +
			"query, it's necessary to have the grant BACKUP ON runlens.agents. (ACCESS_DENIED)", "this version starts it"},
		{"anything else", plain, "Code: 1", "plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := explain(test.err, test.log)
			if !strings.Contains(got.Error(), test.want) {
				t.Errorf("%q does not say %q", got, test.want)
			}
			if !errors.Is(got, test.err) {
				t.Errorf("%q has lost its cause", got)
			}
			if test.log != "" && strings.Contains(got.Error(), "DB::Exception") {
				t.Errorf("%q repeats the engine's text", got)
			}
		})
	}
}

func TestLastLinesLeaveStackFramesOut(t *testing.T) {
	text := "one\ntwo\n\n0. ? @ 0x000000001c8fa4b3\n1. ? @ 0x000000000ef1e3de\nthree\n"
	if got, want := lastLines(text, 2), "two\nthree"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lastLines("", 2); got != "" {
		t.Errorf("%q of nothing", got)
	}
}

func TestBeginningHasNoStackTrace(t *testing.T) {
	text := "Code: 243. DB::Exception: no space. (NOT_ENOUGH_SPACE), Stack trace (always include the lines below):\n\n" +
		"0. ? @ 0x000000001c8fa4b3\n (version 26.7.2.1)"
	if got, want := beginning(text), "Code: 243. DB::Exception: no space. (NOT_ENOUGH_SPACE)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	most := strings.Repeat("a", messageBytes-1)
	if got, want := beginning(most+"åb"), most+"…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNewer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"26.8.1.1", "26.7.2.1", true},
		{"27.1.1.1", "26.7.2.1", true},
		{"26.7.9.1", "26.7.2.1", false},
		{"26.6.1.1", "26.7.2.1", false},
		{"25.12.1.1", "26.7.2.1", false},
		{"", "26.7.2.1", false},
	} {
		if got := newer(test.a, test.b); got != test.want {
			t.Errorf("newer(%q, %q) = %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

func TestServerOptions(t *testing.T) {
	for _, test := range []struct {
		url      string
		protocol string
		tls      bool
		database string
	}{
		{"clickhouse://u:p@h:9000/d", "native", false, "d"},
		{"clickhouse://u:p@h:9440/d?secure=true", "native", true, "d"},
		{"http://u:p@h:8123/d", "http", false, "d"},
		{"https://u:p@h:8443", "http", true, ""},
	} {
		o, err := serverOptions(Config{URL: test.url})
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		got := fmt.Sprint([]any{o.Protocol, o.TLS != nil, o.Auth.Database, o.Auth.Username, o.Auth.Password, o.Addr[0][:1],
			o.Settings["async_insert"], o.Compression.Method})
		want := fmt.Sprint([]any{test.protocol, test.tls, test.database, "u", "p", "h", 0, "lz4"})
		if got != want {
			t.Errorf("%s: %s, want %s", test.url, got, want)
		}
	}
}
