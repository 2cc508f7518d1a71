// Package source reads records from where they are kept: NDJSON files and standard input.
package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes is the longest line that is read as a record, inclusive and without its end. The
// longest valid record is far shorter.
const MaxLineBytes = 1 << 20

// keptBytes is how much of a longer line is kept to show it.
const keptBytes = 4096

// ErrTooLong is the fault of a line that is longer than MaxLineBytes.
var ErrTooLong = fmt.Errorf("is longer than %d bytes", MaxLineBytes)

// A Line is one line of a source. Blank lines are left out but counted.
type Line struct {
	Number int    // from 1
	Text   []byte // without the line's end; valid until the next call
	Fault  error  // ErrTooLong, with the beginning of the line as Text; else nil
}

// Lines reads a source line by line in bounded memory.
type Lines struct {
	in     *bufio.Reader
	number int
	long   []byte
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// NewLines returns a reader of r. A byte order mark at the beginning is skipped.
func NewLines(r io.Reader) *Lines {
	return &Lines{in: bufio.NewReaderSize(r, 256<<10)}
}

// Next returns the next line that is not blank, or io.EOF behind the last one.
func (l *Lines) Next() (Line, error) {
	for {
		text, fault, err := l.read()
		if err != nil {
			return Line{}, err
		}
		l.number++
		if l.number == 1 {
			text = bytes.TrimPrefix(text, byteOrderMark)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			return Line{l.number, text, fault}, nil
		}
	}
}

// read returns one line without its end. The last one may lack a line feed.
func (l *Lines) read() ([]byte, error, error) {
	part, err := l.in.ReadSlice('\n')
	if err == nil || errors.Is(err, io.EOF) && len(part) > 0 {
		return bytes.TrimRight(part, "\r\n"), nil, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, nil, err
	}
	l.long = append(l.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.in.ReadSlice('\n')
		if len(l.long) <= MaxLineBytes {
			l.long = append(l.long, part...)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if text := bytes.TrimRight(l.long, "\r\n"); len(text) <= MaxLineBytes {
		return text, nil, nil
	}
	return l.long[:keptBytes], ErrTooLong, nil
}
