// Command deps checks what this repository depends on: the licences of Go modules, known vulnerabilities in them, and
// the checksums of the packages that npm fetches. `make lint` runs it at the root of the repository. What is wrong is
// printed, and the exit code is 1; what could not be checked is printed as a WARNING and fails nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed := false
	for _, check := range []func(context.Context) findings{lockFiles, licences, vulnerabilities} {
		found := check(ctx)
		for _, warning := range found.warnings {
			fmt.Println("WARNING:", warning)
		}
		for _, fault := range found.faults {
			fmt.Println("deps:", fault)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// Findings are what a check found: faults fail it, warnings say what it could not check.
type findings struct{ faults, warnings []string }

func (f *findings) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}
