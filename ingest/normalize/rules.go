package normalize

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// Lengths count Unicode code points and are inclusive, but for addresses, whose limit RFC 5321 gives in octets.
const (
	maxName          = 500
	maxSlug          = 200
	maxSource        = 64
	maxIdentifier    = 320 // once it is normalized
	maxAddressOctets = 320 // 64 of the local part, the @, 255 of the domain
	maxDomainOctets  = 255
)

// The instants the store can keep (schema/DESIGN.md), both inclusive.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	latest   = time.Date(2261, 12, 31, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()
)

var (
	runKinds = []string{"agent", "sub_agent", "browser", "phone", "inbound_phone", "platform"}
	statuses = []string{
		"PENDING",
		"RUNNING",
		"WAITING_FOR_SLOT",
		"CANCELLING",
		"AWAITING_REPLY",
		"SLEEPING",
		"PAUSING",
		"PAUSED",
		"COMPLETED",
		"FAILED",
		"CANCELLED",
	}
	initiatorTypes = []string{"internal", "external", "automated", "unknown"}
	activityTypes  = []string{"initiated", "associated", "interacted"}
	initiations    = []string{"human", "automated", "unknown"}
)

// Whether a field may be null.
const (
	required = false
	nullable = true
)

// fail keeps the first fault of a record.
func (n *Normalizer) fail(i int, format string, args ...any) {
	if n.fault == nil {
		n.fault = &Error{Fields(n.raw.Kind)[i], fmt.Sprintf(format, args...)}
	}
}

// value is the text of field i; not there is a fault of a required field.
func (n *Normalizer) value(i int, mayBeNull bool) []byte {
	text := n.raw.Values[i]
	if text == nil && !mayBeNull {
		n.fail(i, "is required")
	}
	return text
}

func (n *Normalizer) organization(i int) schema.OrganizationID {
	text := n.value(i, required)
	if text == nil {
		return ""
	}
	if n.last != "" && string(n.last) == string(text) { // as most often
		return n.last
	}
	if id, ok := n.organizations.get(text); ok {
		n.last = id
		return id
	}
	id, err := schema.ParseOrganizationID(string(text))
	if err != nil {
		n.fail(i, "%v", err)
		return ""
	}
	return n.organizations.add(string(id), id, 0)
}

// id is a UUID in its usual form of 36 characters, in any letter case.
func (n *Normalizer) id(i int) uuid.UUID {
	text := n.value(i, required)
	if text == nil {
		return noID
	}
	if n.raw.isBinary(i) {
		return uuid.UUID(text)
	}
	id, err := uuid.ParseBytes(text)
	if err != nil || len(text) != 36 {
		n.fail(i, "must be a UUID such as 0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10")
		return noID
	}
	return id
}

func (n *Normalizer) optionalID(i int) *uuid.UUID {
	if n.raw.Values[i] == nil {
		return nil
	}
	id := n.id(i)
	return &id
}

// instant is a time with offset, cut (not rounded) to the millisecond.
func (n *Normalizer) instant(i int) Instant {
	text := n.value(i, required)
	if text == nil {
		return 0
	}
	var ms Instant
	if n.raw.isBinary(i) {
		ms = Instant(binary.LittleEndian.Uint64(text))
	} else {
		var reason string
		if ms, reason = parseInstant(text); reason != "" {
			n.fail(i, "%s", reason)
			return 0
		}
	}
	if ms < earliest || ms > latest {
		n.fail(i, "must lie in the years 1900 to 2261")
	}
	return ms
}

func (n *Normalizer) optionalInstant(i int) *Instant {
	if n.raw.Values[i] == nil {
		return nil
	}
	t := n.instant(i)
	return &t
}

// oneOf is one of the allowed texts, or nil for a null.
func (n *Normalizer) oneOf(i int, allowed []string, mayBeNull bool) *string {
	text := n.value(i, mayBeNull)
	if text == nil {
		return absent(mayBeNull)
	}
	for k := range allowed {
		if allowed[k] == string(text) {
			return &allowed[k]
		}
	}
	n.fail(i, "must be one of %s", strings.Join(allowed, ", "))
	return noText
}

// text is a text of least to most characters, both inclusive, or nil for a null.
func (n *Normalizer) text(i, least, most int, mayBeNull bool) *string {
	text := n.value(i, mayBeNull)
	if text == nil {
		return absent(mayBeNull)
	}
	n.checkText(i, text, least, most)
	return n.remember(text)
}

// checkText reports whether a text is UTF-8 of least to most characters, both inclusive.
func (n *Normalizer) checkText(i int, text []byte, least, most int) bool {
	if !utf8.Valid(text) {
		n.fail(i, "is not valid UTF-8")
		return false
	}
	if len(text) >= least && len(text) <= most && least < 2 {
		return true // no more characters than bytes, and no fewer than one
	}
	switch length := utf8.RuneCount(text); {
	case length >= least && length <= most:
		return true
	case least == 0:
		n.fail(i, "must have at most %d characters, not %d", most, length)
	default:
		n.fail(i, "must have %d to %d characters, not %d", least, most, length)
	}
	return false
}

func (n *Normalizer) remember(text []byte) *string {
	if known, ok := n.texts.get(text); ok {
		return known
	}
	copied := string(text)
	return n.texts.add(copied, &copied, 0)
}

// absent is a value that is not there: a null, or what a faulty record has.
func absent(mayBeNull bool) *string {
	if mayBeNull {
		return nil
	}
	return noText
}

// identifier is the text of a person as it is stored, nil of a blank or a faulty one. The length is that of the
// normalized text, so white space around it does not count (contract 3). Texts with a fault are not remembered, and
// what else a field wants of an identifier is for the field to check: whether a record is right does not depend on
// the ones before it.
func (n *Normalizer) identifier(i int, text []byte) *string {
	if known, ok := n.people.get(text); ok {
		return known
	}
	identifier := schema.NormalizeIdentifier(string(text))
	if !n.checkText(i, []byte(identifier), 0, maxIdentifier) {
		return nil
	}
	if identifier == "" {
		return n.people.add(string(text), nil, 0)
	}
	return n.people.add(string(text), &identifier, len(identifier))
}

// initiator is an identifier of any form. One that is blank identifies nobody and becomes null.
func (n *Normalizer) initiator(i int) *string {
	text := n.value(i, nullable)
	if text == nil {
		return nil
	}
	return n.identifier(i, text)
}

// person is an email address or an E.164 phone number.
func (n *Normalizer) person(i int) string {
	text := n.value(i, required)
	if text == nil {
		return ""
	}
	identifier := n.identifier(i, text)
	if identifier == nil || !isAddress(*identifier) && !isPhoneNumber(*identifier) {
		n.fail(i, "must be an email address or a phone number in E.164 form such as +15550100")
		return ""
	}
	return *identifier
}

// isAddress is liberal: a local part and a domain around the last @, without white space or
// control characters, within the lengths of RFC 5321.
func isAddress(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at <= 0 || at == len(s)-1 || len(s) > maxAddressOctets || len(s)-at-1 > maxDomainOctets {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// isPhoneNumber is E.164: a plus sign and up to 15 digits, the first of them not 0.
func isPhoneNumber(s string) bool {
	if len(s) < 3 || len(s) > 16 || s[0] != '+' || s[1] == '0' {
		return false
	}
	for _, digit := range s[1:] {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	return true
}
