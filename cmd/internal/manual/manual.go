// Package manual makes manual pages of kong's model, of which --help is made too: one page a command.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// A Manual has a page for every command.
type Manual struct {
	Program *kong.Application
	// Describe is the help of a flag or an argument.
	Describe kong.HelpValueFormatter
	Version  string
}

// Write makes a file for every command, such as runlens-query.1, and returns how many. A folder that does not exist is
// made. The error names a file.
func (m Manual) Write(folder string) (int, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	return m.write(folder, m.Program.Node)
}

func (m Manual) write(folder string, node *kong.Node) (pages int, err error) {
	page := md2man.Render([]byte(m.page(node)))
	if err := os.WriteFile(filepath.Join(folder, name(node)+".1"), page, 0o644); err != nil {
		return 0, err
	}
	pages = 1
	for _, child := range node.Children {
		below, err := m.write(folder, child)
		if err != nil {
			return pages, err
		}
		pages += below
	}
	return pages, nil
}

func name(node *kong.Node) string { return strings.ReplaceAll(node.FullPath(), " ", "-") }

// page is the page as Markdown.
func (m Manual) page(node *kong.Node) string {
	var page strings.Builder
	fmt.Fprintf(&page, "%% %q 1 \"\" %q \"Manual of runlens\"\n", name(node), "runlens "+m.Version)
	summary, description := node.Help, node.Detail
	if node.Type == kong.ApplicationNode {
		summary, description, _ = strings.Cut(node.Help, "\n")
	}
	description, examples, _ := strings.Cut(description, "Example:\n")
	section(&page, "NAME", fmt.Sprintf("%s - %s", name(node), escaped(strings.TrimSuffix(summary, "."))))
	synopsis := m.Program.Name + " " + strings.TrimSpace(node.Summary())
	section(&page, "SYNOPSIS", fmt.Sprintf("**%s**", escaped(synopsis)))
	section(&page, "DESCRIPTION", escaped(strings.TrimSpace(description)))
	var commands, arguments, options strings.Builder
	for _, child := range node.Children {
		entry(&commands, fmt.Sprintf("**%s**(1)", escaped(name(child))), child.Help)
	}
	for _, argument := range node.Positional {
		entry(&arguments, fmt.Sprintf("*%s*", escaped(argument.Summary())), m.Describe(argument))
	}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			entry(&options, fmt.Sprintf("**%s**", escaped(flag.String())), m.Describe(flag.Value))
		}
	}
	section(&page, "COMMANDS", commands.String())
	section(&page, "ARGUMENTS", arguments.String())
	section(&page, "OPTIONS", options.String())
	section(&page, "EXAMPLES", "```\n"+strings.TrimRight(examples, "\n")+"\n```")
	if node.Parent != nil {
		section(&page, "SEE ALSO", fmt.Sprintf("**%s**(1)", escaped(name(node.Parent))))
	}
	return page.String()
}

// section leaves out what is empty.
func section(page *strings.Builder, title, text string) {
	if text != "" {
		fmt.Fprintf(page, "\n# %s\n\n%s\n", title, text)
	}
}

// entry is one of a list of definitions.
func entry(list *strings.Builder, term, text string) {
	fmt.Fprintf(list, "%s\n: %s\n\n", term, escaped(text))
}

// escaped takes its meaning from every character that means something in Markdown.
var escaped = strings.NewReplacer(func() (pairs []string) {
	for _, c := range "\\`*_{}[]()<>#+-!|&~:." {
		pairs = append(pairs, string(c), "\\"+string(c))
	}
	return pairs
}()...).Replace
