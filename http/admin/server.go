package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/runlens/runlens/http/conns"
)

// Config says where and to whom a process answers on its admin address.
type Config struct {
	Listen    string // host:port
	Token     string // required as "Authorization: Bearer TOKEN" but for /healthz and /readyz; empty for none
	Profiling *bool  // nil is yes on a loopback address, no on others
	Logger    *slog.Logger
	Caps      conns.Caps // on connections; zero for fewCaps
}

// fewCaps are enough for operators, probes and what collects metrics.
var fewCaps = conns.Caps{All: 64, PerAddress: 64}

// A Server is an admin address. The socket is open from the start, so that an address that is taken is known before
// anything else is done.
type Server struct {
	config   Config
	listener net.Listener
	http     *http.Server // nil until Start
}

// Open opens the socket. It warns where everybody who reaches the address may read it.
func Open(config Config) (*Server, error) {
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, err
	}
	if config.Caps.All == 0 {
		config.Caps = fewCaps
	}
	s := &Server{config: config, listener: conns.Limit(listener, config.Caps, config.Logger)}
	if config.Token == "" && !s.loopback() {
		config.Logger.Warn("the admin address can be reached from other hosts and requires no token; set RUNLENS_ADMIN_TOKEN",
			"address", s.Address())
	}
	return s, nil
}

// Address is the address as clients reach it.
func (s *Server) Address() string { return s.listener.Addr().String() }

func (s *Server) loopback() bool {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// Start answers until Close. It returns at once, and calls ended with the reason when the server has ended.
func (s *Server) Start(content Content, ended func(error)) {
	profiling := s.loopback()
	if s.config.Profiling != nil {
		profiling = *s.config.Profiling
	}
	mux := handler(content, profiling)
	for pattern, private := range content.Private {
		switch {
		case s.config.Token != "":
			mux.Handle(pattern, private)
		case s.loopback():
			mux.Handle(pattern, ownPages(private))
		}
	}
	s.http = conns.NewServer(s.guard(mux), s.config.Logger)
	s.config.Logger.Info("serving the admin address", "address", s.Address(),
		"profiling", profiling, "token", s.config.Token != "")
	go func() { ended(s.http.Serve(s.listener)) }()
}

// Close ends the server at once.
func (s *Server) Close() error {
	if s.http == nil {
		return s.listener.Close()
	}
	return s.http.Close()
}

// guard lets in who has the token. Probes need none: they only report that the process works.
func (s *Server) guard(next http.Handler) http.Handler {
	if s.config.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.config.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token)) // of equal length, so that the comparison takes constant time
		authorized := subtle.ConstantTimeCompare(got[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
		if !authorized && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "a token is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}
