package clickhousetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/testcontainers/testcontainers-go"
	container "github.com/testcontainers/testcontainers-go/modules/clickhouse"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/runlens/runlens/olap/clickhouse"
)

// startContainer starts a ClickHouse container and returns the URL of its native protocol, or, for an image that does
// not speak it, of HTTP. The official image takes the password from its environment; our own engine makes one, which is
// read from its file. The container is ready when HTTP gives any answer: our engine's is 404 to clients without the
// password. The reaper of testcontainers removes the container when the test process has ended.
func startContainer(ctx context.Context) (string, error) {
	const user = "runlens"
	password := "runlens"
	anyAnswer := wait.ForHTTP("/").WithPort("8123/tcp").WithStatusCodeMatcher(func(int) bool { return true })
	c, err := container.Run(ctx, cmp.Or(os.Getenv(imageVariable), defaultImage),
		container.WithUsername(user), container.WithPassword(password), container.WithDatabase(clickhouse.DefaultDatabase),
		testcontainers.WithWaitStrategy(anyAnswer))
	if err != nil {
		return "", err
	}
	if file, err := c.CopyFileFromContainer(ctx, "/data/engine/password"); err == nil {
		made, err := io.ReadAll(file)
		file.Close()
		if err != nil {
			return "", err
		}
		password = string(made)
	}
	for _, protocol := range []struct{ scheme, port string }{{"clickhouse", "9000/tcp"}, {"http", "8123/tcp"}} {
		var host, url string
		if host, err = c.PortEndpoint(ctx, protocol.port, ""); err != nil {
			return "", err
		}
		url = fmt.Sprintf("%s://%s:%s@%s/%s", protocol.scheme, user, password, host, clickhouse.DefaultDatabase)
		var server *clickhouse.Server
		if server, err = clickhouse.Open(ctx, clickhouse.Config{URL: url}); err == nil {
			return url, server.Close()
		}
	}
	return "", err
}
