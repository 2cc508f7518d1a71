// Package auth finds who sends a request: the form of API keys, their verification against the
// store, and what a verified key may do (spec section 5, contract 4.12). It knows no web framework.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
)

// A key is written rl_<key id>_<secret><checksum>, each part of the base62 alphabet.
const (
	prefix         = "rl_"
	keyIDLength    = 16
	secretLength   = 43 // 256 bits
	checksumLength = 6  // 32 bits
	keyLength      = len(prefix) + keyIDLength + 1 + secretLength + checksumLength

	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// ErrMalformed is returned for a text that cannot be a key. Telling it from an unknown key takes no look-up.
var ErrMalformed = errors.New("auth: malformed key")

// A Hash is the SHA-256 of a key's secret, all that is stored of it. The secret has 256 random bits,
// so a slow hash would protect nothing more.
type Hash [sha256.Size]byte

// Equal compares in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// A Credential is a well-formed key.
type Credential struct {
	KeyID string
	Hash  Hash // of the secret
}

// NewKey makes a key. The text is shown once and kept nowhere.
func NewKey() (text string, credential Credential) {
	id, secret := randomText(keyIDLength), randomText(secretLength)
	body := prefix + id + "_" + secret
	return body + checksum(body), Credential{KeyID: id, Hash: sha256.Sum256([]byte(secret))}
}

// ParseKey reads a key. The error is ErrMalformed.
func ParseKey(text string) (Credential, error) {
	if len(text) != keyLength || !strings.HasPrefix(text, prefix) {
		return Credential{}, ErrMalformed
	}
	id, rest := text[len(prefix):][:keyIDLength], text[len(prefix)+keyIDLength:]
	body := text[:keyLength-checksumLength]
	if rest[0] != '_' || !base62(id) || !base62(rest[1:]) || checksum(body) != text[len(body):] {
		return Credential{}, ErrMalformed
	}
	return Credential{KeyID: id, Hash: sha256.Sum256([]byte(rest[1 : 1+secretLength]))}, nil
}

// FindKey finds a key anywhere in a text.
func FindKey(text string) (key Credential, found bool) {
	for at := range text {
		if strings.HasPrefix(text[at:], prefix) {
			key, err := ParseKey(text[at:min(at+keyLength, len(text))])
			if err == nil {
				return key, true
			}
		}
	}
	return key, false
}

// checksum is the CRC-32 of body in base62, padded to its fixed length.
func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var text [checksumLength]byte
	for i := checksumLength - 1; i >= 0; i-- {
		text[i] = alphabet[sum%62]
		sum /= 62
	}
	return string(text[:])
}

func base62(s string) bool {
	for i := range len(s) {
		if strings.IndexByte(alphabet, s[i]) < 0 {
			return false
		}
	}
	return true
}

// randomText draws each character evenly: numbers that would favour some are drawn again.
func randomText(length int) string {
	var text strings.Builder
	for text.Len() < length {
		var b [8]byte
		rand.Read(b[:])
		for n, i := binary.BigEndian.Uint64(b[:]), 0; i < 8 && text.Len() < length; i++ {
			if c := byte(n>>(8*i)) & 63; c < 62 {
				text.WriteByte(alphabet[c])
			}
		}
	}
	return text.String()
}
