package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
)

// formatFlags say how files are read; ingest and verify share them.
type formatFlags struct {
	Record        string `enum:",agent,run,attribution" default:"" placeholder:"KIND" help:"@record"`
	Format        string `enum:",ndjson,csv,parquet" default:"" placeholder:"FORMAT" help:"@format"`
	Delimiter     string `default:"," placeholder:"CHARACTER" help:"@delimiter"`
	Null          string `default:"\\N" placeholder:"TEXT" help:"@null"`
	IgnoreUnknown bool   `help:"@ignore_unknown"`
}

// delimiter is the character of --delimiter.
func (f formatFlags) delimiter() (rune, error) {
	if f.Delimiter == "tab" {
		return '\t', nil
	}
	character, size := utf8.DecodeRuneInString(f.Delimiter)
	if size != len(f.Delimiter) || character == utf8.RuneError || strings.ContainsRune("\"\r\n\x00", character) {
		return 0, fmt.Errorf("--delimiter must be one character, no quote and no line feed, or tab, not %q", f.Delimiter)
	}
	return character, nil
}

// inputs are the files to read.
type inputs struct {
	files        []*source.File
	bytes        int64                // of all files, 0 when unknown
	sizes        []int64              // of each file
	fingerprints []ingest.Fingerprint // of all files that are resumable
	resumable    bool                 // all of them can be read again from the middle
}

// open reads nothing yet but makes sure that every file is there and can be understood, so that a
// typing error does not end a run half way.
func (f formatFlags) open(patterns []string, streams streams) (inputs, error) {
	in := inputs{resumable: true}
	delimiter, err := f.delimiter()
	if err != nil {
		return in, err
	}
	for _, pattern := range patterns {
		names, err := expand(pattern)
		if err != nil {
			return in, err
		}
		for _, name := range names {
			if err := f.add(&in, name, delimiter, streams); err != nil {
				return in, err
			}
		}
	}
	if !in.resumable {
		in.bytes = 0
	}
	return in, nil
}

// check reads the beginning of every file, so that one that cannot be read is found before anything is stored.
func (in inputs) check() error {
	for _, file := range in.files {
		if err := file.Check(); err != nil {
			return fmt.Errorf("read %s: %w", file.Name, err)
		}
	}
	return nil
}

// expand returns the files that match a pattern. The name of a file that exists matches
// itself, whatever characters it has.
func expand(pattern string) ([]string, error) {
	if pattern == "-" {
		return []string{pattern}, nil
	}
	if _, err := os.Stat(pattern); !errors.Is(err, os.ErrNotExist) {
		return []string{pattern}, nil
	}
	names, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly())
	if err != nil {
		return nil, fmt.Errorf("%s is no pattern of file names: %w", pattern, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no file %s", pattern)
	}
	return names, nil
}

func (f formatFlags) add(in *inputs, name string, delimiter rune, streams streams) error {
	file := &source.File{
		Name: name, Format: source.Format(f.Format), Kind: normalize.Kind(f.Record),
		Delimiter: delimiter, Null: f.Null, IgnoreUnknown: f.IgnoreUnknown,
	}
	if f.Format == "" {
		file.Format, file.Guessed = source.FormatOf(name)
	}
	if file.Format != source.NDJSON && file.Kind == "" {
		return fmt.Errorf("%s: a %s file has one kind of records: name it with --record", name, file.Format)
	}
	in.files = append(in.files, file)
	if name == "-" {
		in.sizes, in.resumable = append(in.sizes, 0), false
		file.Open = func() (io.ReadCloser, error) { return io.NopCloser(streams.in), nil }
		return nil
	}
	file.Open = func() (io.ReadCloser, error) { return os.Open(name) }
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name the files in it, such as '%s/*.ndjson'", name, name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	in.bytes += info.Size()
	in.sizes = append(in.sizes, info.Size())
	in.fingerprints = append(in.fingerprints, ingest.Fingerprint{
		Path: path, Bytes: info.Size(), ModifiedAt: info.ModTime().UTC(),
		ReadAs: fmt.Sprintf("%s %s %q %q %t", file.Format, file.Kind, delimiter, f.Null, f.IgnoreUnknown),
	})
	file.Regular = info.Mode().IsRegular()
	in.resumable = in.resumable && file.Regular // what was read of a pipe is gone
	return nil
}

// names are the files as they were given, with patterns expanded.
func (in inputs) names() []string {
	names := make([]string, len(in.files))
	for i, file := range in.files {
		names[i] = file.Name
	}
	return names
}

// read is how many bytes of all files a run has read.
func (in inputs) read(p ingest.Progress) int64 {
	bytes := p.BytesRead
	for _, size := range in.sizes[:p.Source] {
		bytes += size
	}
	return bytes
}
