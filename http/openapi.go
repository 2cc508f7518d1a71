package httpapi

import _ "embed"

// OpenAPI is the OpenAPI 3.1 description of both endpoints, in YAML. Every answer of every test is
// held against it.
//
//go:embed openapi.yaml
var OpenAPI []byte
