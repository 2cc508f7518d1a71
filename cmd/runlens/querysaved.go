package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
)

// questionFlags are the names of the flags that a saved question keeps, and the fields that they set.
func questionFlags(q *savedQuery) map[string]reflect.Value {
	fields := map[string]reflect.Value{"output": reflect.ValueOf(&q.Output).Elem()}
	question := reflect.ValueOf(&q.Question).Elem()
	for i := range question.NumField() {
		name, _, _ := strings.Cut(question.Type().Field(i).Tag.Get("yaml"), ",")
		fields[name] = question.Field(i)
	}
	return fields
}

// periodFlags replace each other: one on the command line takes the place of all in a saved question.
var periodFlags = []string{"start", "end", "last", "today", "yesterday"}

// readSaved takes what the command line leaves out from a saved question.
func (c *queryCmd) readSaved(given map[string]bool) error {
	name, ok := strings.CutPrefix(c.Saved, "@")
	if !ok {
		return fmt.Errorf("unexpected argument %s; a saved question is named @%s", c.Saved, c.Saved)
	}
	folder, err := profile.Home()
	if err != nil {
		return err
	}
	var saved savedQuery
	if err := folder.Question(name, &saved); err != nil {
		return err
	}
	period := slices.ContainsFunc(periodFlags, func(flag string) bool { return given[flag] })
	mine := questionFlags(&c.savedQuery)
	for flag, value := range questionFlags(&saved) {
		if !given[flag] && !value.IsZero() && !(period && slices.Contains(periodFlags, flag)) {
			mine[flag].Set(value)
		}
	}
	return nil
}

// save writes the question, with what it takes from another one.
func (c *queryCmd) save(io streams) error {
	folder, err := profile.Home()
	if err != nil {
		return err
	}
	path, err := folder.SaveQuestion(c.Save, c.savedQuery)
	if err == nil && !c.Quiet {
		fmt.Fprintf(io.err, "saved as %s; 'runlens query @%s' asks it again\n", path, c.Save)
	}
	return err
}

// refuseBeside refuses what a whole body leaves no room for.
func (c *queryCmd) refuseBeside(given map[string]bool) error {
	if c.Saved != "" {
		return errors.New("--body is a whole request; leave out the saved question")
	}
	refused := []string{"save"}
	for flag := range questionFlags(&c.savedQuery) {
		if flag != "all" && flag != "output" && flag != "fail-if" {
			refused = append(refused, flag)
		}
	}
	slices.Sort(refused)
	for _, flag := range refused {
		if given[flag] {
			return fmt.Errorf("--body is a whole request; leave out --%s", flag)
		}
	}
	return nil
}

// readBody reads a request body from a file, or standard input.
func readBody(name string, stdin io.Reader) (*client.Query, error) {
	content, err := readFileOr(name, stdin)
	if err != nil {
		return nil, fmt.Errorf("--body: %w", err)
	}
	// The server would see a limit or a cursor that says nothing; the client leaves them out.
	body := struct {
		*client.Query `json:",inline"`
		Limit         *int    `json:"limit"`
		Cursor        *string `json:"cursor"`
	}{Query: &client.Query{}}
	if err := json.Unmarshal(content, &body, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("--body: %w", err)
	}
	if body.Limit != nil {
		if *body.Limit < 1 || *body.Limit > client.MaxLimit {
			return nil, fmt.Errorf("--body: limit is %d, and must be 1 to %d", *body.Limit, client.MaxLimit)
		}
		body.Query.Limit = *body.Limit
	}
	if body.Cursor != nil {
		if *body.Cursor == "" {
			return nil, errors.New("--body: cursor is empty; leave it out")
		}
		body.Query.Cursor = *body.Cursor
	}
	return body.Query, nil
}

func readFileOr(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}
