// Package members says of the catalog's members what a person or a program needs to use them: what the catalog says,
// the units of metrics, and what filters can do with dimensions.
package members

import (
	"slices"
	"strings"

	"github.com/runlens/runlens/http/client"
)

// A Catalog is the API's catalog with more about each member. As JSON it has every field of the API's.
type Catalog struct {
	CatalogVersion string  `json:"catalogVersion"`
	Models         []Model `json:"models"`
}

// A Model is one subject of questions.
type Model struct {
	client.Model
	Metrics    []Metric    `json:"metrics"`
	Dimensions []Dimension `json:"dimensions"`
}

// A Metric is a number that can be asked for.
type Metric struct {
	client.Metric
	Unit string `json:"unit"`
}

// A Dimension groups and filters.
type Dimension struct {
	client.Dimension
	Operators []string `json:"operators"` // of filters
}

// Describe adds to the catalog what follows from the rules of the API.
func Describe(c *client.Catalog) Catalog {
	described := Catalog{CatalogVersion: c.CatalogVersion}
	for _, m := range c.Models {
		model := Model{Model: m}
		for _, metric := range m.Metrics {
			model.Metrics = append(model.Metrics, Metric{metric, Unit(metric.Name)})
		}
		for _, dimension := range m.Dimensions {
			model.Dimensions = append(model.Dimensions, Dimension{dimension, []string{"eq", "in"}})
		}
		described.Models = append(described.Models, model)
	}
	return described
}

// ModelOf is the catalog's model of that name, and one without a name if there is none.
func ModelOf(c *client.Catalog, name string) client.Model {
	at := slices.IndexFunc(c.Models, func(m client.Model) bool { return m.Name == name })
	if at < 0 {
		return client.Model{}
	}
	return c.Models[at]
}

// DescriptionOf is what the catalog says of a column: a member of the model or what comes with one.
func DescriptionOf(model client.Model, column string) string {
	for _, m := range model.Metrics {
		if m.Name == column {
			return m.Description
		}
	}
	for _, d := range model.Dimensions {
		if d.Name == column {
			return d.Description
		}
		for _, companion := range d.Companions {
			if companion.Name == column {
				return companion.Description
			}
		}
	}
	return ""
}

// Unit of a metric follows the catalog's names: rates are parts of 1, everything else is counted.
func Unit(metric string) string {
	if strings.HasSuffix(metric, "_rate") {
		return "ratio from 0 to 1"
	}
	return "count"
}
