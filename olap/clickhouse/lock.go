package clickhouse

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockPollInterval is how often a lock held by someone else is tried again.
const lockPollInterval = 10 * time.Millisecond

// A fileLock is an advisory lock on an open file (flock). The kernel gives it back when the last descriptor of that
// open file is closed, so a killed process never leaves one; and a child that inherits the descriptor keeps the lock
// although its parent closes its own.
type fileLock struct{ file *os.File }

// tryLock locks the file at path, which is created when absent. It returns nil and no error when
// somebody else holds a conflicting lock.
func tryLock(path string, mode int) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), mode|syscall.LOCK_NB)
		if err == nil {
			return &fileLock{file}, nil
		}
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
}

func tryLockExclusive(path string) (*fileLock, error) { return tryLock(path, syscall.LOCK_EX) }

// lockShared waits until no one holds the file exclusively, or until ctx is done.
func lockShared(ctx context.Context, path string) (*fileLock, error) {
	tick := time.NewTicker(lockPollInterval)
	defer tick.Stop()
	for {
		lock, err := tryLock(path, syscall.LOCK_SH)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// waitExclusive blocks until no one holds the file at path any more, and then holds it alone.
func waitExclusive(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err == nil {
			return &fileLock{file}, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
	}
}

// release closes this process's descriptor. The lock itself goes with the last copy of it.
func (l *fileLock) release() { l.file.Close() }
