// Package cursor seals and opens continuation cursors: where the next page begins and the
// inclusion boundary it keeps, signed for one organization and one canonical query (spec 4.2 rule
// 4, contract 4.1 and 4.17). It is pure.
package cursor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
)

// format is the first byte of a cursor. A change of anything below needs a new one, and cursors of
// another format are invalid.
const format = 1

// ErrInvalid is returned for a cursor that was not sealed here for this organization and query.
var ErrInvalid = errors.New("cursor: invalid or for another query")

// A Cursor continues a grouped query after one row.
type Cursor struct {
	AsOf  time.Time     // inclusion boundary, to the millisecond
	After []value.Value // the last row's values of the query's completed order
}

// A Sealer signs cursors. Every server of a deployment has the same secrets, so that a cursor
// survives restarts and load balancing.
type Sealer struct{ secrets [][]byte }

// NewSealer returns a Sealer that signs with the first secret and accepts what any of them signed. It needs one.
func NewSealer(secrets ...[]byte) Sealer { return Sealer{secrets} }

// ID is the same for sealers with the same secrets, and says nothing about them.
func (s Sealer) ID() string {
	var id strings.Builder
	for _, secret := range s.secrets {
		id.Write(sign(secret, "", nil, []byte("id")))
	}
	return id.String()
}

// Seal writes c as text of the URL-safe base64 alphabet.
func (s Sealer) Seal(org schema.OrganizationID, canonical []byte, c Cursor) string {
	payload := c.appendTo([]byte{format})
	return base64.RawURLEncoding.EncodeToString(append(payload, sign(s.secrets[0], org, canonical, payload)...))
}

// Open reads a cursor that Seal wrote for the same organization and canonical query. The error is ErrInvalid.
func (s Sealer) Open(org schema.OrganizationID, canonical []byte, text string) (Cursor, error) {
	// Strict: without it several spellings of the last character would open. Line ends are skipped all the same.
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || len(sealed) < 1+sha256.Size || sealed[0] != format {
		return Cursor{}, ErrInvalid
	}
	payload, signature := sealed[:len(sealed)-sha256.Size], sealed[len(sealed)-sha256.Size:]
	for _, secret := range s.secrets {
		if hmac.Equal(signature, sign(secret, org, canonical, payload)) {
			return parse(payload[1:])
		}
	}
	return Cursor{}, ErrInvalid
}

// sign binds a payload to its organization and query. Each part is preceded by its length so that no two triples give
// the same input.
func sign(secret []byte, org schema.OrganizationID, canonical, payload []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, part := range [][]byte{[]byte(org), canonical, payload} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return mac.Sum(nil)
}

func (c Cursor) appendTo(b []byte) []byte {
	b = binary.AppendVarint(b, c.AsOf.UnixMilli())
	for _, v := range c.After {
		b = append(b, byte(v.Kind))
		switch v.Kind {
		case value.Text:
			b = binary.AppendUvarint(b, uint64(len(v.Text)))
			b = append(b, v.Text...)
		case value.Day:
			b = binary.AppendVarint(b, v.Number)
		}
	}
	return b
}

func parse(b []byte) (Cursor, error) {
	millis, n := binary.Varint(b)
	if n <= 0 {
		return Cursor{}, ErrInvalid
	}
	c := Cursor{AsOf: time.UnixMilli(millis).UTC()}
	for b = b[n:]; len(b) > 0; {
		v := value.Value{Kind: value.Kind(b[0])}
		b = b[1:]
		switch v.Kind {
		case value.Null:
		case value.Text:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return Cursor{}, ErrInvalid
			}
			v.Text = string(b[n : n+int(length)])
			b = b[n+int(length):]
		case value.Day:
			var n int
			if v.Number, n = binary.Varint(b); n <= 0 {
				return Cursor{}, ErrInvalid
			}
			b = b[n:]
		default:
			return Cursor{}, ErrInvalid
		}
		c.After = append(c.After, v)
	}
	return c, nil
}
