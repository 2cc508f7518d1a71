package catalog

import "github.com/go-json-experiment/json"

// The types of members and columns (spec 2.3, 2.4, 2.14).
const (
	TypeString = "string"
	TypeNumber = "number"
	TypeDate   = "date"
)

// MarshalText is the published type of a metric.
func (MetricKind) MarshalText() ([]byte, error) { return []byte(TypeNumber), nil }

// MarshalText is the published type of a dimension or a companion: TypeDate for a day, else TypeString.
func (k DimensionKind) MarshalText() ([]byte, error) {
	if k == Day {
		return []byte(TypeDate), nil
	}
	return []byte(TypeString), nil
}

// Document is the catalog as the catalog endpoint answers it (spec 2.1): of every member, what has a name in JSON.
func Document() ([]byte, error) {
	return json.Marshal(struct {
		CatalogVersion string   `json:"catalogVersion"`
		Models         []*Model `json:"models"`
	}{Version, Models})
}
