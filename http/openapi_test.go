package httpapi_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/olap/catalog"
)

// documents are the OpenAPI documents, read once. They allow the values of today only, where clients must accept
// others.
var documents = map[string]func() (*openapi3.T, error){
	"openapi.yaml": sync.OnceValues(func() (*openapi3.T, error) { return readDocument("openapi.yaml") }),
	"ingest.yaml":  sync.OnceValues(func() (*openapi3.T, error) { return readDocument("ingest.yaml") }),
}

func readDocument(name string) (*openapi3.T, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(bytes.ReplaceAll(content, []byte("x-extensible-enum:"), []byte("enum:")))
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
	document, err := documents[name]()
	if err != nil {
		t.Fatal(err)
	}
	path := document.Paths.Value(request.URL.Path)
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request,
			Route: &routers.Route{
				Spec: document, PathItem: path, Method: request.Method, Operation: path.GetOperation(request.Method),
			},
		},
		Status: response.StatusCode, Header: response.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), answer.SetBodyBytes(body)); err != nil {
		t.Errorf("%d is not as described: %v\n%.500s", response.StatusCode, err, body)
	}
	if response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
}

func TestDescriptionIsOpenAPI(t *testing.T) {
	for name, read := range documents {
		document, err := read()
		if err == nil {
			err = document.Validate(t.Context())
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
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
