package write_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse"
)

// A gateway that answers while the ClickHouse behind it is started again passes, also for who opens the store.
func TestAGatewayAtTheStartPasses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{429: true, 502: true, 503: true, 504: true, 404: false, 403: false} {
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "a page", status)
		}))
		t.Cleanup(gateway.Close)
		store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: gateway.URL + "/db"})
		if err == nil {
			store.Close()
		}
		if got := write.Retryable(err); got != want {
			t.Errorf("%d: %v passes: %t, want %t", status, err, got, want)
		}
	}
}

// A mutation that fails is made again by ClickHouse, and passes where what it failed with does.
func TestAMutationThatFailedOnce(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]bool{"241": true, "243": false, "60": false} {
		err := &driver.Exception{Code: 341, Message: "Exception happened during execution of mutation 'mutation_7.txt' " +
			"with part '202601_1_1_0' reason: 'Code: " + why + ". DB::Exception: because. (NAME)'. This error maybe retryable"}
		if got := write.Retryable(err); got != want {
			t.Errorf("%v passes: %t, want %t", err, got, want)
		}
	}
	if err := (&driver.Exception{Code: 341, Message: "Mutation mutation_7.txt was killed"}); write.Retryable(err) {
		t.Errorf("%v passes", err)
	}
}
