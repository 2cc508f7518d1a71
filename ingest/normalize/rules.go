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
	maxIdentifier    = 320
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

func (n *Normalizer) checkText(i int, text []byte, least, most int) {
	if !utf8.Valid(text) {
		n.fail(i, "is not valid UTF-8")
		return
	}
	if len(text) >= least && len(text) <= most && least < 2 {
		return // no more characters than bytes, and no fewer than one
	}
	switch length := utf8.RuneCount(text); {
	case length >= least && length <= most:
	case least == 0:
		n.fail(i, "must have at most %d characters, not %d", most, length)
	default:
		n.fail(i, "must have %d to %d characters, not %d", least, most, length)
	}
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

// initiator is an identifier of any form. One that is blank identifies nobody and becomes null.
func (n *Normalizer) initiator(i int) *string {
	text := n.value(i, nullable)
	if text == nil {
		return nil
	}
	if known, ok := n.people.get(text); ok {
		return known
	}
	n.checkText(i, text, 0, maxIdentifier)
	identifier := schema.NormalizeIdentifier(string(text))
	// Lower case can be longer than upper case; what is stored keeps the bound as well.
	n.checkText(i, []byte(identifier), 0, maxIdentifier)
	if n.fault != nil {
		return nil
	}
	if identifier == "" {
		return n.people.add(string(text), nil, 0)
	}
	return n.people.add(string(text), &identifier, len(identifier))
}

// person is an email address or an E.164 phone number.
func (n *Normalizer) person(i int) string {
	text := n.value(i, required)
	if text == nil {
		return ""
	}
	known, ok := n.people.get(text)
	if !ok {
		identifier := schema.NormalizeIdentifier(string(text))
		known = &identifier
	}
	// Somebody remembered may have been an initiator, whose rules are wider.
	if known == nil || !utf8.ValidString(*known) || !isAddress(*known) && !isPhoneNumber(*known) {
		n.fail(i, "must be an email address or a phone number in E.164 form such as +15550100")
		return ""
	}
	if !ok {
		n.people.add(string(text), known, len(*known))
	}
	return *known
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
