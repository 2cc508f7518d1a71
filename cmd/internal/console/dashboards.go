package console

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client/report"
)

// A dashboard is several questions over one period in one zone.
type dashboard struct {
	Title    string        `yaml:"title"`
	Timezone string        `yaml:"timezone"`
	Last     string        `yaml:"last"`
	Start    string        `yaml:"start"`
	End      string        `yaml:"end"`
	Refresh  time.Duration `yaml:"refresh"` // 0 for never
	Panels   []panel       `yaml:"panels"`

	file string
}

// A panel has a saved question by its name or file, or a question of its own.
type panel struct {
	Title    string    `yaml:"title"`
	Saved    string    `yaml:"saved"` // as after the @ of runlens query; a path is relative to the dashboard's folder
	Question yaml.Node `yaml:"question"`
	Chart    string    `yaml:"chart"` // line or bar
	Top      int       `yaml:"top"`

	look look
	file string // of the saved question; empty without one
}

const (
	// maxPanels of a dashboard, inclusive.
	maxPanels = 24
	// perMinute is how many queries a dashboard sends at most: half of what a key may by default.
	perMinute = 30
)

// dashboardAddress is where the console shows a dashboard.
func dashboardAddress(file string) string { return "dashboard?" + url.Values{"file": {file}}.Encode() }

// A fault is why a dashboard's file can't be shown.
type fault struct {
	file string
	line int // of the file, from 1; 0 for the whole file
	text string
}

func (f *fault) Error() string {
	if f.line == 0 {
		return f.file + ": " + f.text
	}
	return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text)
}

// title is what the file is called while its own title cannot be read.
func (f *fault) title() string { return strings.TrimSuffix(filepath.Base(f.file), ".yaml") }

// dashboards are those of the command line and of the person's folder, and the files among them that have a fault.
func (c *Console) dashboards() (all []*dashboard, faults []*fault) {
	files := slices.Clone(c.Dashboards)
	names, _ := c.Home.Names(dashboardsFolder) // who may not read it has none
	for _, name := range names {
		files = append(files, filepath.Join(c.folder(), name+".yaml"))
	}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			continue
		}
		if d, err := c.readDashboard(file); err == nil {
			all = append(all, d)
		} else if wrong, ok := errors.AsType[*fault](err); ok {
			faults = append(faults, wrong)
		}
	}
	return all, faults
}

// dashboardsFolder is where a person's dashboards are, within the home.
const dashboardsFolder = "dashboards"

func (c *Console) folder() string { return filepath.Join(string(c.Home), dashboardsFolder) }

// readDashboard reads a file and checks it against the catalog. The error is a *fault.
func (c *Console) readDashboard(file string) (*dashboard, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		if reason, ok := errors.AsType[*fs.PathError](err); ok {
			err = reason.Err // the path is the fault's
		}
		return nil, &fault{file: file, text: err.Error()}
	}
	return c.parseDashboard(file, content)
}

// parseDashboard reads the content of a file. The error is a *fault.
func (c *Console) parseDashboard(file string, content []byte) (*dashboard, error) {
	d := &dashboard{file: file}
	if err := profile.Decode(bytes.NewReader(content), d); err != nil {
		line, text := profile.Fault(err)
		return nil, &fault{file, line, text}
	}
	d.Title = cmp.Or(d.Title, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	if len(d.Panels) == 0 || len(d.Panels) > maxPanels {
		return nil, &fault{file: file, text: fmt.Sprintf("a dashboard has 1 to %d panels", maxPanels)}
	}
	var places struct{ Panels []yaml.Node }
	_ = yaml.Unmarshal(content, &places) // as it was decoded before
	for i := range d.Panels {
		if err := c.preparePanel(d, &d.Panels[i]); err != nil {
			line, text := profile.Fault(err)
			return nil, &fault{file, cmp.Or(line, d.Panels[i].Question.Line, places.Panels[i].Line),
				fmt.Sprintf("panel %d: %s", i+1, text)}
		}
	}
	if least := d.leastRefresh(c.Now()); d.Refresh != 0 && d.Refresh < least {
		return nil, &fault{file: file, text: fmt.Sprintf("refresh %v is too often for %d queries: at least %v, so that "+
			"other uses of the key have half of its rate", d.Refresh, d.queries(c.Now()), least)}
	}
	return d, nil
}

func (c *Console) preparePanel(d *dashboard, p *panel) error {
	q := report.Default()
	var err error
	switch {
	case (p.Saved != "") == !p.Question.IsZero():
		return errors.New("it needs either saved, the name of a saved question, or question")
	case p.Saved != "":
		name := strings.TrimPrefix(p.Saved, "@")
		if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(d.file), name)
		}
		var saved profile.SavedQuestion
		if saved, err = c.Home.Question(name); err == nil {
			q = saved.Question
			p.file, err = c.Home.QuestionFile(name)
		}
	default:
		err = decodeQuestion(p.Question, &q)
	}
	if err != nil {
		return err
	}
	q.FailIf, q.MinCount = nil, 0 // are for the command line
	p.look = look{Question: q, Top: cmp.Or(p.Top, defaultTop), Chart: cmp.Or(p.Chart, "line"),
		By: "value"}
	if d.Last != "" || d.Start != "" || d.End != "" {
		p.look.setPeriod(url.Values{"last": {d.Last}, "start": {d.Start}, "end": {d.End}}.Encode())
	}
	p.look.Timezone = cmp.Or(d.Timezone, p.look.Timezone)
	return c.checkPanel(p)
}

// decodeQuestion reads a question that has no unknown fields; a node by itself would allow them.
func decodeQuestion(node yaml.Node, q *report.Question) error {
	names := slices.Clone(terminalFields)
	for name := range fieldsOf(q) {
		names = append(names, name)
	}
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		if key := node.Content[i]; !slices.Contains(names, key.Value) {
			return fmt.Errorf("line %d: a question has no field %s", key.Line, key.Value)
		}
	}
	return node.Decode(q)
}

// checkPanel finds before anything is asked what the API would refuse.
func (c *Console) checkPanel(p *panel) error {
	q := p.look.Question
	if err := p.look.check(); err != nil {
		return err
	}
	if p.look.Top < 1 || p.look.Top > maxTop {
		return fmt.Errorf("top %d must be 1 to %d", p.look.Top, maxTop)
	}
	model := c.model(q.Model)
	if model.Name != q.Model {
		return fmt.Errorf("there is no model %q", q.Model)
	}
	for _, name := range q.Metrics {
		if metricOf(model, name).Type == "" {
			return fmt.Errorf("%s has no metric %s", q.Model, name)
		}
	}
	members := slices.Clone(q.Dimensions)
	for _, text := range q.Filter {
		f, err := report.ParseFilter(text)
		if err != nil {
			return err
		}
		members = append(members, f.Member)
	}
	for _, name := range members {
		if !hasDimension(model, name) {
			return fmt.Errorf("%s has no dimension %s", q.Model, name)
		}
	}
	span, err := q.Span(c.Now())
	if err != nil {
		return err
	}
	_, err = q.Build(span)
	return err
}

// queries is how many queries one refresh sends: those of the rows, their groups and the totals of each panel.
func (d *dashboard) queries(now time.Time) (count int) {
	for _, p := range d.Panels {
		run := report.Run{Question: p.look.Question}
		if run.Check(now) == nil {
			count += len(run.Queries())
		}
		if totals := (report.Run{Question: p.look.totals()}); len(p.look.Dimensions) > 0 && totals.Check(now) == nil {
			count += len(totals.Queries())
		}
		if p.look.over() != "" && len(p.look.groups()) > 0 {
			count++
		}
	}
	return count
}

// leastRefresh is how long a refresh takes within perMinute.
func (d *dashboard) leastRefresh(now time.Time) time.Duration {
	return (time.Duration(d.queries(now)) * time.Minute / perMinute).Round(time.Second)
}
