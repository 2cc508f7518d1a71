package query

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
	var d decoder
	r := d.request(node{"", body})
	if d.fault != nil {
		return Query{}, d.fault
	}
	return resolve(r)
}

// A timezone has no length limit of its own; the longest canonical name is far below this.
const maxRangeTextLength = 64

func (d *decoder) request(n node) request {
	r := request{Dimensions: []string{}, Filters: []filterShape{}, Order: []orderShape{}, Limit: DefaultLimit}
	properties := d.object(n, []string{"model", "metrics", "range"}, "dimensions", "filters", "order", "limit", "cursor")
	r.Model = d.text(properties["model"], MaxNameLength)
	r.Metrics = d.uniqueTexts(properties["metrics"], 1, MaxMetrics, MaxNameLength)
	if n, ok := properties["dimensions"]; ok {
		r.Dimensions = d.uniqueTexts(n, 0, MaxDimensions, MaxNameLength)
	}
	if n, ok := properties["filters"]; ok {
		for _, element := range d.list(n, 0, MaxFilters) {
			r.Filters = append(r.Filters, d.filter(element))
		}
	}
	r.Range = d.dates(properties["range"])
	if n, ok := properties["order"]; ok {
		r.Order = d.order(n)
	}
	if n, ok := properties["limit"]; ok {
		r.Limit = d.integer(n, 1, MaxLimit)
	}
	if n, ok := properties["cursor"]; ok {
		r.cursor = d.text(n, MaxCursorLength)
	}
	return r
}

// filter reads one of the two shapes of spec 2.11; the operator decides which.
func (d *decoder) filter(n node) filterShape {
	properties := d.object(n, []string{"member", "op"}, "value", "values")
	f := filterShape{Member: d.text(properties["member"], MaxNameLength), Op: d.text(properties["op"], MaxNameLength)}
	switch f.Op {
	case "eq":
		properties = d.object(n, []string{"member", "op", "value"})
		f.Values = []string{d.text(properties["value"], MaxValueLength)}
	case "in":
		properties = d.object(n, []string{"member", "op", "values"})
		f.Values, _ = d.texts(properties["values"], 1, MaxFilterValues, MaxValueLength)
	default:
		d.refuse(n.at("op"), "must be eq or in")
	}
	return f
}

func (d *decoder) dates(n node) rangeShape {
	properties := d.object(n, []string{"start", "end", "timezone"})
	return rangeShape{
		Start:    d.text(properties["start"], maxRangeTextLength),
		End:      d.text(properties["end"], maxRangeTextLength),
		Timezone: d.text(properties["timezone"], maxRangeTextLength),
	}
}

func (d *decoder) order(n node) []orderShape {
	terms := []orderShape{}
	seen := map[string]bool{}
	for _, element := range d.list(n, 0, MaxOrderTerms) {
		properties := d.object(element, []string{"member", "direction"})
		member := d.text(properties["member"], MaxNameLength)
		direction := d.text(properties["direction"], MaxNameLength)
		if direction != "asc" && direction != "desc" {
			d.refuse(element.at("direction"), "must be asc or desc")
		}
		if seen[member] {
			d.refuse(element.at("member"), "is a repeat")
		}
		seen[member] = true
		terms = append(terms, orderShape{Member: member, Descending: direction == "desc"})
	}
	return terms
}
