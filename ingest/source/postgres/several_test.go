package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// What is in flight at one server says nothing of another one's records.
func TestSeveralServers(t *testing.T) {
	address, _ := layout(t)
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(address, parsed.Host, parsed.Host+",localhost:"+parsed.Port(), 1)
	separator := "?"
	if parsed.RawQuery != "" {
		separator = "&"
	}
	one := []string{"127.0.0.1", "::1"}
	two := []string{"10.0.0.1", "10.0.0.2"}
	for _, c := range []struct {
		url       string
		attrs     string // of the environment
		addresses []string
		want      finding.Result
	}{
		{address, "", one, finding.OK},
		{both, "", one, finding.Warning},
		{both + separator + "target_session_attrs=any", "", one, finding.Warning},
		{both + separator + "target_session_attrs=read-write", "", one, finding.OK},
		{both + separator + "target_session_attrs=primary", "", one, finding.OK},
		{both, "read-write", one, finding.OK},
		{both, "any", one, finding.Warning},
		{address, "", two, finding.Warning},
		{address, "", []string{"fd00::1", "fd00::2"}, finding.Warning},
		{address + separator + "target_session_attrs=any", "", two, finding.Warning},
		{address + separator + "target_session_attrs=read-write", "", two, finding.OK},
	} {
		t.Setenv("PGTARGETSESSIONATTRS", c.attrs)
		d := open(t, c.url)
		d.LookUpBy(func(context.Context, string) ([]string, error) { return c.addresses, nil })
		found, err := d.ExamineSettings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, f := range found {
			if f.Check != "source standby" {
				continue
			}
			if told++; f.Result != c.want || strings.Contains(f.Do, "name one server") != (c.want == finding.Warning) {
				t.Errorf("%s %s of %v: %+v", strings.TrimPrefix(c.url, address), c.attrs, c.addresses, f)
			}
		}
		if told != 1 {
			t.Errorf("%d findings", told)
		}
	}
}
