package push

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
)

// The bounds of a body, inclusive.
const (
	MaxBytes = 16 << 20 // as it is sent, and unpacked
	MaxLines = 100_000  // that are not blank; no valid record is so short that more would fit into MaxBytes

	// maxWindow is how much memory zstd may need, by RFC 9659.
	maxWindow = 8 << 20
)

// The errors of Read.
var (
	ErrTooLarge = fmt.Errorf("the body has more than %d bytes or %d lines when it is unpacked", MaxBytes, MaxLines)
	ErrCoding   = errors.New("the content coding is not gzip, zstd or identity")
	ErrDamaged  = errors.New("the body cannot be unpacked")
)

// errOrganization is why a record of another organization is rejected, whether there is such an organization or not.
var errOrganization = &normalize.Error{Field: "organization_id", Reason: "is not the organization of the key"}

// A reader reads bodies one after another, and uses its memory again.
type reader struct {
	normalizer *normalize.Normalizer
	text       *bufio.Reader
	zstd       *zstd.Decoder // nil before the first use
	gzip       *gzip.Reader  // likewise
}

// readers are as many as read at once, so that bodies wait for each other and their memory is bounded.
var readers = func() chan *reader {
	all := make(chan *reader, min(runtime.GOMAXPROCS(0), 4))
	for range cap(all) {
		all <- &reader{normalizer: normalize.NewNormalizer(), text: bufio.NewReaderSize(nil, source.BufferBytes)}
	}
	return all
}()

// Read reads the records of an organization from a body in a content coding, empty for none. It waits for its turn. No
// record is kept of a body that cannot be read to its end; the error is ErrTooLarge, ErrCoding or ErrDamaged.
func Read(body io.Reader, coding string, organization schema.OrganizationID) (*Records, error) {
	r := <-readers
	in := &struct{ io.Reader }{body} // by which nothing that is kept holds the body
	defer func() {
		in.Reader = nil
		readers <- r
	}()
	plain, err := r.unpack(in, coding)
	if err != nil {
		return nil, err
	}
	limited := &limited{in: plain, left: MaxBytes}
	r.text.Reset(limited)
	records := &Records{Organization: organization, done: make(chan error, 1)}
	for lines := source.Plain(r.text); ; {
		record, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			records.Bytes = MaxBytes - limited.left
			return records, nil
		case err != nil && !errors.Is(err, ErrTooLarge):
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		case err != nil || records.Lines == MaxLines:
			return nil, ErrTooLarge
		}
		records.add(r.normalizer, record)
	}
}

// unpack undoes the content coding.
func (r *reader) unpack(body io.Reader, coding string) (_ io.Reader, err error) {
	switch strings.ToLower(coding) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		if r.gzip == nil {
			r.gzip = new(gzip.Reader)
		}
		err = r.gzip.Reset(body)
		if err == nil {
			return r.gzip, nil
		}
	case "zstd":
		if r.zstd == nil {
			r.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow))
		}
		if err == nil {
			err = r.zstd.Reset(body)
		}
		if err == nil {
			return r.zstd, nil
		}
	default:
		return nil, ErrCoding
	}
	return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
}

// add adds a record to the batch, or rejects its line.
func (r *Records) add(n *normalize.Normalizer, record *source.Record) {
	r.Lines++
	fault := record.Fault
	if fault == nil {
		// Without an organization it is a record without a required field.
		if of := record.Raw.Values[0]; of != nil && string(of) != string(r.Organization) {
			fault = errOrganization
		} else {
			fault = r.left.Add(n, &record.Raw)
		}
	}
	switch {
	case fault != nil:
		r.reject(record.Line, fault)
	case record.Raw.Kind == normalize.KindAttribution:
		r.left.lines = append(r.left.lines, record.Line)
	}
}

// A limited reads so many bytes and no more: ErrTooLarge says that there are more.
type limited struct {
	in   io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left == 0 {
		var one [1]byte
		if n, err := io.ReadFull(l.in, one[:]); n == 0 {
			return 0, err
		}
		return 0, ErrTooLarge
	}
	n, err := l.in.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
