package console

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// words is the name of a member or a column as people read it.
func words(name string) string {
	if metric, end := report.PartName(name); spoken[metric] != "" {
		return strings.TrimSpace(spoken[metric] + " " + changeWords[end])
	}
	return strings.ReplaceAll(name, "_", " ")
}

// spoken are the words of people for names of the catalog; others are read as they are written.
var spoken = map[string]string{
	"agent_runs": "runs", "agent_user_activity": "activity of people",
	"run_count": "runs", "completed_run_count": "completed runs", "failed_run_count": "failures",
	"cancelled_run_count": "cancelled runs", "active_run_count": "runs under way", "run_success_rate": "success rate",
	"unique_initiator_count": "people", "interaction_count": "interactions",
	"attributed_run_count": "runs of people", "initiated_run_count": "runs they started",
	"associated_run_count": "runs linked to them", "interacted_run_count": "runs they joined",
	"completed_attributed_run_count": "completed runs", "failed_attributed_run_count": "failures",
	"cancelled_attributed_run_count": "cancelled runs", "active_attributed_run_count": "runs under way",
	"agent_id": "agent", "agent_name": "agent's name", "user_identifier": "person", "user_name": "person's name",
	"user_type": "kind of person", "user_domain": "domain", "activity_type": "what they did",
	"run_initiation_type": "how it began",
}

var changeWords = map[string]string{report.EndPrevious: "before", report.EndDifference: "change",
	report.EndPercent: "change in %"}

// most is "most runs", "fewest runs" where the least is meant, and "highest success rate" of what isn't counted.
func most(metric string, least bool) string {
	extremes := [2]string{"most", "fewest"}
	if isRate(metric) {
		extremes = [2]string{"highest", "lowest"}
	}
	if least {
		return extremes[1] + " " + words(metric)
	}
	return extremes[0] + " " + words(metric)
}

// goodness is 1 for a metric of which more is better, -1 where less is, and 0 where neither is.
func goodness(metric string) int {
	switch kind, _, _ := strings.Cut(metric, "_"); kind {
	case "failed", "cancelled":
		return -1
	case "active":
		return 0
	}
	return 1
}

// title is words with a capital letter.
func title(name string) string { return capital(words(name)) }

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func metricOf(model client.Model, name string) client.Metric {
	at := slices.IndexFunc(model.Metrics, func(m client.Metric) bool { return m.Name == name })
	if at < 0 {
		return client.Metric{Name: name, Additive: true}
	}
	return model.Metrics[at]
}

func hasDimension(model client.Model, name string) bool {
	return slices.ContainsFunc(model.Dimensions, func(d client.Dimension) bool { return d.Name == name })
}

// isRate reports whether a metric is a part of 1, by the catalog's names.
func isRate(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, report.EndPrevious), "_rate")
}

// shownValue is a value as people read it: thousands apart, rates in percent, days as everywhere.
func shownValue(c report.Column, v client.Value) string {
	f, number := v.Float64()
	switch {
	case v.IsNull():
		return "–"
	case number && c.Kind == report.Percent:
		return signed(fmt.Sprintf("%+.1f%%", f))
	case number && isRate(c.Name):
		return output.RateText(f, 1)
	case number && strings.HasSuffix(c.Name, "_rate_difference"):
		return signed(fmt.Sprintf("%+.1f points", f*100))
	case number && strings.HasSuffix(c.Name, report.EndDifference):
		if f > 0 {
			return "+" + thousands(v.String())
		}
		return thousands(v.String())
	case number:
		return thousands(v.String())
	case c.Kind == report.Date:
		return datesIn(v.String())
	}
	return v.String()
}

// numberText is a metric's number, as shownValue writes those of answers.
func numberText(metric string, f float64) string {
	if isRate(metric) {
		return output.RateText(f, 1)
	}
	return thousands(strconv.FormatFloat(f, 'f', -1, 64))
}

// signed has the one minus sign of the pages.
func signed(text string) string { return strings.ReplaceAll(text, "-", "−") }

// thousands puts a thin space between the thousands of a whole number.
func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	if strings.ContainsAny(digits, ".eE") || len(digits) < 5 {
		return sign + digits
	}
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(digit)
	}
	return sign + b.String()
}

// subject is what a look counts, and by what, without days and filters.
func (l look) subject(metric string) string {
	text := title(metric)
	if over := l.over(); over != "" {
		text += " per " + over
	}
	if groups := l.groups(); len(groups) > 0 {
		for i, group := range groups {
			groups[i] = words(group)
		}
		text += " for each " + strings.Join(groups, " and ")
	}
	return text
}

// sentence is what a chart shows, in plain words. A picture has no other. only says which groups are drawn; empty for
// all.
func (c *Console) sentence(l look, span report.Span, metric, only string) string {
	var s strings.Builder
	s.WriteString(l.subject(metric))
	if span.Start.Equal(span.End) {
		s.WriteString(" on " + dayText(span.Start))
	} else {
		fmt.Fprintf(&s, " from %s to %s", dayText(span.Start), dayText(span.End))
	}
	s.WriteString(" in " + l.Timezone)
	for i, text := range l.Filter {
		f, err := report.ParseFilter(text)
		if err != nil {
			continue
		}
		joint := ", and "
		if i == 0 {
			joint = ", only where "
		}
		values := make([]string, len(f.Values))
		for n, value := range f.Values {
			values[n] = c.name(f.Member, value)
		}
		s.WriteString(joint + words(f.Member) + " is " + strings.Join(values, " or "))
	}
	s.WriteString(compared(l))
	if only != "" {
		s.WriteString(", " + only)
	}
	return s.String() + "."
}

// compared says with what a look is compared.
func compared(l look) string {
	switch {
	case l.Compare == "":
		return ""
	case l.Grain != "" && l.Compare == "previous":
		return ", each compared with the " + l.Grain + " before"
	case l.Grain == "week" || l.Weekdays && l.Compare == "year":
		return ", compared with the same weekdays 52 weeks before"
	case l.Weekdays:
		return ", compared with the same weekdays whole weeks before"
	case l.Compare == "previous":
		return ", compared with the period before"
	}
	return ", compared with a year before"
}

func dayText(day time.Time) string { return day.Format("2 Jan 2006") }

var isoDay = regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b`)

// datesIn has the days of a text in the one form of the pages.
func datesIn(text string) string {
	return isoDay.ReplaceAllStringFunc(text, func(iso string) string {
		day, err := time.Parse(time.DateOnly, iso)
		if err != nil {
			return iso
		}
		return dayText(day)
	})
}

// ago is how long ago something was, in the largest unit.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
