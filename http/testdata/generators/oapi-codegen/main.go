// What a user of oapi-codegen writes; the generated client lies beside it when it is compiled.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
		return nil
	}
	client, err := NewClientWithResponses(os.Getenv("BASE"), WithRequestEditorFn(authorize))
	if err != nil {
		log.Fatal(err)
	}
	day := func(d int) openapi_types.Date {
		return openapi_types.Date{Time: time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC)}
	}
	least := AnalyticsQueryRequest{Model: "agent_runs", Metrics: []MetricName{"run_count"},
		Range: QueryRange{Start: day(1), End: day(31), Timezone: "UTC"}}
	byDay, tooMany, limit := least, least, int32(501)
	byDay.Dimensions = &[]DimensionName{"day"}
	tooMany.Limit = &limit
	answer, err := client.RunQueryWithResponse(ctx, nil, byDay)
	if err != nil || answer.JSON200 == nil {
		log.Fatal(err, answer)
	}
	refusal, err := client.RunQueryWithResponse(ctx, nil, tooMany)
	if err != nil || refusal.JSON400 == nil {
		log.Fatal(err, refusal)
	}
	catalog, err := client.GetCatalogWithResponse(ctx, nil)
	if err != nil || catalog.JSON200 == nil {
		log.Fatal(err, catalog)
	}
	rows, err := json.Marshal(answer.JSON200.Rows)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(rows), *refusal.JSON400.Error.Param, len(catalog.JSON200.Models))

	// A count has 64 bits: the next one after 2^53 is no float.
	var value Value
	if err := json.Unmarshal([]byte("9007199254740993"), &value); err != nil {
		log.Fatal(err)
	}
	count, err := value.AsValue1()
	if err != nil || count+1 != int64(9007199254740994) {
		log.Fatal(count, err)
	}
}
