package httpapi

import (
	"bytes"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// minCompressed is the size in bytes from which an answer is compressed, inclusive. A smaller one fits into one packet
// with its header anyhow.
const minCompressed = 1024

const (
	codingNone = "identity"
	codingZstd = "zstd"
	codingGzip = "gzip"
)

// zstdEncoder serves all requests: EncodeAll keeps as many encoders as there are processors, and lets others wait.
// RFC 9659 lets a window have 8 MiB; with 1 MiB an encoder, and the client's decoder, hold a few of them.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20),
		zstd.WithLowerEncoderMem(true))
})

// gzipWriters are at most as many as there are answers at once.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// send answers with a body, in the content coding that the client prefers. A client that says nothing, or accepts
// everything alike ("*"), gets it as it is.
func send(c *fiber.Ctx, contentType string, body []byte) error {
	c.Set(fiber.HeaderContentType, contentType)
	c.Vary(fiber.HeaderAcceptEncoding)
	if len(body) < minCompressed {
		return c.Send(body)
	}
	coding := c.AcceptsEncodings(codingNone, codingZstd, codingGzip)
	var err error
	switch coding {
	case codingZstd:
		body, err = zstdOf(body)
	case codingGzip:
		body, err = gzipOf(body)
	default:
		return c.Send(body)
	}
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentEncoding, coding)
	return c.Send(body)
}

func zstdOf(body []byte) ([]byte, error) {
	encoder, err := zstdEncoder()
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(body, make([]byte, 0, len(body)/4)), nil
}

func gzipOf(body []byte) ([]byte, error) {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	packed := bytes.NewBuffer(make([]byte, 0, len(body)/4))
	w.Reset(packed)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
