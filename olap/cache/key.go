package cache

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Key stands for what a value is cached under, however long that is. It is so long that nobody finds two things with
// one Key: a value is never given out for another key than its own.
type Key [sha256.Size]byte

// KeyOf is the Key of a list of texts. It keeps nothing of them.
func KeyOf(texts ...[]byte) (k Key) {
	h := sha256.New()
	var length [8]byte
	for _, text := range texts {
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:]) // so that no two lists are the same bytes
		h.Write(text)
	}
	h.Sum(k[:0])
	return k
}
