package explain

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runlens/runlens/olap/daterange"
)

//go:generate go run ./genaliases -from /usr/share/zoneinfo

// aliasesText has a line with two names for every alias of a canonical zone.
//
//go:embed aliases.txt
var aliasesText string

var aliases = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(aliasesText) {
		if alias, zone, ok := strings.Cut(strings.TrimSpace(line), " "); ok && alias != "#" {
			all[alias] = zone
		}
	}
	return all
})

// Canonical is the timezone that a browser's or a machine's name stands for; UTC for one that is unknown.
func Canonical(name string) string {
	if zone, ok := aliases()[name]; ok {
		return zone
	}
	if !slices.Contains(daterange.Zones(), name) {
		return "UTC"
	}
	return name
}

// zone says which canonical zone a name may have meant.
func zone(name string) string {
	for alias, target := range aliases() {
		if strings.EqualFold(alias, name) {
			return fmt.Sprintf("the timezone %s is an alias: use %s", name, target)
		}
	}
	for _, zone := range daterange.Zones() {
		if strings.EqualFold(zone, name) {
			return fmt.Sprintf("the timezone %s is written %s", name, zone)
		}
	}
	guess := ""
	if near := nearest(name, daterange.Zones()); near != "" {
		guess = "did you mean " + near + "? "
	}
	return fmt.Sprintf("there is no timezone %q; %sa timezone is a name such as Europe/Stockholm or UTC", name, guess)
}
