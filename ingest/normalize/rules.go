package normalize

import (
	"fmt"
	"slices"
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

// The instants the store can hold (schema/DESIGN.md), both inclusive.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2299, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

var (
	runKinds       = []string{"agent", "sub_agent", "browser", "phone", "inbound_phone", "platform"}
	statuses       = []string{"PENDING", "RUNNING", "WAITING_FOR_SLOT", "CANCELLING", "AWAITING_REPLY", "SLEEPING", "PAUSING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"}
	initiatorTypes = []string{"internal", "external", "automated", "unknown"}
	activityTypes  = []string{"initiated", "associated", "interacted"}
	initiations    = []string{"human", "automated", "unknown"}
)

// A checker applies rules field after field and keeps the first fault.
type checker struct{ fault *Error }

func (c *checker) fail(field, format string, args ...any) {
	if c.fault == nil {
		c.fault = &Error{field, fmt.Sprintf(format, args...)}
	}
}

// required is the value of a field that must be there and not null.
func (c *checker) required(field string, value *string) string {
	if value == nil {
		c.fail(field, "is required")
		return ""
	}
	return *value
}

func (c *checker) organization(value *string) schema.OrganizationID {
	text := c.required("organization_id", value)
	id, err := schema.ParseOrganizationID(text)
	if err != nil && value != nil {
		c.fail("organization_id", "%v", err)
	}
	return id
}

// id is a UUID in its usual form of 36 characters, in any letter case.
func (c *checker) id(field string, value *string) uuid.UUID {
	text := c.required(field, value)
	id, err := uuid.Parse(text)
	if value != nil && (err != nil || len(text) != 36) {
		c.fail(field, "must be a UUID such as 0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10")
	}
	return id
}

func (c *checker) optionalID(field string, value *string) *uuid.UUID {
	if value == nil {
		return nil
	}
	id := c.id(field, value)
	return &id
}

// instant is an RFC 3339 time with offset, cut (not rounded) to the millisecond.
func (c *checker) instant(field string, value *string) time.Time {
	text := c.required(field, value)
	if value == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		c.fail(field, "must be an RFC 3339 time with offset such as 2026-01-31T09:30:00.000Z")
		return time.Time{}
	}
	t = t.UTC().Truncate(time.Millisecond)
	if t.Before(earliest) || t.After(latest) {
		c.fail(field, "must lie in the years 1900 to 2299")
	}
	return t
}

func (c *checker) optionalInstant(field string, value *string) *time.Time {
	if value == nil {
		return nil
	}
	t := c.instant(field, value)
	return &t
}

func (c *checker) oneOf(field string, value *string, allowed []string) string {
	text := c.required(field, value)
	if value != nil && !slices.Contains(allowed, text) {
		c.fail(field, "must be one of %s", strings.Join(allowed, ", "))
	}
	return text
}

func (c *checker) optionalOneOf(field string, value *string, allowed []string) *string {
	if value != nil {
		c.oneOf(field, value, allowed)
	}
	return value
}

// text is a text of least to most characters, both inclusive.
func (c *checker) text(field string, value *string, least, most int) string {
	text := c.required(field, value)
	if length := utf8.RuneCountInString(text); value != nil && (length < least || length > most) {
		if least == 0 {
			c.fail(field, "must have at most %d characters, not %d", most, length)
		} else {
			c.fail(field, "must have %d to %d characters, not %d", least, most, length)
		}
	}
	return text
}

func (c *checker) optionalText(field string, value *string, least, most int) *string {
	if value != nil {
		c.text(field, value, least, most)
	}
	return value
}

// initiator is an identifier of any form. One that is blank identifies nobody and becomes null.
func (c *checker) initiator(field string, value *string) *string {
	if value == nil {
		return nil
	}
	identifier := schema.NormalizeIdentifier(c.text(field, value, 0, maxIdentifier))
	if identifier == "" {
		return nil
	}
	// Lower case can be longer than upper case; what is stored keeps the bound as well.
	c.text(field, &identifier, 0, maxIdentifier)
	return &identifier
}

// person is an email address or an E.164 phone number.
func (c *checker) person(field string, value *string) string {
	identifier := schema.NormalizeIdentifier(c.required(field, value))
	if value != nil && !isAddress(identifier) && !isPhoneNumber(identifier) {
		c.fail(field, "must be an email address or a phone number in E.164 form such as +15550100")
	}
	return identifier
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
