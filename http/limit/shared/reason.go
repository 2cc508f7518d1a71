package shared

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// reasons says what the first word of an error of Redis means.
var reasons = map[string]string{
	"NOAUTH":      "it requires a password",
	"WRONGPASS":   "it refuses the user's name or password",
	"NOPERM":      "the user may not do what is needed",
	"READONLY":    "it is a read-only replica",
	"OOM":         "its memory is full",
	"LOADING":     "it is loading its data",
	"BUSY":        "it runs somebody's script",
	"MISCONF":     "it can't save its data, and takes none",
	"MASTERDOWN":  "it is a replica without a primary",
	"NOREPLICAS":  "it has not enough replicas to take data",
	"CLUSTERDOWN": "the cluster is down",
	"MOVED":       "it is a node of a cluster; add the parameter addr, with another node, to the address",
}

var code = regexp.MustCompile(`^-?[A-Z]{2,20}$`)

// reason is why Redis failed, in words of our own: what others wrote could hold anything.
func reason(err error) string {
	var reply redis.Error
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, redis.ErrPoolTimeout):
		return "it doesn't answer in time"
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case errors.As(err, &name):
		return "its name can't be resolved"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return "nothing listens at its address"
	case errors.As(err, &reply):
		word, _, _ := strings.Cut(reply.Error(), " ")
		if known := reasons[word]; known != "" {
			return known
		}
		if code.MatchString(word) {
			return "it answers " + word
		}
	}
	return "the connection failed"
}
