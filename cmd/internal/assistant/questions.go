package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/cmd/internal/profile"
)

// questionURI is where resources are; the name of a saved question follows.
const questionURI = "runlens://questions/"

// questions offers the saved questions as resources. They are files, so each list and each read sees those of now.
type questions struct {
	folder profile.Folder
	server *mcp.Server
}

// offer keeps the list of resources up to date: before it is answered, the folder is read.
func (q questions) offer() {
	offered := make(chan []string, 1) // holds the names; who has taken them is alone
	offered <- nil
	refresh := func() error {
		before := <-offered
		now, err := q.folder.Questions()
		if err != nil {
			offered <- before
			return err
		}
		for _, name := range now {
			if !slices.Contains(before, name) {
				q.server.AddResource(&mcp.Resource{URI: questionURI + name, Name: name, MIMEType: "application/yaml",
					Description: "A saved question, and the arguments of the tool query that ask it."}, q.read)
			}
		}
		for _, name := range before {
			if !slices.Contains(now, name) {
				q.server.RemoveResources(questionURI + name)
			}
		}
		offered <- now
		return nil
	}
	q.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			if method == "resources/list" || method == "resources/read" {
				if err := refresh(); err != nil {
					return nil, fmt.Errorf("the saved questions cannot be read: %w", err)
				}
			}
			return next(ctx, method, request)
		}
	})
}

// read gives the question as it is saved, and as JSON the arguments of the tool query that ask it whole.
func (q questions) read(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	s, err := q.folder.Question(strings.TrimPrefix(request.Params.URI, questionURI))
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(s.Question)
	if err != nil {
		return nil, err
	}
	asked, err := argumentsOf(s.Question)
	if err != nil {
		return nil, err
	}
	call, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: request.Params.URI, MIMEType: "application/yaml", Text: string(text)},
		{URI: request.Params.URI + "/query", MIMEType: "application/json", Text: string(call)},
	}}, nil
}
