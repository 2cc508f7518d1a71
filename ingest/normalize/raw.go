package normalize

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// maxFields is the number of fields of the widest kind.
const maxFields = 11

// Raw is a record as it was written: the text of each of its fields, before any rule but those of
// the format it came in.
type Raw struct {
	Kind Kind
	// Values has a text per field, in the order of Fields; nil is null or absent. The texts may
	// belong to a buffer of the reader's and are valid until its next record.
	Values [maxFields][]byte
	// Binary has a bit for each field whose value is no text: an id as its 16 bytes, an instant as 8 bytes,
	// little-endian. Formats that keep them so are spared the way over a text.
	Binary uint16
}

func (r *Raw) isBinary(i int) bool { return r.Binary&(1<<i) != 0 }

// Fields returns the fields of a kind in the order of Raw.Values, or nil for an unknown kind.
func Fields(kind Kind) []string {
	switch kind {
	case KindAgent:
		return schema.AgentColumns
	case KindRun:
		return schema.RunColumns
	case KindAttribution:
		return schema.AttributionColumns
	default:
		return nil
	}
}

// Nullable reports whether a field may be null (contract 3).
func Nullable(field string) bool {
	switch field {
	case "slug",
		"deleted_at",
		"kind",
		"parent_run_id",
		"initiator_identifier",
		"initiator_name",
		"initiator_type",
		"user_name":
		return true
	default:
		return false
	}
}

// AppendJSON appends the record as the JSON object that ReadJSON reads, without its null fields. Bytes
// that are no UTF-8 become U+FFFD: the text shows such a record, and is not to be read in its place.
func (r *Raw) AppendJSON(b []byte) []byte {
	b = append(b, `{"record":"`...)
	b = append(append(b, r.Kind...), '"')
	for i, field := range Fields(r.Kind) {
		if r.Values[i] != nil {
			b = append(append(append(b, `,"`...), field...), `":`...)
			b, _ = jsontext.AppendQuote(b, r.Text(i))
		}
	}
	return append(b, '}')
}

// Text is the text of a field that is not null.
func (r *Raw) Text(i int) []byte {
	switch value := r.Values[i]; {
	case !r.isBinary(i):
		return value
	case len(value) == len(uuid.UUID{}):
		text, _ := uuid.UUID(value).MarshalText() // has no error
		return text
	default:
		return time.UnixMilli(int64(binary.LittleEndian.Uint64(value))).
			UTC().
			AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00")
	}
}

// fieldIndex returns the position of a field in Raw.Values, -1 for none.
func fieldIndex(kind Kind, field string) int { return slices.Index(Fields(kind), field) }
