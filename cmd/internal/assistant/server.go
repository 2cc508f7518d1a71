// Package assistant offers an organization's numbers to assistants over the Model Context Protocol: the tools catalog
// and query, the saved questions as resources, and prompts. It asks a runlens server, and keeps nothing.
package assistant

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
)

// Config says what a server offers. Every field is required.
type Config struct {
	Client    *client.Client
	Questions profile.Folder
	Version   string
	Now       func() time.Time
	Unread    func(error) // told at the start why the catalog can't be read, in one line that says what to do
}

// catalogWithin bounds a request for the catalog: a client that has no answer by then is told that there is none.
const catalogWithin = 5 * time.Second

const instructions = `runlens answers questions about the runs of AI agents and the people behind them, ` +
	`for one organization.
Call catalog first: it lists the models with their metrics and dimensions. Then call query with members of one model.
"This week", "the last month" and the like need no date: range has last, and compare puts an earlier period beside it.
Never sum values of metrics that are not additive, such as distinct counts and rates: ask for the wider group or range.
State the range, its timezone and asOf with every number, and pass warnings on.`

// New reads the catalog, of which the tools' schemas are made, and returns a server. A client expects that it can
// connect whatever is wrong behind, and calls tools to learn what. So where the catalog can't be read, the schemas name
// no members until it can, and the calls say why.
func New(ctx context.Context, config Config) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "runlens", Title: "runlens analytics", Version: config.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{}}, // also while none is saved
		})
	t := &tools{Config: config, server: server}
	mcp.AddTool(server, &mcp.Tool{
		Name: "catalog", Title: "What can be asked", Annotations: reads(),
		Description: "Lists the models, and the metrics and dimensions of each with what they mean, their units, and " +
			"whether values may be summed.",
		InputSchema: object(nil),
	}, t.readCatalog)
	if _, err := t.catalog(ctx); err != nil {
		if ctx.Err() == nil {
			config.Unread(err)
		}
		t.offerQuery(&client.Catalog{})
		t.listWithCatalog()
	}
	questions{folder: config.Questions, server: server}.offer()
	prompts{config.Questions, config.Now}.offer(server)
	return server
}

// reads says that a tool changes nothing, and asks nobody but the runlens server.
func reads() *mcp.ToolAnnotations {
	closed := false
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
}

// explained is the error as one line for the one who asked.
func (c Config) explained(ctx context.Context, err error, q client.Query) error {
	line, _ := explain.Refusal(ctx, err, q, c.Client.Catalog)
	return errors.New(line)
}
