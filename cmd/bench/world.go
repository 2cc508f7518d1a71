package main

import (
	"fmt"
	"math"
	"time"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
)

const (
	// dataDays is how far the data reaches back; rows of the first hours lie before the longest range.
	dataDays = 366

	agentsPerOrganization = 50
	people                = 20_000
)

// A class is a number of organizations of one size, alike but for the rows' ids and random draws.
type class struct {
	name  string
	count uint64 // organizations
	size  uint64 // runs of each, and as many attribution records
}

// rows is the number of runs of all organizations of the class.
func (c class) rows() uint64 { return c.count * c.size }

// organization is the id of the o-th organization.
func (c class) organization(o uint64) schema.OrganizationID {
	return schema.OrganizationID(fmt.Sprintf("%s-%d", c.name, o))
}

func (c class) first() schema.OrganizationID { return c.organization(0) }

// title names the class in the report.
func (c class) title() string { return fmt.Sprintf("%s, %d runs", c.name, c.size) }

// A world is all the data of a run: deterministic for a scale and an end.
type world struct {
	large, medium, small class
	// below and above are alike, and above counts as an organization of whose years the rollup answers.
	below, above class
	// sizes are further ones: every size has its ratio to the reference.
	sizes []class
	until time.Time
}

func newWorld(scale float64, until time.Time) world {
	size := func(n float64) uint64 { return uint64(max(40, math.Round(n*scale))) }
	// Organizations that are not large keep their size; of a smaller world there are fewer of them.
	fixed := func(n float64) uint64 { return size(n * min(1/scale, 10)) }
	count := func(n float64) uint64 { return uint64(max(1, math.Round(n*scale))) }
	const justBelow = 0.9 * plan.RollupFrom // a tenth of the rows are repeats and later versions
	return world{
		large:  class{"large", 1, size(10_000_000)},
		medium: class{"medium", 1, size(1_000_000)},
		small:  class{"small", count(100), fixed(10_000)},
		below:  class{"below", 1, size(justBelow)},
		above:  class{"above", 1, size(justBelow)},
		sizes: []class{
			{"tiny", count(100), fixed(1_000)},
			{"middle", 1, fixed(200_000)},
			{"big", 1, size(3_000_000)},
		},
		until: until,
	}
}

// others are all classes but the medium one.
func (w world) others() []class {
	return append([]class{w.large, w.small, w.below, w.above}, w.sizes...)
}

// sized are the classes that are measured against merged tables, by their size.
func (w world) sized() []class {
	return []class{w.sizes[0], w.small, w.sizes[1], w.below, w.above, w.medium, w.sizes[2], w.large}
}

func (w world) spanMillis() int64 { return dataDays * 24 * time.Hour.Milliseconds() }
func (w world) startMillis() int64 {
	return w.until.UnixMilli() - w.spanMillis()
}
