package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// prompts are questions that a person picks from a list. Each says what the day is, and with which arguments the tool
// query answers it.
type prompts struct {
	folder profile.Folder
	now    func() time.Time
}

// A prompt is one without an answer of a person, apart from the timezone.
type prompt struct {
	name, title string
	arguments   arguments
}

var readyPrompts = []prompt{
	{"week", "How did this week compare with last, by agent?", arguments{
		Query: client.Query{Model: "agent_runs", Metrics: []string{"run_count", "run_success_rate"},
			Dimensions: []string{"agent_id"}},
		Range: period{Last: "1w"}, Grain: "week", Compare: "previous"}},
	{"failures", "Which agents fail most?", arguments{
		Query: client.Query{Model: "agent_runs", Metrics: []string{"failed_run_count", "run_success_rate", "run_count"},
			Dimensions: []string{"agent_id"}, Limit: 10,
			Order: []client.OrderTerm{{Member: "failed_run_count", Direction: client.Desc}}},
		Range: period{Last: "30d"}, Compare: "previous"}},
	{"people", "Who worked most with agents?", arguments{
		Query: client.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count", "attributed_run_count"},
			Dimensions: []string{"user_identifier"}, Limit: 10,
			Order: []client.OrderTerm{{Member: "interaction_count", Direction: client.Desc}}},
		Range: period{Last: "30d"}}},
}

func (p prompts) offer(server *mcp.Server) {
	timezone := &mcp.PromptArgument{Name: "timezone", Description: "Of the days, as Europe/Stockholm; UTC without it."}
	for _, ready := range readyPrompts {
		server.AddPrompt(&mcp.Prompt{Name: ready.name, Title: ready.title, Description: ready.title,
			Arguments: []*mcp.PromptArgument{timezone}},
			func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				asked := ready.arguments
				if asked.Range.Timezone = request.Params.Arguments["timezone"]; asked.Range.Timezone == "" {
					asked.Range.Timezone = "UTC"
				}
				return p.message(ready.title, asked)
			})
	}
	server.AddPrompt(&mcp.Prompt{Name: "saved", Title: "Ask a saved question",
		Description: "Asks a question that 'runlens query --save' keeps.",
		Arguments:   []*mcp.PromptArgument{{Name: "name", Description: "The question's.", Required: true}}},
		func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			name := request.Params.Arguments["name"]
			if err := profile.CheckName(name); err != nil { // a path may be any file
				return nil, err
			}
			s, err := p.folder.Question(name)
			if err != nil {
				return nil, err
			}
			asked, err := argumentsOf(s.Question)
			if err != nil {
				return nil, err
			}
			return p.message("What does the saved question "+name+" say?", asked)
		})
}

func (p prompts) message(question string, asked arguments) (*mcp.GetPromptResult, error) {
	call, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s\nToday is %s in %s. Call the tool query once with these arguments, and answer in a few "+
		"sentences with the numbers, the range and its timezone:\n%s", question,
		report.TodayIn(asked.Range.Timezone, p.now()).Format(time.DateOnly), asked.Range.Timezone, call)
	return &mcp.GetPromptResult{Description: question,
		Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}
