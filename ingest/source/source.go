// Package source reads records from where they are kept: files of NDJSON, CSV and Parquet, plain or
// compressed, and standard input.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/runlens/runlens/ingest/normalize"
)

// A Format is how a file writes records.
type Format string

// The formats. NDJSON has records of all kinds; the others have one kind a file.
const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// FormatOf finds the format by a file's name, with the ending of its compression left out: NDJSON
// unless it ends in .csv or .parquet. It is guessed if the name does not end in one of NDJSON's either.
func FormatOf(name string) (format Format, guessed bool) {
	name = strings.ToLower(name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	switch path.Ext(name) {
	case ".csv":
		return CSV, false
	case ".parquet":
		return Parquet, false
	case ".ndjson", ".jsonl", ".json":
		return NDJSON, false
	}
	return NDJSON, true
}

// A Position is a place between two records of a file: the first record has been read or none, and so on.
type Position struct {
	Offset int64 `json:"offset"` // bytes of the unpacked text; 0 in a Parquet file
	Lines  int   `json:"lines"`  // lines of text before the position, rows in a Parquet file
}

// A Record is one record of a source, right or wrong. It is valid until the next one is read.
type Record struct {
	Raw   normalize.Raw
	Fault error          // why Raw could not be read; else nil
	Line  int            // from 1: the line of text it begins in, or the row of a Parquet file
	Text  []byte         // as it was written, where that is text of its own; else nil
	CSV   *normalize.CSV // how Text is to be read, if it is CSV
	// QuoteLine is the line in which the quote opens that makes a CSV record longer than its first line, and QuoteLines
	// how many lines the quote takes; 0 where there is none.
	QuoteLine, QuoteLines int
}

// A Reader reads records one after another.
type Reader interface {
	// Next returns the next record, or io.EOF after the last one. Other errors end the source;
	// records that cannot be read are returned with their fault.
	Next() (*Record, error)
	// Position is the place after the last record.
	Position() Position
	io.Closer
}

// A File is a source of records. Its methods may not be called at the same time.
type File struct {
	Name      string // as it is in rejects
	Format    Format
	Kind      normalize.Kind                // of all records; needed but for NDJSON
	Open      func() (io.ReadCloser, error) // the bytes from the first one
	Delimiter rune                          // of CSV; 0 is a comma
	Null      string                        // of CSV: a cell with this text and without quotes is null; empty for none
	Guessed   bool                          // NDJSON by a name that says nothing: Check looks at the first record
	Regular   bool                          // neither opening nor reading it ever waits for input
	// IgnoreUnknown leaves out what is no field of a record, which otherwise is an error.
	IgnoreUnknown bool
	// Stop ends with ErrInterrupted, when it is closed, what waits for input. nil is for never.
	Stop <-chan struct{}

	read  int64
	waits bool
}

// BytesRead is how much of the file, packed as it is, has been read.
func (f *File) BytesRead() int64 { return f.read }

// From returns a reader of the records after a position, the zero one for all records.
func (f *File) From(at Position) (Reader, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	reader, err := f.reader(in, at)
	if err != nil {
		in.Close()
		return nil, err
	}
	return reader, nil
}

// Check reads what a file begins with, its CSV header or the footer of a Parquet file that is not packed, and returns
// why it cannot be read. What is not Regular is not checked: it could not be read again.
func (f *File) Check() error {
	if !f.Regular {
		return nil
	}
	if f.Format == Parquet {
		in, err := f.open()
		if err != nil {
			return err
		}
		defer in.Close()
		plain, isPlain, err := f.unpack(in)
		if err == nil && !isPlain {
			_, err = beginsAsParquet(plain)
		}
		if err != nil || !isPlain {
			return err
		}
	}
	reader, err := f.From(Position{})
	if err != nil {
		return err
	}
	defer reader.Close()
	if !f.Guessed {
		return nil
	}
	record, err := reader.Next()
	if err == nil && !bytes.HasPrefix(bytes.TrimSpace(record.Text), []byte("{")) {
		return errors.New("it does not begin as NDJSON does, with an object a line; --format names another format")
	}
	return nil // copying says what else is wrong
}

func (f *File) reader(in io.ReadCloser, at Position) (Reader, error) {
	f.read = 0
	plain, isPlain, err := f.unpack(in)
	if err != nil {
		return nil, err
	}
	switch f.Format {
	case Parquet:
		return newParquet(f, in, plain, isPlain, at)
	case CSV:
		return newCSV(f, plain, in, at)
	default:
		seeker, ok := in.(io.Seeker)
		if !ok || !isPlain || at.Offset == 0 {
			if err := skip(plain, at.Offset); err != nil {
				return nil, err
			}
			return newNDJSON(f, plain, in, at), nil
		}
		if _, err := seeker.Seek(at.Offset, io.SeekStart); err != nil {
			return nil, err
		}
		f.read = at.Offset
		return newNDJSON(f, f.count(in), in, at), nil
	}
}

const BufferBytes = 256 << 10

// skip reads to an offset of a stream that cannot seek.
func skip(in io.Reader, offset int64) error {
	if _, err := io.CopyN(io.Discard, in, offset); err != nil {
		return fmt.Errorf("read again to where the last run stopped: %w", err)
	}
	return nil
}

// errShrank is the error of a file that was cut off while it was read, as by a rotation of logs that truncates: what it
// had is missing.
var errShrank = errors.New("the file became shorter while it was read; what it has lost was not read")

// A counter counts the bytes of a file that were read.
type counter struct {
	io.Reader
	n     *int64
	least int64 // what n is at the end of a regular file that does not become shorter; 0 of others
}

func (f *File) count(in io.Reader) *counter {
	c := &counter{Reader: in, n: &f.read}
	if file, ok := in.(*os.File); ok && isRegular(file) {
		info, err := file.Stat()
		at, seekErr := file.Seek(0, io.SeekCurrent) // standard input may begin anywhere
		if err == nil && seekErr == nil {
			c.least = f.read + info.Size() - at
		}
	}
	return c
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	if errors.Is(err, io.EOF) && *c.n < c.least {
		err = errShrank
	}
	return n, err
}
