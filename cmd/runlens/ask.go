package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// asked reads an answer from the terminal; ok is false where there is none, or it has ended.
func asked(io streams, question string) (answer string, ok bool) {
	file, is := io.in.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return "", false
	}
	fmt.Fprint(io.err, question)
	line, err := bufio.NewReader(file).ReadString('\n')
	return strings.TrimSpace(line), err == nil
}
