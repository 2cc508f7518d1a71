package main

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Secrets come from files or the environment. A command line can be read by every user of the host, and stays in the
// history of the shell (contract 4.22).

// minSecret is the fewest bytes of a secret that nobody can guess by trying.
const minSecret = 16

// readSecret reads the file that a flag names or, without one, an environment variable; white space around
// the secret does not count. It is empty where there is none. An error is wrong usage.
func readSecret(flag, file, variable string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv(variable)), nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", usageError{fmt.Errorf("%s: %s is empty", flag, file)}
	}
	return secret, nil
}

// passwordPlaces has the flags whose values are addresses, and says where a password belongs.
var passwordPlaces = map[string]string{
	"clickhouse-url": "set RUNLENS_CLICKHOUSE_URL, or name a file with --clickhouse-password-file",
	"redis-url":      "set RUNLENS_REDIS_URL",
	"registry":       "set RUNLENS_ENGINE_REGISTRY",
	"to":             "name a file with --to-password-file",
	"source":         "set RUNLENS_SOURCE, PGPASSWORD or PGPASSFILE",
	"url":            "the API takes a key, in RUNLENS_API_KEY",
}

// refusePasswords fails if an address on the command line has a password. The same address in the environment may.
func refusePasswords(path []*kong.Path) error {
	for _, flag := range givenFlags(path) {
		place, address := passwordPlaces[flag.Name]
		if address && hasPassword(flag.Target.String()) {
			return fmt.Errorf("--%s: a password must not be on the command line, where other users can read it: %s",
				flag.Name, place)
		}
	}
	return nil
}

var (
	// passwordParameter is a password in the query of a URL, or in PostgreSQL's form of words.
	passwordParameter = regexp.MustCompile(`(?i)(^|[?&\s])(ssl)?password\s*=\s*[^&\s]`)
	// passwordKey is the name of such a parameter.
	passwordKey = regexp.MustCompile(`(?i)^(ssl)?password$`)
	// passwordInUserinfo is for what is no valid URL, because of characters of the password for instance.
	passwordInUserinfo = regexp.MustCompile(`://[^@]*:[^@]+@`)
)

func hasPassword(address string) bool {
	if passwordParameter.MatchString(address) {
		return true
	}
	u, err := url.Parse(address)
	if err != nil {
		return passwordInUserinfo.MatchString(address)
	}
	for key, values := range u.Query() { // whose keys may be percent-encoded
		if passwordKey.MatchString(key) && slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			return true
		}
	}
	password, _ := u.User.Password()
	return password != ""
}

// withPassword puts a password into an address.
func withPassword(address, password string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", usageError{fmt.Errorf("--clickhouse-url is no address such as clickhouse://user@host:9000/database")}
	}
	name := u.User.Username()
	if name == "" {
		name = "default"
	}
	u.User = url.UserPassword(name, password)
	return u.String(), nil
}
