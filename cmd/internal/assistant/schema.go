package assistant

import (
	"slices"

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
	s := schema{"type": "array", "items": items, "maxItems": most}
	if description != "" {
		s["description"] = description
	}
	if least > 0 {
		s["minItems"] = least
	}
	return s
}

// querySchema is what the query tool takes: the catalog's members, a range, and how to look at it. An assistant reads
// it in every conversation, so what the members mean is left to the tool catalog.
func querySchema(catalog *client.Catalog) schema {
	var models, metrics, dimensions []string
	for _, model := range catalog.Models {
		models = append(models, model.Name)
		for _, m := range model.Metrics {
			metrics = append(metrics, m.Name)
		}
		for _, d := range model.Dimensions {
			dimensions = append(dimensions, d.Name)
		}
	}
	filter := object(map[string]schema{
		"member": text("A dimension."),
		"op":     text("eq: value; in: values.", "eq", "in"),
		"value":  {"type": "string"},
		"values": list(schema{"type": "string"}, "", 1, client.MaxFilterValues),
	}, "member", "op")
	order := object(map[string]schema{
		"member":    text("A selected metric or dimension."),
		"direction": text("Null is last in both.", "asc", "desc"),
	}, "member", "direction")
	days := object(map[string]schema{
		"start":     text("First day: 2026-01-31."),
		"end":       text("Last day; default today."),
		"last":      text("Instead of start: today, yesterday, 30d, 12w, 13mo, the running one included."),
		"timezone":  text("IANA: Europe/Stockholm."),
		"weekStart": text("Default monday."),
	}, "timezone")
	return object(map[string]schema{
		"model":   text("What rows are.", models...),
		"metrics": list(text("Of the model.", distinct(metrics)...), "What is counted.", 1, 16),
		"dimensions": list(text("Of the model.", distinct(dimensions)...),
			"What rows are grouped by. Without any: one row of totals.", 0, 8),
		"filters": list(filter, "All of them apply.", 0, client.MaxFilters),
		"range":   days,
		"grain": text("Rows for every week or month; limit is of each. Not with the dimension day.",
			"week", "month"),
		"compare": text("An earlier value, difference and percent beside every metric: with grain of the same days of the "+
			"week or month before, else of as many days before; or of a year before. "+
			"This week with last: last 1w, grain week.", "previous", "year"),
		"weekdays": {"type": "boolean", "description": "Compares with whole weeks before."},
		"fill":     {"type": "boolean", "description": "Rows also for days without data."},
		"order":    list(order, "By a metric: only the first rows, no cursor.", 0, 8),
		"limit": {"type": "integer", "minimum": 1, "maximum": client.MaxLimit,
			"description": "Default 100. For the top few order by a metric."},
		"cursor": text("Of the answer before, all else unchanged."),
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
		"name": {"type": "string"}, "type": {"type": "string"}, "unit": {"type": "string"},
		"additive": {"type": "boolean", "description": "May be summed across rows."},
	})
	return open(map[string]schema{
		"range":     {"type": "object"},
		"asOf":      {"type": "string"},
		"today":     {"type": "string"},
		"columns":   {"type": "array", "items": column},
		"rows":      {"type": "array", "items": schema{"type": "array"}},
		"warnings":  {"type": "array"},
		"notes":     {"type": "array"},
		"cursor":    text("Of further rows."),
		"truncated": text("Why rows are missing, and what to do."),
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
