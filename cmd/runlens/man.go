package main

import (
	"fmt"

	"github.com/runlens/runlens/cmd/internal/manual"
)

type manCmd struct {
	Dir string `arg:"" placeholder:"DIR" help:"The folder, such as ~/.local/share/man/man1."`
}

func (manCmd) Help() string {
	return `Writes the text of every --help as a manual page, runlens.1 and one for each command, into a folder.

Example:
  runlens man ~/.local/share/man/man1
  man runlens-query`
}

func (c manCmd) Run(io streams) error {
	parser, err := newParser(&cli{})
	if err != nil {
		return err
	}
	pages, err := manual.Manual{Program: parser.Model, Describe: describe, Version: version}.Write(c.Dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "wrote %d pages into %s\n", pages, c.Dir)
	return err
}
