// Package native enters the engine library: all of ClickHouse, which runs in the process that enters it.
package native

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// CommandLine is the engine's entry point, with the meaning of the command `clickhouse local`.
// The library allows one call in the life of a process.
type CommandLine func(args ...string) (output string, err error)

// Load opens the engine library at path.
func Load(path string) (CommandLine, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	const entry, resultBuffer, resultError = "chdb_query_cmdline", "chdb_result_buffer", "chdb_result_error"
	for _, symbol := range []string{entry, resultBuffer, resultError} {
		if _, err := purego.Dlsym(handle, symbol); err != nil {
			return nil, fmt.Errorf("%s is no engine library: %w", path, err)
		}
	}
	var run func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	var output, failure func(result unsafe.Pointer) string
	purego.RegisterLibFunc(&run, handle, entry)
	purego.RegisterLibFunc(&output, handle, resultBuffer)
	purego.RegisterLibFunc(&failure, handle, resultError)

	return func(args ...string) (string, error) {
		argv := make([]*byte, 0, len(args)+2)
		for _, arg := range append([]string{"clickhouse"}, args...) {
			argv = append(argv, &append([]byte(arg), 0)[0])
		}
		argv = append(argv, nil)
		result := run(int32(len(args)+1), unsafe.Pointer(&argv[0]))
		runtime.KeepAlive(argv)
		if result == nil {
			return "", fmt.Errorf("the engine returned nothing")
		}
		if message := failure(result); message != "" {
			return "", fmt.Errorf("%s", message)
		}
		return output(result), nil
	}, nil
}
