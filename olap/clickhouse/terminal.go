package clickhouse

import (
	"io"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A terminal is the keyboard of the engine's interactive session. Nobody else has it: both of its ends are in the
// engine's process, and it is no process's controlling terminal, so no key sends a signal.
type terminal struct{ keyboard *os.File }

// openTerminal makes a terminal the standard input of this process.
func openTerminal() (*terminal, error) {
	keyboard, input, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	if err := unix.Dup2(int(input.Fd()), 0); err != nil {
		return nil, os.NewSyscallError("dup2", err)
	}
	// What is typed is echoed, and would fill the terminal's buffer if nobody took it.
	go io.Copy(io.Discard, keyboard)
	return &terminal{keyboard}, nil
}

// exit ends the session: it drops a line that was begun, and types the command.
func (t *terminal) exit() error {
	_, err := t.keyboard.WriteString("\x03\nexit\n")
	return err
}
