package clickhousetest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/testcontainers/testcontainers-go"
	container "github.com/testcontainers/testcontainers-go/modules/clickhouse"

	"github.com/runlens/runlens/olap/clickhouse"
)

// startContainer starts a ClickHouse container and returns the URL of its native protocol, or, for an
// image that does not speak it, of HTTP. The container's password is set in both ways images know:
// by the official image's environment variables, and by the file our own engine reads. The reaper
// of testcontainers removes the container when the test process has ended.
func startContainer(ctx context.Context) (string, error) {
	const user, password = "runlens", "runlens"
	c, err := container.Run(ctx, cmp.Or(os.Getenv(imageVariable), defaultImage),
		container.WithUsername(user), container.WithPassword(password), container.WithDatabase(clickhouse.DefaultDatabase),
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader(password), ContainerFilePath: "/data/engine/password", FileMode: 0o600,
		}))
	if err != nil {
		return "", err
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
