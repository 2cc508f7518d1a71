package client

// Limits of the API (spec section 8), all inclusive.
const (
	MaxLimit        = 500 // rows on a page
	MaxRangeDays    = 366
	MaxFilters      = 8
	MaxFilterValues = 50
	MaxFilterLength = 200 // code points of a value
)

// A Query is one question to one model of the catalog. Model, Metrics and Range are required.
type Query struct {
	Model      string      `json:"model"`
	Metrics    []string    `json:"metrics"`
	Dimensions []string    `json:"dimensions,omitempty"` // without any the answer is one row of totals
	Filters    []Filter    `json:"filters,omitempty"`    // all of them apply
	Range      Range       `json:"range"`
	Order      []OrderTerm `json:"order,omitempty"`  // without it, by the dimensions
	Limit      int         `json:"limit,omitempty"`  // rows on a page, 1 to MaxLimit; 0 is the server's default, 100
	Cursor     string      `json:"cursor,omitempty"` // of the page before; Pages sets it
}

// A Filter keeps rows by the value of a dimension. Make it with Eq or In.
type Filter struct {
	Member string   `json:"member"`
	Op     string   `json:"op"`
	Value  string   `json:"value,omitempty"`  // of "eq"
	Values []string `json:"values,omitempty"` // of "in"
}

// Eq keeps the rows with one value.
func Eq(member, value string) Filter { return Filter{Member: member, Op: "eq", Value: value} }

// In keeps the rows with any of the values, at most MaxFilterValues.
func In(member string, values ...string) Filter {
	return Filter{Member: member, Op: "in", Values: values}
}

// A Range is whole local days, both inclusive, written YYYY-MM-DD, at most MaxRangeDays of them.
type Range struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Timezone string `json:"timezone"` // canonical, such as Europe/Stockholm or UTC
}

// An OrderTerm orders by a selected dimension or metric. In the order of a metric there is a single page.
type OrderTerm struct {
	Member    string    `json:"member"`
	Direction Direction `json:"direction"`
}

// A Direction is Asc or Desc. Null sorts last in both.
type Direction string

// The directions of an OrderTerm.
const (
	Asc  Direction = "asc"
	Desc Direction = "desc"
)
