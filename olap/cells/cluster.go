package cells

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.yaml.in/yaml/v3"
)

// ErrNoCluster is returned where a server knows no cluster of a name.
var ErrNoCluster = errors.New("the server knows no such cluster; system.clusters lists them")

// A Shard is one server of a ClickHouse cluster, of which each shard has one.
type Shard struct {
	Number uint32 `ch:"shard_num"`
	Host   string `ch:"host_name"`
	Port   uint16 `ch:"port"`
	Weight uint32 `ch:"shard_weight"`
}

// Shards are the shards of a cluster as a server's configuration has it, in their order. One with replicas is refused.
func Shards(ctx context.Context, conn driver.Conn, cluster string) (shards []Shard, err error) {
	err = conn.Select(ctx, &shards, "SELECT shard_num, host_name, port, shard_weight FROM system.clusters"+
		" WHERE cluster = {cluster:String} ORDER BY shard_num, replica_num", clickhouse.Named("cluster", cluster))
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	if len(shards) == 0 {
		return nil, ErrNoCluster
	}
	return shards, unreplicated(shards)
}

func unreplicated(shards []Shard) error {
	for i := 1; i < len(shards); i++ {
		if shards[i].Number == shards[i-1].Number {
			return fmt.Errorf("shard %d has several replicas: a cell is one server", shards[i].Number)
		}
	}
	return nil
}

// FileOf is a file of cells with one for each shard of a cluster, named after both. User, database and options are
// those of the URL of one of them; ports are the native protocol's. No password is in it.
func FileOf(cluster string, shards []Shard, of string) ([]byte, error) {
	from, err := url.Parse(of)
	if err != nil {
		return nil, errors.New("the URL of ClickHouse can't be read")
	}
	type entry struct {
		Name   string `yaml:"name"`
		URL    string `yaml:"url"`
		Weight uint32 `yaml:"weight"`
	}
	file := struct {
		Cells []entry `yaml:"cells"`
	}{}
	for _, s := range shards {
		name := fmt.Sprint(cluster, "-", s.Number)
		if !namePattern.MatchString(name) {
			return nil, fmt.Errorf("%q can't be the name of a cell: rename the cluster, or write the file by hand", name)
		}
		at := *from
		at.Scheme, at.Host = "clickhouse", net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port)))
		if from.User != nil {
			at.User = url.User(from.User.Username())
		}
		file.Cells = append(file.Cells, entry{name, at.String(), s.Weight})
	}
	return yaml.Marshal(file)
}
