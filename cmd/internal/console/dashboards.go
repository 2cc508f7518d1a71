package console

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/cmd/internal/report"
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
}

const (
	// maxPanels of a dashboard, inclusive.
	maxPanels = 24
	// perMinute is how many queries a dashboard sends at most: half of what a key may by default.
	perMinute = 30
)

// dashboardAddress is where the console shows a dashboard.
func dashboardAddress(file string) string { return "dashboard?" + url.Values{"file": {file}}.Encode() }

// dashboards are those of the command line and of the person's folder that can be read.
func (c *Console) dashboards() (all []*dashboard) {
	files := slices.Clone(c.Dashboards)
	found, _ := filepath.Glob(filepath.Join(string(c.Home), "dashboards", "*.yaml")) // the pattern is right
	for _, file := range append(files, found...) {
		known := slices.ContainsFunc(all, func(d *dashboard) bool { return d.file == file })
		if d, err := c.readDashboard(file); err == nil && !known {
			all = append(all, d)
		}
	}
	return all
}

// readDashboard reads a file and checks it against the catalog. The error names the file and the place.
func (c *Console) readDashboard(file string) (*dashboard, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &dashboard{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	d.Title = cmp.Or(d.Title, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	if len(d.Panels) == 0 || len(d.Panels) > maxPanels {
		return nil, fmt.Errorf("%s: a dashboard has 1 to %d panels", file, maxPanels)
	}
	for i := range d.Panels {
		if err := c.preparePanel(d, &d.Panels[i]); err != nil {
			return nil, fmt.Errorf("%s: panel %d: %w", file, i+1, err)
		}
	}
	if least := d.leastRefresh(c.Now()); d.Refresh != 0 && d.Refresh < least {
		return nil, fmt.Errorf("%s: refresh %v is too often for %d queries: at least %v, so that other uses of the key "+
			"have half of its rate", file, d.Refresh, d.queries(c.Now()), least)
	}
	return d, nil
}

func (c *Console) preparePanel(d *dashboard, p *panel) error {
	q, err := report.Default()
	if err != nil {
		return err
	}
	switch {
	case (p.Saved != "") == !p.Question.IsZero():
		return errors.New("it needs either saved, the name of a saved question, or question")
	case p.Saved != "":
		name := strings.TrimPrefix(p.Saved, "@")
		if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(d.file), name)
		}
		q, err = report.Saved(c.Home, name)
	default:
		err = decodeQuestion(p.Question, &q)
	}
	if err != nil {
		return err
	}
	q.FailIf = nil // is for the command line
	p.look = look{Question: q, Top: cmp.Or(p.Top, defaultTop), Chart: cmp.Or(p.Chart, "line"),
		By: "value"}
	if d.Last != "" || d.Start != "" {
		p.look.setPeriod(url.Values{"last": {d.Last}, "start": {d.Start}, "end": {d.End}}.Encode())
	}
	p.look.Timezone = cmp.Or(d.Timezone, p.look.Timezone)
	return c.checkPanel(p)
}

// decodeQuestion reads a question that has no unknown fields; a node by itself would allow them.
func decodeQuestion(node yaml.Node, q *report.Question) error {
	text, err := yaml.Marshal(&node)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(q)
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
