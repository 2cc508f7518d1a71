package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/runlens/runlens/ingest"
)

// shownRejects is how many rejects are told on standard error when no file takes them.
const shownRejects = 10

// rejects writes rejected records to a file, or tells the first of them.
type rejects struct {
	mu     sync.Mutex // of addNow
	file   *os.File
	out    *bufio.Writer
	stderr io.Writer
	count  int
}

// openRejects begins a new file, or appends to that of the run which is continued.
func openRejects(path string, continued bool, stderr io.Writer) (*rejects, error) {
	if path == "" {
		return &rejects{stderr: stderr}, nil
	}
	mode := os.O_TRUNC
	if continued {
		mode = os.O_APPEND
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o600) // rejects hold people's identifiers
	if err != nil {
		return nil, err
	}
	return &rejects{file: file, out: bufio.NewWriter(file)}, nil
}

func (r *rejects) add(reject ingest.Reject) error {
	r.count++
	if r.file == nil {
		if r.count <= shownRejects {
			place := reject.Error
			if reject.Field != "" {
				place = reject.Field + " " + place
			}
			fmt.Fprintf(r.stderr, "rejected: %s line %d: %s\n", reject.Source, reject.Line, place)
		}
		return nil
	}
	line, err := reject.AppendJSON(nil)
	if err != nil {
		return err
	}
	_, err = r.out.Write(line)
	return err
}

// addNow is add for whoever runs for long, from several goroutines: a reject is in the file at once.
func (r *rejects) addNow(reject ingest.Reject) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(reject); err != nil {
		return err
	}
	return r.flush()
}

func (r *rejects) flush() error {
	if r.file == nil {
		return nil
	}
	return r.out.Flush()
}

func (r *rejects) close() error {
	if r.file != nil {
		return errors.Join(r.out.Flush(), r.file.Close())
	}
	if r.count > shownRejects {
		fmt.Fprintf(r.stderr, "rejected: %d more; --rejects FILE keeps all of them\n", r.count-shownRejects)
	}
	return nil
}
