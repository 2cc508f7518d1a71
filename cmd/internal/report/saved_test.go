package report

import (
	"reflect"
	"testing"

	"github.com/runlens/runlens/http/client/report"
)

// The defaults of the flags are those of the Go client.
func TestDefault(t *testing.T) {
	got, err := Default()
	if want := report.Default(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
