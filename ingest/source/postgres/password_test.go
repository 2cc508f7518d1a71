package postgres_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// asksForPasswords is a server that sends the passwords it is given, and takes none. It returns its host and port.
func asksForPasswords(t *testing.T, passwords chan<- string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b := pgproto3.NewBackend(conn, conn)
			if _, err := b.ReceiveStartupMessage(); err == nil {
				b.Send(&pgproto3.AuthenticationCleartextPassword{})
				b.Flush()
				b.SetAuthType(pgproto3.AuthTypeCleartextPassword)
			}
			if message, err := b.Receive(); err == nil {
				if given, ok := message.(*pgproto3.PasswordMessage); ok {
					passwords <- given.Password
				}
			}
			b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "no"})
			b.Flush()
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// A password that was rotated is read from its file at the next connection, once it is there.
func TestRotatedPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passwords")
	t.Setenv("PGPASSFILE", file)
	passwords := make(chan string, 10)
	address := "postgres://reader@" + asksForPasswords(t, passwords) + "/db?sslmode=disable"
	write := func(lines string) {
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const one, two = "127.0.0.1:*:*:reader:one\n", "127.0.0.1:*:*:reader:two\n"
	write(one)
	mapping, err := postgres.ParseMapping(postgres.DefaultMapping)
	if err != nil {
		t.Fatal(err)
	}
	database, err := postgres.Open(t.Context(), address, mapping)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	var given []string
	for _, lines := range []string{one, two, "", one} { // empty while it is written
		write(lines)
		if err := database.Check(t.Context()); err == nil || postgres.Retryable(err) {
			t.Errorf("a password that is refused: %v", err)
		}
		given = append(given, <-passwords)
	}
	if !slices.Equal(given, []string{"one", "two", "two", "one"}) {
		t.Errorf("given %q", given)
	}
}
