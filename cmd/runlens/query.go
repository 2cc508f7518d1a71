package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

type queryCmd struct {
	URL        string   `env:"RUNLENS_URL" default:"http://127.0.0.1:8080" help:"The API."`
	KeyFile    string   `env:"RUNLENS_API_KEY_FILE" placeholder:"FILE" help:"@query_key_file"`
	Body       string   `placeholder:"FILE" help:"@query_body"`
	Model      string   `default:"agent_runs" help:"The model."`
	Metrics    []string `help:"Comma-separated metrics."`
	Dimensions []string `help:"Comma-separated dimensions. Without any it is a totals query."`
	Filter     []string `sep:"none" placeholder:"MEMBER=VALUE" help:"@query_filter"`
	Start      string   `placeholder:"DAY" help:"First day, YYYY-MM-DD. Default: 29 days before --end."`
	End        string   `placeholder:"DAY" help:"Last day, YYYY-MM-DD. Default: today in UTC."`
	Timezone   string   `default:"UTC" help:"IANA timezone of the days."`
	Order      []string `placeholder:"MEMBER[:desc]" help:"Comma-separated order."`
	Limit      int      `default:"100" help:"Rows per page, 1 to 500."`
	All        bool     `help:"Follow the cursors to the last page."`
	Output     string   `enum:"table,json,csv,plot" default:"table" help:"@query_output"`
}

func (queryCmd) Help() string {
	return `Sends one query to a running server.

Example:
  RUNLENS_API_KEY=$(cat data/demo.key) runlens query --metrics run_count --dimensions day --output plot`
}

// queryTimeout bounds one page.
const queryTimeout = time.Minute

// A queryAnswer is what is shown of spec 2.14.
type queryAnswer struct {
	Columns []struct{ Name, Type string }
	Rows    [][]any
	Cursor  *string
}

func (c queryCmd) Run(ctx context.Context, io streams) error {
	key, err := readSecret("--key-file", c.KeyFile, "RUNLENS_API_KEY")
	if err != nil {
		return err
	}
	if key == "" {
		return usageError{errors.New("an API key is needed: set RUNLENS_API_KEY ('runlens keys create --org ORG' makes one)")}
	}
	request, err := c.request(io.in)
	if err != nil {
		return usageError{err}
	}
	var answer queryAnswer
	for {
		page, raw, err := c.send(ctx, key, request)
		if err != nil {
			return err
		}
		if c.Output == "json" {
			fmt.Fprintf(io.out, "%s\n", raw)
		}
		answer.Columns, answer.Rows = page.Columns, append(answer.Rows, page.Rows...)
		if page.Cursor == nil {
			break
		}
		if !c.All {
			fmt.Fprintln(io.err, "There are further rows: --all shows them.")
			break
		}
		request["cursor"] = *page.Cursor
	}
	switch c.Output {
	case "csv":
		return printCSV(io.out, answer)
	case "plot":
		return printPlot(io.out, answer)
	case "table":
		return printTable(io.out, answer)
	}
	return nil
}

// request is the body to send; the server judges it.
func (c queryCmd) request(stdin io.Reader) (map[string]any, error) {
	if c.Body != "" {
		content, err := readFileOr(c.Body, stdin)
		if err != nil {
			return nil, err
		}
		var body map[string]any
		if err := json.Unmarshal(content, &body); err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
		return body, nil
	}
	if len(c.Metrics) == 0 {
		return nil, errors.New("--metrics is needed; the catalog names them: GET /api/v1/analytics/catalog")
	}
	end := c.End
	if end == "" {
		end = time.Now().UTC().Format(time.DateOnly)
	}
	start := c.Start
	if start == "" {
		last, err := time.Parse(time.DateOnly, end)
		if err != nil {
			return nil, fmt.Errorf("--end must be a day such as 2026-01-31")
		}
		start = last.AddDate(0, 0, -29).Format(time.DateOnly)
	}
	body := map[string]any{
		"model": c.Model, "metrics": c.Metrics, "limit": c.Limit,
		"range": map[string]string{"start": start, "end": end, "timezone": c.Timezone},
	}
	if len(c.Dimensions) > 0 {
		body["dimensions"] = c.Dimensions
	}
	var filters []any
	for _, f := range c.Filter {
		member, values, ok := strings.Cut(f, "=")
		if !ok {
			return nil, fmt.Errorf("--filter %s must be MEMBER=VALUE", f)
		}
		filters = append(filters, map[string]any{"member": member, "op": "in", "values": strings.Split(values, ",")})
	}
	if filters != nil {
		body["filters"] = filters
	}
	var order []any
	for _, o := range c.Order {
		member, direction, ok := strings.Cut(o, ":")
		if !ok {
			direction = "asc"
		}
		order = append(order, map[string]string{"member": member, "direction": direction})
	}
	if order != nil {
		body["order"] = order
	}
	return body, nil
}

func readFileOr(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// send requests one page.
func (c queryCmd) send(ctx context.Context, key string, body map[string]any) (queryAnswer, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var answer queryAnswer
	content, err := json.Marshal(body)
	if err != nil {
		return answer, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimSuffix(c.URL, "/")+"/api/v1/analytics/query", bytes.NewReader(content))
	if err != nil {
		return answer, nil, usageError{fmt.Errorf("--url: %w", err)}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, nil, err
	}
	if response.StatusCode != http.StatusOK {
		var refused struct {
			Error struct {
				Code, Message, Param string
				RequestID            string `json:"request_id"`
			}
		}
		if json.Unmarshal(raw, &refused) != nil || refused.Error.Code == "" {
			return answer, nil, fmt.Errorf("%s answered %s", c.URL, response.Status)
		}
		place := ""
		if refused.Error.Param != "" {
			place = " at " + refused.Error.Param
		}
		return answer, nil, fmt.Errorf("%s%s: %s (request %s)", refused.Error.Code, place, refused.Error.Message,
			refused.Error.RequestID)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers are shown as the server wrote them
	return answer, raw, decoder.Decode(&answer)
}
