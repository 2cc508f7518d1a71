package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
)

// vulnerable is govulncheck's exit code for vulnerabilities that our code can reach.
const vulnerable = 3

// vulnerabilities reads from the Go vulnerability database what our code can reach. That it cannot be read, as without
// a network, is a warning: it says nothing about the code.
func vulnerabilities(ctx context.Context) (found findings) {
	var out, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", "tool", "govulncheck", "./...")
	command.Stdout, command.Stderr = &out, &stderr
	judge(&found, command.Run(), out.String(), strings.TrimSpace(stderr.String()))
	return found
}

// judge takes how govulncheck ended and what it wrote.
func judge(found *findings, err error, out, stderr string) {
	var exit interface{ ExitCode() int }
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() == vulnerable:
		found.fault("vulnerabilities:\n%s", out)
	case strings.Contains(stderr, "fetching vulnerabilities"):
		found.warn("vulnerabilities were NOT checked: %s", stderr)
	default:
		found.fault("govulncheck: %v: %s\n%s", err, stderr, out)
	}
}
