package native

import (
	"io"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A Terminal is the keyboard of the engine's interactive session. Nobody else has it: both of its ends are in the
// engine's process, and it is no process's controlling terminal, so no key sends a signal.
type Terminal struct{ keyboard *os.File }

// OpenTerminal makes a terminal the standard input of this process.
func OpenTerminal() (*Terminal, error) {
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
	return &Terminal{keyboard}, nil
}

// Exit ends the session: it drops a line that was begun, and types the command.
func (t *Terminal) Exit() error {
	_, err := t.keyboard.WriteString("\x03\nexit\n")
	return err
}
