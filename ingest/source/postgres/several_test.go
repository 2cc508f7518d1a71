package postgres_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// What is in flight at one server says nothing of another one's records.
func TestSeveralServers(t *testing.T) {
	address, both, separator := severalServers(t)
	for _, c := range []struct {
		url  string
		want finding.Result
	}{
		{address, finding.OK},
		{both, finding.Warning},
		{both + separator + "target_session_attrs=any", finding.Warning},
		{both + separator + "target_session_attrs=read-write", finding.OK},
		{both + separator + "target_session_attrs=primary", finding.OK},
	} {
		sourceIs(t, c.url, c.want)
	}
	t.Setenv("PGTARGETSESSIONATTRS", "read-write")
	sourceIs(t, both, finding.OK)
	t.Setenv("PGTARGETSESSIONATTRS", "any")
	sourceIs(t, both, finding.Warning)
}

// severalServers are the address of a server, that of it under two names, and what comes before a parameter of either.
func severalServers(t *testing.T) (address, both, separator string) {
	t.Helper()
	address, _ = layout(t)
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	both = strings.Replace(address, parsed.Host, parsed.Host+",localhost:"+parsed.Port(), 1)
	separator = "?"
	if parsed.RawQuery != "" {
		separator = "&"
	}
	return address, both, separator
}

// sourceIs expects what is found of a source's servers.
func sourceIs(t *testing.T, address string, want finding.Result) {
	t.Helper()
	found, err := open(t, address).ExamineSettings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, f := range found {
		if f.Check != "source standby" {
			continue
		}
		if told++; f.Result != want || strings.Contains(f.Do, "name one server") != (want == finding.Warning) {
			t.Errorf("%s: %+v", address, f)
		}
	}
	if told != 1 {
		t.Errorf("%d findings", told)
	}
}
