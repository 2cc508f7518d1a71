package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A way is how the attacker and the victim reach the server.
type way struct {
	name   string
	dial   dial
	direct bool // no proxy between
	close  func()
}

// sharedConnections are few, so that requests of different clients follow each other on one.
const sharedConnections = 2

// goProxy is the standard library's reverse proxy.
func goProxy(address string) (way, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return way{}, err
	}
	upstream := &url.URL{Scheme: "http", Host: address}
	quiet := log.New(io.Discard, "", 0)
	transport := &http.Transport{MaxConnsPerHost: sharedConnections, MaxIdleConnsPerHost: sharedConnections}
	server := &http.Server{ErrorLog: quiet, ReadHeaderTimeout: answerPatience, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }, Transport: transport, ErrorLog: quiet,
	}}
	go server.Serve(listener) // ends with Close
	return way{name: "Go's reverse proxy", dial: dialTCP(listener.Addr().String()), close: func() { server.Close() }}, nil
}

// nginxConfig listens on two sockets: one reads a body before it passes it on, one while it comes.
const nginxConfig = `%[1]s
worker_processes 1;
pid %[2]s/nginx.pid;
error_log %[2]s/nginx.log;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path %[2]s/body;
    proxy_temp_path %[2]s/proxy;
    fastcgi_temp_path %[2]s/fastcgi;
    uwsgi_temp_path %[2]s/uwsgi;
    scgi_temp_path %[2]s/scgi;
    client_max_body_size 64m;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    upstream runlens { server %[3]s; keepalive %[4]d; }
    server { listen unix:%[2]s/reads.sock; location / { proxy_pass http://runlens; } }
    server { listen unix:%[2]s/streams.sock; location / { proxy_pass http://runlens; proxy_request_buffering off; } }
}
`

// nginxProxies are a real nginx, when there is one on the PATH: as it is by default, and passing bodies on while they
// come.
func nginxProxies(ctx context.Context, address string) ([]way, error) {
	program, err := exec.LookPath("nginx")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "soak-nginx-") // the paths of sockets are short
	if err != nil {
		return nil, err
	}
	user := "" // of the worker; only root may choose one
	if os.Getuid() == 0 {
		user = "user root;"
	}
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Appendf(nil, nginxConfig, user, dir, address, sharedConnections)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	logFile := filepath.Join(dir, "nginx.log")
	command := exec.CommandContext(ctx, program, "-p", dir, "-c", config, "-e", logFile, "-g", "daemon off;")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
		os.RemoveAll(dir)
	}
	reads := dialNetwork("unix", filepath.Join(dir, "reads.sock"))
	streams := dialNetwork("unix", filepath.Join(dir, "streams.sock"))
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		connection, err := streams(ctx)
		if err == nil {
			connection.Close()
			break
		}
		if time.Now().After(until) || ctx.Err() != nil {
			text, _ := os.ReadFile(logFile)
			stop()
			return nil, fmt.Errorf("nginx does not listen: %w: %s", err, text)
		}
	}
	return []way{
		{name: "nginx", dial: reads, close: func() {}},
		{name: "nginx without buffering", dial: streams, close: stop},
	}, nil
}
