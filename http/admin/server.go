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
	Token     string // required as "Authorization: Bearer TOKEN" of profiles and what is private; empty refuses those
	ForAll    bool   // the token is required of all but /healthz and /readyz
	Profiling *bool  // nil is yes on a loopback address, no on others
	Logger    *slog.Logger
	Caps      conns.Caps // on connections
}

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
	s := &Server{config: config, listener: conns.Limit(listener, config.Caps, config.Logger)}
	if !config.ForAll && !s.loopback() {
		config.Logger.Warn("the admin address can be reached from other hosts and requires no token for metrics; "+
			"set RUNLENS_ADMIN_TOKEN", "address", s.Address())
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
	s.http = conns.NewServer(s.guard(handler(content, profiling, s.protect)), s.config.Logger)
	s.config.Logger.Info("serving the admin address", "address", s.Address(),
		"profiling", profiling, "token", s.config.ForAll)
	go func() { ended(s.http.Serve(s.listener)) }()
}

// Close ends the server at once.
func (s *Server) Close() error {
	if s.http == nil {
		return s.listener.Close()
	}
	return s.http.Close()
}

// guard refuses what pages of other sites make a browser on this machine send, which has no token: a name of theirs may
// lead to a loopback address. If the token is for all it lets in who has it, and probes, which only report that the
// process works.
func (s *Server) guard(next http.Handler) http.Handler {
	protected := s.protect(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case toLoopback(r) && !namesOwnHost(r.Host) && !s.authorized(r):
			answer(w, http.StatusMisdirectedRequest, "name this address by its number, or send the token")
		case s.config.ForAll && r.URL.Path != "/healthz" && r.URL.Path != "/readyz":
			protected.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// protect lets in who has the token.
func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.authorized(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "a token is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorized reports whether a request has the token. The hashes are of equal length, so that comparing them takes
// constant time.
func (s *Server) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.config.Token))
	return s.config.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// toLoopback reports whether a request came to a loopback address, by its number or by a name.
func toLoopback(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// namesOwnHost reports whether a Host is none that another site can have: a number, localhost, or missing, which it is
// in no request of a browser.
func namesOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "" || strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")) != nil
}
