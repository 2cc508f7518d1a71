package query

import (
	"github.com/go-json-experiment/json/jsontext"
)

// A request is a body whose shape is right: every property is known, has the right type and keeps its bounds. What its
// words mean is not checked yet.
type request struct {
	Model      string        `json:"model"`
	Metrics    []string      `json:"metrics"`
	Dimensions []string      `json:"dimensions"`
	Filters    []filterShape `json:"filters"`
	Range      rangeShape    `json:"range"`
	Order      []orderShape  `json:"order"`
	Limit      int           `json:"limit"`

	cursor string
}

type filterShape struct {
	Member string   `json:"member"`
	Op     string   `json:"op"`
	Values []string `json:"values"`
}

type rangeShape struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Timezone string `json:"timezone"`
}

type orderShape struct {
	Member     string `json:"member"`
	Descending bool   `json:"descending"`
}

// Parse reads the body of a query request strictly. The body has passed CheckSyntax. The error is
// an *Error: the first fault found, where faults of shape come before faults of meaning.
func Parse(body []byte) (Query, error) {
	r, err := parseShape(jsontext.Value(body))
	if err != nil {
		return Query{}, err
	}
	return resolve(r)
}

// A timezone has no length limit of its own; the longest canonical name is far below this.
const maxRangeTextLength = 64

func parseShape(body jsontext.Value) (request, error) {
	r := request{Dimensions: []string{}, Filters: []filterShape{}, Order: []orderShape{}, Limit: DefaultLimit}
	properties, err := node{"", body}.object([]string{"model", "metrics", "range"}, "dimensions", "filters", "order",
		"limit", "cursor")
	if err != nil {
		return r, err
	}
	if r.Model, err = properties["model"].text(MaxNameLength); err != nil {
		return r, err
	}
	if r.Metrics, err = properties["metrics"].uniqueTexts(1, MaxMetrics, MaxNameLength); err != nil {
		return r, err
	}
	if n, ok := properties["dimensions"]; ok {
		if r.Dimensions, err = n.uniqueTexts(0, MaxDimensions, MaxNameLength); err != nil {
			return r, err
		}
	}
	if n, ok := properties["filters"]; ok {
		if r.Filters, err = parseFilters(n); err != nil {
			return r, err
		}
	}
	if r.Range, err = parseRange(properties["range"]); err != nil {
		return r, err
	}
	if n, ok := properties["order"]; ok {
		if r.Order, err = parseOrder(n); err != nil {
			return r, err
		}
	}
	if n, ok := properties["limit"]; ok {
		if r.Limit, err = n.integer(1, MaxLimit); err != nil {
			return r, err
		}
	}
	if n, ok := properties["cursor"]; ok {
		if r.cursor, err = n.text(MaxCursorLength); err != nil {
			return r, err
		}
	}
	return r, nil
}

func parseFilters(n node) ([]filterShape, error) {
	elements, err := n.list(0, MaxFilters)
	if err != nil {
		return nil, err
	}
	filters := make([]filterShape, len(elements))
	for i, element := range elements {
		if filters[i], err = parseFilter(element); err != nil {
			return nil, err
		}
	}
	return filters, nil
}

// parseFilter reads one of the two shapes of spec 2.11; the operator decides which.
func parseFilter(n node) (filterShape, error) {
	var f filterShape
	properties, err := n.object([]string{"member", "op"}, "value", "values")
	if err != nil {
		return f, err
	}
	if f.Member, err = properties["member"].text(MaxNameLength); err != nil {
		return f, err
	}
	if f.Op, err = properties["op"].text(MaxNameLength); err != nil {
		return f, err
	}
	switch f.Op {
	case "eq":
		if properties, err = n.object([]string{"member", "op", "value"}); err != nil {
			return f, err
		}
		value, err := properties["value"].text(MaxValueLength)
		f.Values = []string{value}
		return f, err
	case "in":
		if properties, err = n.object([]string{"member", "op", "values"}); err != nil {
			return f, err
		}
		f.Values, _, err = properties["values"].texts(1, MaxFilterValues, MaxValueLength)
		return f, err
	default:
		return f, invalid(n.at("op"), "must be eq or in")
	}
}

func parseRange(n node) (rangeShape, error) {
	var r rangeShape
	properties, err := n.object([]string{"start", "end", "timezone"})
	if err != nil {
		return r, err
	}
	if r.Start, err = properties["start"].text(maxRangeTextLength); err != nil {
		return r, err
	}
	if r.End, err = properties["end"].text(maxRangeTextLength); err != nil {
		return r, err
	}
	r.Timezone, err = properties["timezone"].text(maxRangeTextLength)
	return r, err
}

func parseOrder(n node) ([]orderShape, error) {
	elements, err := n.list(0, MaxOrderTerms)
	if err != nil {
		return nil, err
	}
	terms := make([]orderShape, len(elements))
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		properties, err := element.object([]string{"member", "direction"})
		if err != nil {
			return nil, err
		}
		member, err := properties["member"].text(MaxNameLength)
		if err != nil {
			return nil, err
		}
		direction, err := properties["direction"].text(MaxNameLength)
		if err != nil {
			return nil, err
		}
		if direction != "asc" && direction != "desc" {
			return nil, invalid(element.at("direction"), "must be asc or desc")
		}
		if seen[member] {
			return nil, invalid(element.at("member"), "is a repeat")
		}
		seen[member] = true
		terms[i] = orderShape{Member: member, Descending: direction == "desc"}
	}
	return terms, nil
}
