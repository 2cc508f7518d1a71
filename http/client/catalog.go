package client

// A Catalog lists everything that can be asked.
type Catalog struct {
	CatalogVersion string  `json:"catalogVersion"`
	Models         []Model `json:"models"`
}

// A Model is one subject of questions.
type Model struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Grain       string      `json:"grain"`      // what one row of the model is
	EventClock  string      `json:"eventClock"` // the time that ranges select by
	Metrics     []Metric    `json:"metrics"`
	Dimensions  []Dimension `json:"dimensions"`
}

// A Metric is a number that can be asked for.
type Metric struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Description string      `json:"description"`
	Additive    bool        `json:"additive"` // whether values of several groups may be added up
	Deprecated  *Deprecated `json:"deprecated"`
}

// A Dimension groups and filters.
type Dimension struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Description string      `json:"description"`
	Companions  []Companion `json:"companions"` // columns that come with it
	Deprecated  *Deprecated `json:"deprecated"`
}

// A Companion is a column that comes with a dimension. It is no member: it cannot be selected or filtered.
type Companion struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// Deprecated says since which catalog version a member should no longer be used, and what to use instead.
type Deprecated struct {
	Since string `json:"since"`
	Note  string `json:"note"`
}
