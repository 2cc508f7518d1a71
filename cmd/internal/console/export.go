package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
)

// An exported page has every panel with its drawings. It loads nothing and runs no script.
type exported struct {
	Title  string
	Style  template.CSS
	About  string // the days and the timezone of all panels; empty where they have several
	Panels []exportedPanel
}

type exportedPanel struct {
	Title  string
	About  string // its days and timezone, where those of the others differ
	Answer *answerView
	Lines  []lineDrawing
}

// Reads are the files that a dashboard is made of: its own, and the saved questions of its panels.
func (c *Console) Reads(file string) ([]string, error) {
	d, err := c.readDashboard(file)
	if err != nil {
		return nil, err
	}
	read := []string{file}
	for _, p := range d.Panels {
		read = append(read, p.file)
	}
	return read, nil
}

// Export writes a dashboard as one HTML page. The error is one line about the first panel that failed.
func (c *Console) Export(ctx context.Context, file string, w io.Writer) error {
	d, err := c.readDashboard(file)
	if err != nil {
		return err
	}
	style, err := files.ReadFile("assets/console.css")
	if err != nil {
		return err
	}
	all := exported{Title: d.Title, Style: template.CSS(style)}
	abouts := make([]string, len(d.Panels))
	for i, p := range d.Panels {
		s, err := c.show(ctx, p.look, fresh)
		if err != nil {
			return fmt.Errorf("panel %d: %w", i+1, err)
		}
		if s.failed != nil {
			return errors.New("the server failed while the dashboard was read: " + s.failed.line)
		}
		abouts[i] = daysAndZone(s.span, p.look.Timezone)
		view := c.viewOf(s, fmt.Sprintf("panel-%d-", i)).alone()
		panel := exportedPanel{Title: p.heading(), Answer: view}
		for _, chart := range view.Charts {
			panel.Lines = append(panel.Lines, drawLines(chart))
		}
		for n := range view.Bars {
			view.Bars[n].ID = "" // no script makes a picture of it
		}
		all.Panels = append(all.Panels, panel)
	}
	all.About, abouts = inCommon(abouts)
	for i := range all.Panels {
		all.Panels[i].About = abouts[i]
	}
	return templates.ExecuteTemplate(w, "export.html", all)
}
