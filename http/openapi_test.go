package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/olap/catalog"
)

// documents are the OpenAPI documents, read once. They allow the values of today only, where clients must accept
// others.
var documents = map[string]func() (validator.Validator, error){
	"openapi.yaml": sync.OnceValues(func() (validator.Validator, error) { return readDocument("openapi.yaml") }),
	"ingest.yaml":  sync.OnceValues(func() (validator.Validator, error) { return readDocument("ingest.yaml") }),
}

func readDocument(name string) (validator.Validator, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	document, err := libopenapi.NewDocument(bytes.ReplaceAll(content, []byte("x-extensible-enum:"), []byte("enum:")))
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return v, nil
}

// validate compares an answer of a documented route with the description.
func validate(t *testing.T, request *http.Request, response *http.Response, body []byte) {
	t.Helper()
	name := map[string]string{"POST " + queryPath: "openapi.yaml", "GET " + catalogPath: "openapi.yaml",
		"POST " + recordsPath: "ingest.yaml"}[request.Method+" "+request.URL.Path]
	if name == "" {
		return
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if slices.Contains([]string{"text/csv", "application/x-ndjson", "application/vnd.apache.arrow.stream"}, kind) {
		return // rows alone are described in words: TestFormats
	}
	v, err := documents[name]()
	if err != nil {
		t.Fatal(err)
	}
	copied := *response
	copied.Body = io.NopCloser(bytes.NewReader(body))
	if ok, faults := v.ValidateHttpResponse(request, &copied); !ok {
		for _, fault := range faults {
			t.Errorf("the answer is not as described: %s: %s", fault.Message, fault.Reason)
			for _, schema := range fault.SchemaValidationErrors {
				t.Errorf("    %s at %s", schema.Reason, schema.FieldPath)
			}
		}
		t.Logf("%d: %.500s", response.StatusCode, body)
	}
	if response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
}

func TestDescriptionIsOpenAPI(t *testing.T) {
	for name, read := range documents {
		v, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if ok, faults := v.ValidateDocument(); !ok {
			for _, fault := range faults {
				t.Errorf("%s: %s: %s", name, fault.Message, fault.Reason)
			}
		}
	}
}

// The description names exactly the catalog's members.
func TestDescriptionNamesTheCatalog(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct{ Enum []string }
		}
	}
	content, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]bool{"ModelName": {}, "MetricName": {}, "DimensionName": {}}
	for _, model := range catalog.Models {
		want["ModelName"][model.Name] = true
		for _, m := range model.Metrics {
			want["MetricName"][m.Name] = true
		}
		for _, d := range model.Dimensions {
			want["DimensionName"][d.Name] = true
		}
	}
	for name, members := range want {
		described := document.Components.Schemas[name].Enum
		for member := range members {
			if !slices.Contains(described, member) {
				t.Errorf("the enumeration %s lacks %s: add it to openapi.yaml", name, member)
			}
		}
		if len(described) != len(members) {
			t.Errorf("%s has %d members, the catalog %d", name, len(described), len(members))
		}
	}
}
