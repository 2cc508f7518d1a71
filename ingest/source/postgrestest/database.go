package postgrestest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// attach makes a database on the server of the URL named.
func attach(ctx context.Context, named string) (*Server, error) {
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("%s must be a postgres:// URL", urlVariable) // not the error: it has the password
	}
	s := &Server{admin: named, database: "test_" + randomName()}
	u.Path = "/" + s.database
	s.url = u.String()
	return s, execute(ctx, named, "CREATE DATABASE "+quoted(s.database))
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return cmp.Or(err, conn.Close(ctx))
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func randomName() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}
