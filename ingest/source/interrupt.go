package source

import (
	"errors"
	"io"
	"os"
	"time"
)

// ErrInterrupted ends a source that waits for input when its Stop is closed.
var ErrInterrupted = errors.New("stopped while waiting for input")

// open opens the file. Neither the opening nor a read waits any longer when Stop is closed: a pipe without a writer,
// or standard input at which nobody types, would hold up the end without a limit. What waits then is left behind with
// its goroutine.
func (f *File) open() (io.ReadCloser, error) {
	type opened struct {
		in  io.ReadCloser
		err error
	}
	opening := make(chan opened, 1)
	go func() {
		in, err := f.Open()
		opening <- opened{in, err}
	}()
	select {
	case o := <-opening:
		file, ok := o.in.(*os.File)
		if f.waits = f.Stop != nil && o.err == nil && !(ok && isRegular(file)); !f.waits {
			return o.in, o.err
		}
		return &interruptible{
			Closer: o.in, in: o.in, stop: f.Stop, arrived: make(chan error, 1), buffer: make([]byte, BufferBytes),
		}, nil
	case <-f.Stop:
		return nil, ErrInterrupted
	}
}

// Waits reports whether the file, since From, may have to wait for input and ends with ErrInterrupted when Stop is
// closed: all but regular files. What it had got before comes first.
func (f *File) Waits() bool { return f.waits }

// lastChance is how long a read that may just have got something has to deliver it after Stop.
const lastChance = 50 * time.Millisecond

// An interruptible reads into a buffer of its own, so that a read which is left behind writes to nobody else's memory.
type interruptible struct {
	io.Closer
	in      io.Reader
	stop    <-chan struct{}
	arrived chan error // the end of the read that is under way
	buffer  []byte
	count   int    // bytes that this read has put into buffer
	rest    []byte // of buffer, not yet returned
	err     error  // after rest; stays
}

func (r *interruptible) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.err == nil {
		r.fetch()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// fetch fills rest or sets err.
func (r *interruptible) fetch() {
	select {
	case <-r.stop:
		r.err = ErrInterrupted
		return
	default:
	}
	go func() {
		n, err := r.in.Read(r.buffer)
		r.count = n
		r.arrived <- err
	}()
	select {
	case r.err = <-r.arrived:
	case <-r.stop:
		select {
		case r.err = <-r.arrived:
		case <-time.After(lastChance):
			r.err = ErrInterrupted
			return
		}
	}
	r.rest = r.buffer[:r.count]
}
