package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A givenQuestion is a question as the command line gives it: by flags, saved under a name, or as a request body.
type givenQuestion struct {
	report.Question
	Saved string `arg:"" optional:"" placeholder:"@NAME" help:"@saved"`
	Body  string `placeholder:"FILE" help:"A whole request body instead of a question; - is standard input."`
}

// read completes the question: it returns the body, if that is given, and the format of a saved question.
func (g *givenQuestion) read(given map[string]bool, stdin io.Reader) (body *client.Query, format string, err error) {
	switch {
	case g.Body != "":
		if err = g.refuseBeside(given); err == nil {
			body, err = readBody(g.Body, stdin)
		}
	case g.Saved != "":
		format, err = g.readSaved(given)
	}
	return body, format, err
}

// readSaved takes what the command line leaves out from a saved question, and returns the format of that.
func (g *givenQuestion) readSaved(given map[string]bool) (format string, err error) {
	name, ok := strings.CutPrefix(g.Saved, "@")
	if !ok {
		return "", fmt.Errorf("unexpected argument %s; a saved question is named @%s", g.Saved, g.Saved)
	}
	saved, err := profile.HomeOrNowhere().Question(name)
	if err != nil {
		return "", err
	}
	period := slices.ContainsFunc(profile.PeriodFields, func(flag string) bool { return given[flag] })
	mine := maps.Collect(profile.FieldsOf(&g.Question))
	for flag, value := range profile.FieldsOf(&saved.Question) {
		if !given[flag] && !value.IsZero() && !(period && slices.Contains(profile.PeriodFields, flag)) {
			mine[flag].Set(value)
		}
	}
	return saved.Output, nil
}

// refuseSaving fails if --save would write a file that the command reads (contract 4.22), but for the question that it
// takes: that one is changed.
func (c *queryCmd) refuseSaving(command *kong.Context, stdin io.Reader) error {
	if c.Save == "" {
		return nil
	}
	folder := profile.HomeOrNowhere()
	path, err := folder.SaveFile(c.Save)
	if err != nil {
		return usageError{fmt.Errorf("--save: %w", err)}
	}
	question, _ := folder.QuestionFile(strings.TrimPrefix(c.Saved, "@")) // whoever reads it says what is wrong with it
	inputs := slices.DeleteFunc(filesBeside(command, nil), func(file string) bool { return file == question })
	return refuseInputs("--save", path, stdin, inputs...)
}

// save writes the question, with what it takes from another one.
func (c *queryCmd) save(io streams) error {
	saved := profile.SavedQuestion{Question: c.Question, Output: c.Output}
	path, err := profile.HomeOrNowhere().SaveQuestion(c.Save, saved)
	if err == nil && !c.Quiet {
		say(io.err, "saved as %s; 'runlens query @%s' asks it again", path, c.Save)
	}
	return err
}

// refuseBeside refuses what a whole body leaves no room for.
func (g *givenQuestion) refuseBeside(given map[string]bool) error {
	if g.Saved != "" {
		return errors.New("--body is a whole request; leave out the saved question")
	}
	refused := []string{"save"}
	for flag := range profile.FieldsOf(&g.Question) {
		if flag != "all" && flag != "fail-if" && flag != "min-count" {
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
