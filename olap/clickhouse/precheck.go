package clickhouse

import (
	"fmt"
	"net"
	"syscall"
)

// MinEngineMemoryBytes is the least Config.EngineMemoryBytes with which the embedded engine takes records and answers
// (inclusive). With less it may come up and then fail every migration or insert.
const MinEngineMemoryBytes = 100_000_000

// minDescriptors is the least limit of open files with which the embedded engine takes records (inclusive). With
// somewhat less it comes up and then fails inserts.
const minDescriptors = 256

// startable finds what an engine would come up without, and never answer: it does not end where it cannot listen or
// open a file. listen is Config.Listen.
func startable(listen string) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && uint64(limit.Cur) < minDescriptors {
		return fmt.Errorf("the engine needs %d open files and this process may have %d: raise the limit, 'ulimit -n' in a "+
			"shell", minDescriptors, limit.Cur)
	}
	listener, err := net.Listen("tcp4", listen)
	if err != nil {
		return cannotListen(err)
	}
	return listener.Close()
}

func cannotListen(err error) error {
	return fmt.Errorf("the engine cannot listen at the address of --listen; name another one: %w", err)
}
