package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/profile"
)

// maxTitle is how many characters the title of a saved question or a new dashboard may have, inclusive.
const maxTitle = 100

// aNewBoard is chosen in the place of a dashboard's file.
const aNewBoard = "new"

// A saveView is the form that saves a question, or what became of it.
type saveView struct {
	Query  string // of the look
	Title  string
	Boards []choice // by their files
	Board  string   // the title of a new one
	Asks   string   // the name of a question that is there already, which is replaced if the form is sent again
	Wrong  string   // why nothing was saved

	Saved string // the name that it has now; empty before
	On    link   // the dashboard that has it; empty for none
}

// saveView is the form for a look, with a title that says what it shows and the first dashboard chosen.
func (c *Console) saveView(l look) *saveView {
	v := &saveView{Query: l.values().Encode(), Board: "Overview"}
	if len(l.Metrics) > 0 {
		v.Title = l.subject(l.Metrics[0])
	}
	all, _ := c.dashboards()
	for _, d := range all {
		v.Boards = append(v.Boards, choice{Value: d.file, Text: d.Title})
	}
	v.Boards = append(v.Boards, choice{Value: aNewBoard, Text: "a new dashboard"}, choice{Text: "no dashboard"})
	v.Boards[0].Chosen = true
	return v
}

// save writes a question of the page into the person's folder, and puts it on a dashboard.
func (c *Console) save(w http.ResponseWriter, r *http.Request) {
	values, err := url.ParseQuery(r.PostFormValue("look"))
	var l look
	if err == nil {
		l, err = c.parseLook(values)
	}
	v := c.saveView(l)
	v.Title, v.Board = strings.TrimSpace(r.PostFormValue("title")), strings.TrimSpace(r.PostFormValue("board-title"))
	for i := range v.Boards {
		v.Boards[i].Chosen = v.Boards[i].Value == r.PostFormValue("board")
	}
	if err == nil {
		err = c.keep(v, l, r.PostFormValue("board"), r.PostFormValue("replace"))
	}
	if err != nil {
		v.Wrong = err.Error()
	}
	c.render(w, "save", v)
}

// keep saves a look under its title. board is the file of a dashboard, aNewBoard or empty; replace is the name of a
// question that may be overwritten.
func (c *Console) keep(v *saveView, l look, board, replace string) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	name, err := nameOf(v.Title)
	if err != nil {
		return err
	}
	p := panel{Saved: name, look: l}
	if err := c.checkPanel(&p); err != nil {
		return err
	}
	known, err := c.Home.Questions()
	if err != nil {
		return err
	}
	if slices.Contains(known, name) && replace != name {
		v.Asks = name
		return nil
	}
	file, before := board, []byte(nil)
	switch board {
	case "":
	case aNewBoard:
		if file, err = c.newFile(v.Board); err != nil {
			return err
		}
		v.On = link{Text: v.Board, Href: dashboardAddress(file)}
	default:
		d, err := c.find(board)
		if err != nil {
			return err
		}
		if len(d.Panels) == maxPanels {
			return fmt.Errorf("%s has %d panels already; more have no room", d.Title, maxPanels)
		}
		v.On = link{Text: d.Title, Href: dashboardAddress(file)}
		if slices.ContainsFunc(d.Panels, func(p panel) bool { return strings.TrimPrefix(p.Saved, "@") == name }) {
			file = "" // it is there already
		} else if before, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	if _, err := c.Home.SaveQuestion(name, profile.SavedQuestion{Question: withoutDefaults(l.Question)}); err != nil {
		return err
	}
	if file != "" {
		if err := c.putOn(file, before, v, l, name); err != nil {
			return fmt.Errorf("the question is saved as @%s, but not on the dashboard: %w", name, err)
		}
	}
	v.Saved = name
	return nil
}

// nameOf is a title as the name of a file.
func nameOf(title string) (string, error) {
	if title == "" || len([]rune(title)) > maxTitle || strings.ContainsFunc(title, output.Hidden) {
		return "", fmt.Errorf("a title has 1 to %d visible characters", maxTitle)
	}
	var b strings.Builder
	for _, r := range fileName(title) {
		if r < unicode.MaxASCII {
			b.WriteRune(r)
		}
	}
	name := strings.Trim(shorten(b.String(), 64), "-…")
	if profile.CheckName(name) != nil {
		return "", errors.New("a title needs a letter from a to z or a digit: the file is named by it")
	}
	return name, nil
}

// newFile is where a dashboard of a title goes, if there is none.
func (c *Console) newFile(title string) (string, error) {
	name, err := nameOf(title)
	if err != nil {
		return "", fmt.Errorf("the new dashboard: %w", err)
	}
	file := filepath.Join(c.folder(), name+".yaml")
	if _, err := os.Lstat(file); err == nil {
		return "", fmt.Errorf("there is a dashboard %s already: choose it, or another title", name)
	}
	return file, nil
}

// putOn writes a dashboard with one panel more, or with its first one where there was no content before.
func (c *Console) putOn(file string, before []byte, v *saveView, l look, name string) error {
	p := savedPanel{Title: v.Title, Saved: name}
	if l.Chart != "line" {
		p.Chart = l.Chart
	}
	if l.Top != defaultTop {
		p.Top = l.Top
	}
	after, err := []byte(nil), error(nil)
	if before == nil {
		after, err = yaml.Marshal(newDashboard{Title: v.Board, Timezone: cmp.Or(l.Timezone, "UTC"), Last: l.Last,
			Start: l.Start, End: l.End, Panels: []savedPanel{p}})
	} else {
		after, err = addPanel(before, p)
	}
	if err == nil {
		_, err = c.parseDashboard(file, after) // what the file would be is shown by no page if it has a fault
	}
	if err != nil {
		return err
	}
	return profile.Replace(file, after)
}
