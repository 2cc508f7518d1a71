package httpapi

import (
	"bytes"
	_ "embed"
	"net/http"
	"time"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
)

// description is the API's OpenAPI document.
//
//go:embed openapi.yaml
var description []byte

// docsPolicy keeps the page from asking any other host for anything. Its script and its styles stand in the page.
const docsPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; frame-ancestors 'none'"

// Documentation serves the OpenAPI document and a page that shows it, by patterns of http.ServeMux. It is for the admin
// address: on the API address only the documented routes answer (spec section 1). The page sends no queries: they
// would go to another address than its own, and the API has no CORS contract.
func Documentation() map[string]http.Handler {
	page := v5emb.NewHandlerWithConfig(swgui.Config{
		Title: "runlens analytics API", SwaggerJSON: "../openapi.yaml", BasePath: ".", InternalBasePath: "/docs/",
		SettingsUI: map[string]string{"supportedSubmitMethods": "[]", "defaultModelsExpandDepth": "1"},
	})
	return map[string]http.Handler{
		"GET /openapi.yaml": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/yaml")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(description))
		}),
		"GET /docs/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", docsPolicy)
			page.ServeHTTP(w, r)
		}),
	}
}
