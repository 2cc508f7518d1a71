package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
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

// refusePasswords fails if an address on the command line has a password, or a variable stands there, wherever it is:
// nothing shows it before, such as that no flag takes it. The same address in the environment may.
func refusePasswords(args []string) error {
	const refusal = "a password must not be on the command line, where other users can read it: "
	before := "" // the flag whose value comes next, perhaps
	for _, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		flag := name
		if !joined || !strings.HasPrefix(arg, "--") {
			flag, value = before, arg
		}
		place, address := passwordPlaces[strings.TrimPrefix(flag, "--")]
		switch {
		case address && hasPassword(value):
			return fmt.Errorf("%s: %s%s", flag, refusal, place)
		case strings.Contains(value, "://") && hasPassword(value):
			return errors.New(refusal + "set a variable, or name a file")
		case joined && flag == "" && strings.HasPrefix(name, "RUNLENS_"):
			return fmt.Errorf("%s is a variable, which comes before the command", name)
		}
		if before = ""; strings.HasPrefix(arg, "--") && !joined {
			before = arg
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
