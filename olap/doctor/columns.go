package doctor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/schema"
)

// filled finds the table that a view fills.
var filled = regexp.MustCompile(` TO (\S+)`)

// computed finds how a column is computed, behind its type.
var computed = regexp.MustCompile(`( (?:DEFAULT|MATERIALIZED|EPHEMERAL|ALIAS)) .*$`)

// differences are those of columns, settings and of what a view selects. A column that no migration makes changes
// nothing: every statement names its columns. How a column is computed may be written otherwise by another release.
func (t table) differences(database string, want schema.Shape) (found []finding.Finding) {
	alter := "ALTER TABLE " + database + "." + identifier(t.Name)
	has := schema.Columns(t.Create)
	for _, column := range want.Columns {
		i := slices.IndexFunc(has, func(c schema.Column) bool { return c.Name == column.Name })
		made := column.Name + " " + column.Definition
		switch {
		case i < 0:
			found = append(found, of(finding.Problem, "stop all of runlens, and copy the records again after\n"+alter+
				" ADD COLUMN "+made, "%s lacks the column %s", t.Name, column.Name))
		case letters.Replace(has[i].Definition) != letters.Replace(column.Definition):
			result := finding.Warning
			if stored(has[i]) != stored(column) {
				result = finding.Problem
			}
			found = append(found, of(result, "stop all of runlens, and copy the records again after\n"+alter+
				" MODIFY COLUMN "+made, "the column %s of %s is %s, and the migrations make it otherwise", column.Name, t.Name,
				has[i].Definition))
		}
	}
	for _, setting := range want.Settings {
		if !strings.Contains(t.Full, setting) {
			found = append(found, of(finding.Problem, alter+" MODIFY SETTING "+setting,
				"%s is not kept with %s: what is acknowledged may be lost, or projections differ from it", t.Name, setting))
		}
	}
	own := strings.NewReplacer(database+".", "", strings.Trim(database, "`")+".", "")
	to := filled.FindStringSubmatch(own.Replace(t.Create))
	fills := to != nil && to[1] == want.To
	selects := letters.Replace(own.Replace(t.Select)) == letters.Replace(want.Select)
	if want.Select != "" && !(fills && selects) {
		result := finding.Problem
		if fills {
			result = finding.Warning // another release may write the same otherwise
		}
		found = append(found, of(result, "stop all of runlens, DROP VIEW "+database+"."+identifier(t.Name)+
			", make it again by its statement in schema/migrations, and start again",
			"the view %s selects or fills something else than the migrations have it do: answers may be of before", t.Name))
	}
	return found
}

// stored is the type of a column, and whether it is computed.
func stored(c schema.Column) string {
	return letters.Replace(computed.ReplaceAllString(c.Definition, "$1"))
}
