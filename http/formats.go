package httpapi

import (
	"cmp"
	"mime"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/runlens/runlens/olap"
)

// The formats of an answer, the default first. But for JSON they have the rows alone, and headers have the rest.
var formats = []format{
	{fiber.MIMEApplicationJSON, "", (*olap.Result).AppendJSON},
	{"text/csv", "; charset=utf-8; header=present", (*olap.Result).AppendCSV},
	{"application/x-ndjson", "", (*olap.Result).AppendNDJSON},
	{"application/vnd.apache.arrow.stream", "", (*olap.Result).AppendArrow},
}

// A format is how an answer is written.
type format struct {
	mediaType  string
	parameters string // of the content type
	append     func(*olap.Result, []byte) []byte
}

// sendResult answers with a result in the format that the client prefers.
func sendResult(c *fiber.Ctx, result *olap.Result) error {
	f := preferred(c.Get(fiber.HeaderAccept))
	c.Vary(fiber.HeaderAccept)
	if f.mediaType != fiber.MIMEApplicationJSON {
		setFacts(c, result.Facts())
		c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	}
	return send(c, f.mediaType+f.parameters, f.append(result, nil))
}

// preferred is the format that an Accept field likes best (RFC 9110, section 12.5.1): the one of the greatest weight,
// of those the one that is named most exactly, of those the first. What accepts none of them gets JSON all the same.
func preferred(accept string) *format {
	best, most := &formats[0], weight{}
	ranges := mediaRanges(accept)
	for i := range formats {
		if w := weightOf(formats[i].mediaType, ranges); w.quality > 0 && w.compare(most) > 0 {
			best, most = &formats[i], w
		}
	}
	return best
}

// A mediaRange is one of an Accept field, with its weight, from 0 to 1.
type mediaRange struct {
	name    string
	quality float64
}

// mediaRanges are those of an Accept field. Parameters other than the weight do not count, nor do ranges that cannot be
// read.
func mediaRanges(accept string) (ranges []mediaRange) {
	for text := range strings.SplitSeq(accept, ",") {
		name, parameters, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		quality := 1.0
		if text, given := parameters["q"]; given {
			if quality, err = strconv.ParseFloat(text, 64); err != nil || !(quality >= 0 && quality <= 1) {
				continue
			}
		}
		ranges = append(ranges, mediaRange{name, quality})
	}
	return ranges
}

// A weight is how much a media type is liked. The zero weight is that of one that is not accepted.
type weight struct {
	quality float64 // 0 to 1
	exact   int     // 1 for */*, 2 for type/*, 3 for the type itself
}

func (w weight) compare(other weight) int {
	return cmp.Or(cmp.Compare(w.quality, other.quality), cmp.Compare(w.exact, other.exact))
}

// weightOf is the weight that the most exact of the ranges gives a media type.
func weightOf(mediaType string, ranges []mediaRange) (w weight) {
	kind, _, _ := strings.Cut(mediaType, "/")
	for _, r := range ranges {
		exact := map[string]int{"*/*": 1, kind + "/*": 2, mediaType: 3}[r.name]
		if exact > w.exact {
			w = weight{r.quality, exact}
		}
	}
	return w
}

// setFacts sends what an answer says besides its rows. Lists are written as RFC 9651 says: items with parameters.
func setFacts(c *fiber.Ctx, f olap.Facts) {
	var columns, warnings []string
	for _, column := range f.Columns {
		columns = append(columns, column.Name+";type="+column.Kind.Type()+";member="+column.Member)
	}
	for _, member := range f.NotAdditive {
		warnings = append(warnings, member+";code=non_additive_metric")
	}
	c.Set("x-runlens-query-id", f.QueryID.String())
	c.Set("x-runlens-catalog-version", f.CatalogVersion)
	c.Set("x-runlens-as-of", olap.Instant(f.AsOf))
	c.Set("x-runlens-range-utc", olap.Instant(f.StartUTC)+"/"+olap.Instant(f.EndUTC))
	c.Set("x-runlens-columns", strings.Join(columns, ", "))
	if len(warnings) > 0 {
		c.Set("x-runlens-warnings", strings.Join(warnings, ", "))
	}
	if f.Cursor != "" {
		c.Set("x-runlens-cursor", f.Cursor)
	}
}
