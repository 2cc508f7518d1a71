package fetch

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/runlens/runlens/deploy/engine"
)

// mostBytes is the most that a library may take, inclusive. That of 26.7 takes 0.57 GB.
const mostBytes = 2 << 30

// unpack copies the library of a packed package. Other files, and whatever else an archive may hold, are passed over.
func unpack(packed io.Reader, to io.Writer) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unpack the package: %w", err)
	}
	archive := tar.NewReader(plain)
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the package has no %s", engine.File)
		}
		if err != nil {
			return fmt.Errorf("unpack the package: %w", err)
		}
		if entry.Typeflag != tar.TypeReg || entry.Name != "package/"+engine.File {
			continue
		}
		if entry.Size > mostBytes {
			return fmt.Errorf("%s takes %d bytes, more than %d", engine.File, entry.Size, int64(mostBytes))
		}
		if _, err := io.Copy(to, archive); err != nil {
			return fmt.Errorf("unpack the package: %w", err)
		}
		return nil
	}
}
