module github.com/runlens/runlens/http/client

go 1.23.0
