package clickhouse

// For tests that run an engine with ports of their own.
var (
	LoadLibrary  = loadLibrary
	OpenTerminal = func() error { _, err := openTerminal(); return err }
)
