package httpapi

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/compress/gzip"
	"github.com/swaggest/swgui/v5/static"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// A document is a file of the documentation. It is made once; no request takes memory for it.
type document struct {
	mediaType string
	plain     []byte
	packed    []byte // with gzip; nil where that is not smaller
	tag       string // weak: it stands for the document in every content coding
}

//go:embed docs openapi.yaml ingest.yaml errors.md records.md changelog.md
var sources embed.FS

// pages are those with text, and the first one, which shows the description of the API.
var pages = []struct{ Path, Title, source string }{
	{"docs", "API", ""},
	{"docs/records", "Records", "records.md"},
	{"docs/errors", "Errors", "errors.md"},
	{"docs/changelog", "Changelog", "changelog.md"},
}

// files are those that are served as they are, from here or from Swagger UI, which keeps most of them packed.
var files = []struct {
	path, mediaType string
	in              fs.FS
	source          string
}{
	{"openapi.yaml", "application/yaml", sources, "openapi.yaml"},
	{"ingest.yaml", "application/yaml", sources, "ingest.yaml"},
	{"docs/assets/docs.css", "text/css; charset=utf-8", sources, "docs/docs.css"},
	{"docs/assets/docs.js", "text/javascript; charset=utf-8", sources, "docs/docs.js"},
	{"docs/assets/swagger-ui.css", "text/css; charset=utf-8", static.FS, "swagger-ui.css.gz"},
	{"docs/assets/swagger-ui-bundle.js", "text/javascript; charset=utf-8", static.FS, "swagger-ui-bundle.js.gz"},
	{"docs/assets/favicon.png", "image/png", static.FS, "favicon-32x32.png"},
}

// documents are the documentation by its paths.
var documents = sync.OnceValues(func() (map[string]*document, error) {
	all := map[string]*document{}
	layout, err := template.ParseFS(sources, "docs/page.html")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := rendered(page.source)
		if err != nil {
			return nil, err
		}
		var html bytes.Buffer
		err = layout.Execute(&html, map[string]any{
			"Path": page.Path, "Title": page.Title, "Text": text, "Pages": pages,
			"Root": strings.Repeat("../", strings.Count(page.Path, "/")),
		})
		if err != nil {
			return nil, err
		}
		packed, err := gzipOf(html.Bytes())
		if err != nil {
			return nil, err
		}
		all["/"+page.Path] = newDocument("text/html; charset=utf-8", html.Bytes(), packed)
	}
	for _, file := range files {
		content, err := fs.ReadFile(file.in, file.source)
		if err != nil {
			return nil, err
		}
		var packed []byte
		if strings.HasSuffix(file.source, ".gz") {
			packed = content
			content, err = unpacked(content)
		} else {
			packed, err = gzipOf(content)
		}
		if err != nil {
			return nil, err
		}
		all["/"+file.path] = newDocument(file.mediaType, content, packed)
	}
	return all, nil
})

func newDocument(mediaType string, content, packed []byte) *document {
	d := &document{mediaType: mediaType, plain: content, tag: weakTag(content)}
	if len(packed) < len(content) {
		d.packed = packed
	}
	return d
}

func unpacked(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// links are how pages of the repository name what has another address here.
var links = strings.NewReplacer(
	`href="openapi.yaml"`, `href="../openapi.yaml"`,
	`href="ingest.yaml"`, `href="../ingest.yaml"`,
	`href="errors.md`, `href="errors`,
	`href="records.md`, `href="records`,
	`href="client/`, `href="https://github.com/runlens/runlens/blob/main/http/client/`,
)

// rendered is a page's text as HTML, empty without a source. Its headings have the ids that GitHub gives them.
func rendered(source string) (template.HTML, error) {
	if source == "" {
		return "", nil
	}
	text, err := sources.ReadFile(source)
	if err != nil {
		return "", err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var html bytes.Buffer
	err = markdown.Convert(text, &html, parser.WithContext(parser.NewContext(parser.WithIDs(headingIDs{}))))
	return template.HTML(links.Replace(html.String())), err
}

// headingIDs gives headings their ids. No page has two headings of the same text.
type headingIDs struct{}

func (headingIDs) Generate(text []byte, _ ast.NodeKind) []byte {
	return []byte(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, string(text)))
}

func (headingIDs) Put([]byte) {}
