package client

import "time"

// A Response is one page of an answer.
type Response struct {
	QueryID        string        `json:"queryId"` // different for every request
	CatalogVersion string        `json:"catalogVersion"`
	AsOf           time.Time     `json:"asOf"` // rows stored later are in no page of this answer
	Range          ResponseRange `json:"range"`
	Columns        []Column      `json:"columns"`
	Rows           [][]Value     `json:"rows"`   // each has a value for every column
	Cursor         string        `json:"cursor"` // empty on the last page
	Warnings       []Warning     `json:"warnings"`

	RequestID string `json:"-"` // the header x-request-id, which the server's log names
}

// A ResponseRange is the range as requested, and what it is in UTC.
type ResponseRange struct {
	Start    string    `json:"start"`
	End      string    `json:"end"`
	Timezone string    `json:"timezone"`
	StartUTC time.Time `json:"startUtc"` // inclusive
	EndUTC   time.Time `json:"endUtc"`   // exclusive
}

// A Column describes a position of every row.
type Column struct {
	Name   string `json:"name"`
	Type   string `json:"type"`   // TypeString, TypeNumber or TypeDate; a newer server may have others
	Member string `json:"member"` // the catalog's member; a companion has its dimension's
}

// The types of members and columns.
const (
	TypeString = "string"
	TypeNumber = "number"
	TypeDate   = "date"
)

// A Warning is a notice about the meaning of an answer.
type Warning struct {
	Code    string `json:"code"`
	Member  string `json:"member"`
	Message string `json:"message"`
}
