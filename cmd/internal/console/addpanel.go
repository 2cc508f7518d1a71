package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A savedPanel is a panel as the console writes it.
type savedPanel struct {
	Title string `yaml:"title"`
	Saved string `yaml:"saved"`
	Chart string `yaml:"chart,omitempty"`
	Top   int    `yaml:"top,omitempty"`
}

// A newDashboard is the content of a file that the console begins.
type newDashboard struct {
	Title    string       `yaml:"title"`
	Timezone string       `yaml:"timezone"`
	Last     string       `yaml:"last,omitempty"`
	Start    string       `yaml:"start,omitempty"`
	End      string       `yaml:"end,omitempty"`
	Panels   []savedPanel `yaml:"panels"`
}

// errFlow is for a list of panels that has no line to add one after.
var errFlow = errors.New("its panels are not written as a list with a line that begins with - for each; " +
	"add the panel by hand")

// addPanel adds a panel to the content of a dashboard's file behind its last one. Every other byte stays, so that
// comments and the order of a file that a person wrote do too. The content has to be one that parseDashboard takes.
func addPanel(content []byte, p savedPanel) ([]byte, error) {
	var file yaml.Node
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	panels := valueOf(file.Content[0], "panels")
	if panels == nil || panels.Kind != yaml.SequenceNode || panels.Style&yaml.FlowStyle != 0 {
		return nil, errFlow
	}
	text, err := yaml.Marshal([]savedPanel{p})
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(content), "\n")
	last := panels.Content[len(panels.Content)-1]
	dash := strings.Index(lines[last.Line-1], "-")
	if dash < 0 || strings.TrimSpace(lines[last.Line-1][:dash]) != "" {
		return nil, errFlow
	}
	// The last panel ends before the first line that is not indented more than its dash. Comments and empty lines behind
	// it belong to what follows.
	end := last.Line
	for n := last.Line; n < len(lines); n++ {
		words := strings.TrimSpace(lines[n])
		if words == "" || strings.HasPrefix(words, "#") {
			continue
		}
		if len(lines[n])-len(strings.TrimLeft(lines[n], " ")) <= dash {
			break
		}
		end = n + 1
	}
	var added strings.Builder
	if !strings.HasSuffix(lines[end-1], "\n") {
		added.WriteString("\n")
	}
	for line := range strings.Lines(string(text)) {
		fmt.Fprintf(&added, "%*s%s", dash, "", line)
	}
	piece := added.String()
	if strings.HasSuffix(lines[0], "\r\n") {
		piece = strings.ReplaceAll(piece, "\n", "\r\n")
	}
	grown := []byte(strings.Join(slices.Insert(lines, end, piece), ""))
	return grown, sameBefore(content, grown)
}

// sameBefore makes sure that a dashboard with a panel more is otherwise the same.
func sameBefore(before, after []byte) error {
	var a, b map[string]any
	if yaml.Unmarshal(before, &a) != nil || yaml.Unmarshal(after, &b) != nil {
		return errFlow
	}
	panels, _ := b["panels"].([]any)
	if len(panels) == 0 {
		return errFlow
	}
	b["panels"] = panels[:len(panels)-1]
	x, _ := yaml.Marshal(a) // as they were read
	y, _ := yaml.Marshal(b)
	if string(x) != string(y) {
		return errFlow
	}
	return nil
}

func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
