package main

import (
	"fmt"
	"log/slog"

	"github.com/runlens/runlens/http/admin"
)

// tokenFlags say what token the admin address requires. Servers and clients of it share them.
type tokenFlags struct {
	AdminTokenFile string `env:"RUNLENS_ADMIN_TOKEN_FILE" placeholder:"FILE" help:"@admin_token_file"`
}

func (f tokenFlags) token() (string, error) {
	token, err := readSecret("--admin-token-file", f.AdminTokenFile, "RUNLENS_ADMIN_TOKEN")
	if err == nil && token != "" && len(token) < minSecret {
		err = usageError{fmt.Errorf("the admin token must have at least %d bytes", minSecret)}
	}
	return token, err
}

// adminFlags say how an admin address is served; serve and worker share them.
type adminFlags struct {
	tokenFlags
	Pprof *bool `env:"RUNLENS_PPROF" negatable:"" help:"@pprof"`
}

// open opens an admin address; "off" gives none. Where no token is set, what is private requires the one that the data
// directory keeps.
func (f adminFlags) open(listen, dataDir string, logger *slog.Logger) (*admin.Server, error) {
	if listen == "off" {
		return nil, nil
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	caps, err := fewCaps()
	if err != nil {
		return nil, err
	}
	forAll := token != ""
	if !forAll {
		if token, err = makeAdminToken(dataDir); err != nil {
			logger.Warn("the admin address refuses profiles and what is private, because the data directory keeps no token; "+
				"set RUNLENS_ADMIN_TOKEN", "cause", err)
		}
	}
	server, err := admin.Open(admin.Config{
		Listen: listen, Token: token, ForAll: forAll, Profiling: f.Pprof, Logger: logger, Caps: caps,
	})
	if err != nil {
		return nil, fmt.Errorf("--admin-listen: %w", err)
	}
	return server, nil
}
