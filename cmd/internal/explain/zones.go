package explain

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:generate go run ./genaliases -from /usr/share/zoneinfo

// zonesText has a line for every canonical zone of contract 4.9, and one with two names for every alias.
//
//go:embed zones.txt
var zonesText string

var zones = sync.OnceValues(func() (canonical []string, aliases map[string]string) {
	aliases = make(map[string]string)
	for line := range strings.Lines(zonesText) {
		line = strings.TrimSpace(line)
		if name, target, ok := strings.Cut(line, " "); line == "" || line[0] == '#' {
			continue
		} else if ok {
			aliases[name] = target
		} else {
			canonical = append(canonical, name)
		}
	}
	return canonical, aliases
})

// Timezones are the canonical ones, the names that the API takes.
func Timezones() []string {
	canonical, _ := zones()
	return canonical
}

// Canonical is the timezone that a browser's or a machine's name stands for; UTC for one that is unknown.
func Canonical(name string) string {
	canonical, aliases := zones()
	if target, ok := aliases[name]; ok {
		name = target
	}
	if !slices.Contains(canonical, name) {
		return "UTC"
	}
	return name
}

// zone says which canonical zone a name may have meant.
func zone(name string) string {
	canonical, aliases := zones()
	for alias, target := range aliases {
		if strings.EqualFold(alias, name) {
			return fmt.Sprintf("the timezone %s is an alias: use %s", name, target)
		}
	}
	for _, zone := range canonical {
		if strings.EqualFold(zone, name) {
			return fmt.Sprintf("the timezone %s is written %s", name, zone)
		}
	}
	guess := ""
	if near := nearest(name, canonical); near != "" {
		guess = "did you mean " + near + "? "
	}
	return fmt.Sprintf("there is no timezone %q; %sa timezone is a name such as Europe/Stockholm or UTC", name, guess)
}
