package write

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// retryableCodes are ClickHouse's codes of conditions that pass by themselves.
var retryableCodes = []int32{
	159, // TIMEOUT_EXCEEDED
	202, // TOO_MANY_SIMULTANEOUS_QUERIES
	209, // SOCKET_TIMEOUT
	210, // NETWORK_ERROR
	225, // NO_ZOOKEEPER
	241, // MEMORY_LIMIT_EXCEEDED
	242, // TABLE_IS_READ_ONLY, while a replica reconnects to its keeper
	252, // TOO_MANY_PARTS
	285, // TOO_FEW_LIVE_REPLICAS
	319, // UNKNOWN_STATUS_OF_INSERT
	999, // KEEPER_EXCEPTION
}

// Retryable reports whether the same insert may succeed later: the list is closed, everything else
// needs a person.
func Retryable(err error) bool {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		return slices.Contains(retryableCodes, exception.Code)
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, clickhouse.ErrAcquireConnTimeout)
}
