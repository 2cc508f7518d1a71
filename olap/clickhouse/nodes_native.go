package clickhouse

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/failure"
)

// nativeRevision is the revision of the protocol that the driver speaks with every server it can be used with.
const nativeRevision = clickhouse.ClientTCPProtocolVersion

type dialedKey struct{} // has a *net.Conn, for the connection that is made

// guardNative has every connection of a pool asked for the identity of its node between the handshake and the first
// statement. The driver dials by itself only without a DialContext, which has to do TLS as well.
func (n *nodes) guardNative(options *clickhouse.Options) {
	secure := options.TLS
	options.DialContext = func(ctx context.Context, addr string) (conn net.Conn, err error) {
		if secure == nil {
			conn, err = dialElsewhere(ctx, "tcp", addr)
		} else {
			dialer := &tls.Dialer{NetDialer: elsewhere, Config: ofServer(secure, addr)}
			conn, err = dialer.DialContext(ctx, "tcp", chosen(ctx, addr))
		}
		if dialed, ok := ctx.Value(dialedKey{}).(*net.Conn); ok && err == nil {
			*dialed = conn
		}
		return conn, err
	}
	options.DialStrategy = func(ctx context.Context, id int, options *clickhouse.Options, dial clickhouse.Dial) (
		clickhouse.DialResult, error,
	) {
		checked := func(ctx context.Context, addr string, options *clickhouse.Options) (r clickhouse.DialResult, err error) {
			_, err = n.checkNative(ctx, func(ctx context.Context) error {
				r, err = dial(ctx, addr, options)
				return err
			})
			if failure.CodeOf(err) == failure.CodeUnknownDatabase {
				if other := n.checkWithoutDatabase(ctx, addr, *options, dial); errors.Is(other, ErrOtherNode) {
					err = other
				}
			}
			return r, err
		}
		return clickhouse.DefaultDialStrategy(ctx, id, options, checked)
	}
}

// checkWithoutDatabase checks a node that lacks the database, and therefore refuses a connection to it.
func (n *nodes) checkWithoutDatabase(
	ctx context.Context, addr string, options clickhouse.Options, dial clickhouse.Dial,
) error {
	options.Auth.Database = ""
	conn, err := n.checkNative(ctx, func(ctx context.Context) error {
		_, err := dial(ctx, addr, &options)
		return err
	})
	if err == nil {
		conn.Close()
	}
	return err
}

// checkNative makes a connection and asks it for the identity of its node. It closes the connection when that fails.
func (n *nodes) checkNative(ctx context.Context, connect func(context.Context) error) (conn net.Conn, err error) {
	err = connect(context.WithValue(ctx, dialedKey{}, &conn))
	if err == nil {
		err = within(ctx, conn, func() error {
			answer, err := queryNative(conn, n.statement)
			if err != nil {
				return err
			}
			return n.check(answer)
		})
	}
	if err != nil && conn != nil {
		conn.Close()
	}
	return conn, err
}

// queryNative runs a statement whose answer is one string, on an idle connection after the handshake, and leaves it
// idle: after the end of an answer the server sends nothing until it is asked again.
func queryNative(conn net.Conn, statement string) (string, error) {
	var request proto.Buffer
	proto.Query{Body: statement, Stage: proto.StageComplete, Info: proto.ClientInfo{
		ProtocolVersion: nativeRevision, Interface: proto.InterfaceTCP, Query: proto.ClientQueryInitial,
		InitialAddress: conn.LocalAddr().String(), ClientName: "runlens",
	}}.EncodeAware(&request, nativeRevision)
	proto.ClientCodeData.Encode(&request) // no external tables
	proto.ClientData{}.EncodeAware(&request, nativeRevision)
	proto.Block{}.EncodeAware(&request, nativeRevision)
	if _, err := conn.Write(request.Buf); err != nil {
		return "", err
	}
	answer := ""
	for reader := proto.NewReader(conn); ; {
		code, err := reader.UVarInt()
		if err != nil {
			return "", err
		}
		switch code := proto.ServerCode(code); code {
		case proto.ServerCodeEndOfStream:
			return answer, nil
		case proto.ServerCodeData:
			var text proto.ColStr
			if err := readBlock(reader, proto.Results{{Data: &text}}); err != nil {
				return "", err
			}
			if text.Rows() > 0 {
				answer = text.First()
			}
		case proto.ServerCodeTotals, proto.ServerCodeExtremes, proto.ServerCodeLog, proto.ServerProfileEvents:
			err = readBlock(reader, new(proto.Results).Auto())
		case proto.ServerCodeProgress:
			err = new(proto.Progress).DecodeAware(reader, nativeRevision)
		case proto.ServerCodeProfile:
			err = new(proto.Profile).DecodeAware(reader, nativeRevision)
		case proto.ServerCodeException:
			var e proto.Exception
			if err = e.DecodeAware(reader, nativeRevision); err == nil {
				err = &clickhouse.Exception{Code: int32(e.Code), Name: e.Name, Message: e.Message}
			}
		default:
			err = fmt.Errorf("ClickHouse answers with packet %d", code)
		}
		if err != nil {
			return "", err
		}
	}
}

// readBlock reads a block after its packet's code.
func readBlock(reader *proto.Reader, into proto.Result) error {
	if _, err := reader.Str(); err != nil { // the name of a table; always empty
		return err
	}
	return new(proto.Block).DecodeBlock(reader, nativeRevision, into)
}

// A nativeConnector makes the connections of a database/sql handle, for which the driver has no DialStrategy.
type nativeConnector struct {
	sqldriver.Connector
	nodes *nodes
}

// Connect is part of driver.Connector.
func (c nativeConnector) Connect(ctx context.Context) (conn sqldriver.Conn, err error) {
	_, err = c.nodes.checkNative(ctx, func(ctx context.Context) error {
		conn, err = c.Connector.Connect(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// openDB returns a database/sql handle whose connections are checked as those of the pool are.
func (n *nodes) openDB(options *clickhouse.Options) *sql.DB {
	if n == nil || options.Protocol == clickhouse.HTTP {
		return clickhouse.OpenDB(options)
	}
	db := sql.OpenDB(nativeConnector{clickhouse.Connector(options), n})
	db.SetMaxIdleConns(options.MaxIdleConns)
	db.SetMaxOpenConns(options.MaxOpenConns)
	return db
}
