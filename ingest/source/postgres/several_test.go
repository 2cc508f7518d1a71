package postgres_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// What is in flight at one server says nothing of another one's records.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
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
	for _, c := range []struct {
		url  string
		want finding.Result
	}{
		{address, finding.OK},
		{both, finding.Warning},
		{both + separator + "target_session_attrs=any", finding.Warning},
		{both + separator + "target_session_attrs=read-write", finding.OK},
	} {
		found, err := open(t, c.url).ExamineSettings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, f := range found {
			if f.Check != "source standby" {
				continue
			}
			if told++; f.Result != c.want || strings.Contains(f.Do, "name one server") != (c.want == finding.Warning) {
				t.Errorf("%s: %+v", strings.TrimPrefix(c.url, address), f)
			}
		}
		if told != 1 {
			t.Errorf("%d findings", told)
		}
	}
}
