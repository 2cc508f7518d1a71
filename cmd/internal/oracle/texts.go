package oracle

import "strings"

// null means no text.
const null int32 = -1

// texts numbers texts, so that groups have short keys.
type texts struct {
	all    []string
	number map[string]int32
}

func newTexts() *texts { return &texts{number: map[string]int32{}} }

func (t *texts) of(text string) int32 {
	number, known := t.number[text]
	if !known {
		number = int32(len(t.all))
		t.all = append(t.all, text)
		t.number[text] = number
	}
	return number
}

func (t *texts) optional(text *string) int32 {
	if text == nil {
		return null
	}
	return t.of(*text)
}

// domain is what follows the @ of an email address.
func (t *texts) domain(identifier string) int32 {
	_, domain, email := strings.Cut(identifier, "@")
	if !email {
		return null
	}
	return t.of(domain)
}

// known is the number of a text that some record has; another negative number than null for others.
func (t *texts) known(text string) int32 {
	if number, known := t.number[text]; known {
		return number
	}
	return -2
}

func (t *texts) value(number int32) any {
	if number == null {
		return nil
	}
	return t.all[number]
}
