package assistant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/http/client"
)

// A schema is one of JSON Schema, draft 2020-12. Tools keep to its simple part, which every assistant understands.
type schema map[string]any

func object(properties map[string]schema, required ...string) schema {
	s := schema{"type": "object", "additionalProperties": false}
	if properties != nil {
		s["properties"] = properties
	}
	if required != nil {
		s["required"] = required
	}
	return s
}

func text(description string, enum ...string) schema {
	s := schema{"type": "string", "description": description}
	if enum != nil {
		s["enum"] = enum
	}
	return s
}

func list(items schema, description string, least, most int) schema {
	return schema{"type": "array", "items": items, "description": description, "minItems": least, "maxItems": most}
}

// querySchema is what the query tool takes: a query of the API with the catalog's members.
func querySchema(catalog *client.Catalog) schema {
	var models, metrics, dimensions, about []string
	for _, model := range catalog.Models {
		models = append(models, model.Name)
		about = append(about, model.Name+": "+model.Description)
		for _, m := range model.Metrics {
			metrics = append(metrics, m.Name)
		}
		for _, d := range model.Dimensions {
			dimensions = append(dimensions, d.Name)
		}
	}
	metrics, dimensions = distinct(metrics), distinct(dimensions)
	filter := object(map[string]schema{
		"member": text("The dimension.", dimensions...),
		"op":     text("eq with value, or in with values.", "eq", "in"),
		"value":  text("Of eq."),
		"values": list(schema{"type": "string"}, "Of in: any of them.", 1, client.MaxFilterValues),
	}, "member", "op")
	order := object(map[string]schema{
		"member":    text("A selected metric or dimension.", slices.Concat(metrics, dimensions)...),
		"direction": text("Null sorts last in both.", "asc", "desc"),
	}, "member", "direction")
	days := object(map[string]schema{
		"start":    text("The first day, inclusive, as 2026-01-31."),
		"end":      text(fmt.Sprintf("The last day, inclusive; at most %d days in all.", client.MaxRangeDays)),
		"timezone": text("A canonical IANA timezone of the days, such as Europe/Stockholm or UTC."),
	}, "start", "end", "timezone")
	return object(map[string]schema{
		"model": text(strings.Join(about, "\n"), models...),
		"metrics": list(text("A metric of the model.", metrics...),
			"What is counted. The catalog says which metrics a model has.", 1, 16),
		"dimensions": list(text("A dimension of the model.", dimensions...),
			"What rows are grouped by; day gives a row a day. Without any there is one row of totals.", 0, 8),
		"filters": list(filter, "All of them apply.", 0, client.MaxFilters),
		"range":   days,
		"order": list(order,
			"Only with dimensions. In the order of a metric there are only the first rows, and no cursor.", 0, 8),
		"limit": {"type": "integer", "minimum": 1, "maximum": client.MaxLimit, "description": "The most rows; 100 without " +
			"it. For the greatest or least few, order by a metric and set a small limit."},
		"cursor": text("Of the answer before, to go on with the next rows; everything else stays the same."),
	}, "model", "metrics", "range")
}

// answerSchema is what the query tool gives. It is open, so that nothing breaks when there is more to say.
func answerSchema() schema {
	open := func(properties map[string]schema, required ...string) schema {
		s := object(properties, required...)
		delete(s, "additionalProperties")
		return s
	}
	column := open(map[string]schema{
		"name": text("Its name."), "type": text("string, number or date."), "unit": text("Of a number."),
		"description": text("What the values mean."),
		"additive":    {"type": "boolean", "description": "Whether values may be summed across rows."},
	}, "name", "type")
	warning := open(map[string]schema{
		"code": text("Its code."), "member": text("Whom it is about."), "message": text("What it says."),
	})
	days := open(map[string]schema{
		"start": text("Inclusive."), "end": text("Inclusive."), "timezone": text("Of the days."),
	})
	value := schema{"type": []string{"string", "number", "null"}}
	row := schema{"type": "array", "items": value}
	return open(map[string]schema{
		"range":     days,
		"asOf":      text("What was stored later is not counted."),
		"columns":   {"type": "array", "items": column},
		"rows":      {"type": "array", "items": row, "description": "A value for every column."},
		"warnings":  {"type": "array", "items": warning},
		"cursor":    text("There are further rows: ask again with it."),
		"truncated": text("Why rows are missing here, and what to do."),
		"queryId":   text("Under which the server's log has this query."),
	}, "range", "asOf", "columns", "rows", "warnings")
}

// distinct keeps the first of equal names.
func distinct(names []string) (kept []string) {
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}
