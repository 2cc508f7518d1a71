package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/limit"
)

// sharedPerMinute is how many requests with links are answered in any minute, all together: a page of a dashboard with
// 24 panels takes 25.
const sharedPerMinute = 1200

// sharing says how links are made for what listens on an address.
func sharing(home profile.Folder, key string, address net.Addr) (*console.Share, error) {
	secret, err := home.LinkSecret()
	if err != nil {
		return nil, err
	}
	ofKey := hmac.New(sha256.New, secret)
	ofKey.Write([]byte(key))
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return nil, errors.New("--share: an address with a port is needed")
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	admitted := limit.NewWindow(sharedPerMinute, time.Minute)
	return &console.Share{
		URL:    "http://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port)),
		Secret: ofKey.Sum(nil),
		Admit: func(now time.Time) bool {
			ok, _ := admitted.Take(now)
			return ok
		},
	}, nil
}
