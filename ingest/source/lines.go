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

// lines reads text line by line in bounded memory.
type lines struct {
	in   *bufio.Reader
	at   Position // after the last line
	long []byte
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func newLines(in io.Reader, at Position) *lines {
	return &lines{in: bufio.NewReaderSize(in, BufferBytes), at: at}
}

// jsonSpace is what JSON calls white space. A line of nothing else is blank; other spaces are text.
const jsonSpace = " \t\r\n"

// next returns the next line that is not blank, without its end, or io.EOF after the last one. A
// line that is too long comes as its beginning and ErrTooLong as its fault, also if what is kept of it is blank. A byte
// order mark is skipped at the beginning of any line, for files that were made of several.
func (l *lines) next() (text []byte, fault, err error) {
	for {
		text, fault, err := l.read()
		if err != nil {
			return nil, nil, err
		}
		l.at.Lines++
		text = bytes.TrimPrefix(text, byteOrderMark)
		if fault != nil || len(bytes.Trim(text, jsonSpace)) > 0 {
			return text, fault, nil
		}
	}
}

// read returns one line without its end. The last one may lack a line feed.
func (l *lines) read() ([]byte, error, error) {
	part, err := l.in.ReadSlice('\n')
	l.at.Offset += int64(len(part))
	if err == nil || errors.Is(err, io.EOF) && len(part) > 0 {
		return withoutEnd(part), nil, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, nil, err
	}
	l.long = append(l.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.in.ReadSlice('\n')
		l.at.Offset += int64(len(part))
		if len(l.long) <= MaxLineBytes {
			l.long = append(l.long, part...)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if text := withoutEnd(l.long); len(text) <= MaxLineBytes {
		return text, nil, nil
	}
	return l.long[:keptBytes], ErrTooLong, nil
}

// withoutEnd removes one end of a line and no more, as what comes before it counts to the line's length.
func withoutEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
