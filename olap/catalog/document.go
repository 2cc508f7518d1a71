package catalog

// A Response is the body of the catalog endpoint (spec 2.1).
type Response struct {
	CatalogVersion string          `json:"catalogVersion"`
	Models         []ResponseModel `json:"models"`
}

// A ResponseModel is spec 2.2's CatalogModel.
type ResponseModel struct {
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Grain       string              `json:"grain"`
	EventClock  string              `json:"eventClock"`
	Metrics     []ResponseMetric    `json:"metrics"`
	Dimensions  []ResponseDimension `json:"dimensions"`
}

// A ResponseMetric is spec 2.3's CatalogMetric.
type ResponseMetric struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Description string      `json:"description"`
	Additive    bool        `json:"additive"`
	Deprecated  *Deprecated `json:"deprecated"`
}

// A ResponseDimension is spec 2.4's CatalogDimension.
type ResponseDimension struct {
	Name        string              `json:"name"`
	Type        string              `json:"type"`
	Description string              `json:"description"`
	Companions  []ResponseCompanion `json:"companions"`
	Deprecated  *Deprecated         `json:"deprecated"`
}

// A ResponseCompanion is spec 2.5's CatalogCompanion.
type ResponseCompanion struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// The types of members and columns (spec 2.3, 2.4, 2.14).
const (
	TypeString = "string"
	TypeNumber = "number"
	TypeDate   = "date"
)

// Type is the dimension's published type: TypeDate for a day, else TypeString.
func (d *Dimension) Type() string {
	if d.Kind == Day {
		return TypeDate
	}
	return TypeString
}

// Document is the catalog as the catalog endpoint answers it.
func Document() Response {
	response := Response{CatalogVersion: Version, Models: []ResponseModel{}}
	for _, m := range Models {
		response.Models = append(response.Models, m.document())
	}
	return response
}

func (m *Model) document() ResponseModel {
	doc := ResponseModel{
		Name: m.Name, Description: m.Description, Grain: m.Grain, EventClock: m.EventClock,
		Metrics: []ResponseMetric{}, Dimensions: []ResponseDimension{},
	}
	for _, metric := range m.Metrics {
		doc.Metrics = append(doc.Metrics, ResponseMetric{
			Name: metric.Name, Type: TypeNumber, Description: metric.Description,
			Additive: metric.Additive, Deprecated: metric.Deprecated,
		})
	}
	for _, dimension := range m.Dimensions {
		companions := []ResponseCompanion{}
		for _, c := range dimension.Companions {
			companions = append(companions, ResponseCompanion{Name: c.Name, Type: TypeString, Description: c.Description})
		}
		doc.Dimensions = append(doc.Dimensions, ResponseDimension{
			Name: dimension.Name, Type: dimension.Type(), Description: dimension.Description,
			Companions: companions, Deprecated: dimension.Deprecated,
		})
	}
	return doc
}
