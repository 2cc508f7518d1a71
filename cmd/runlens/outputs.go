package main

import (
	"fmt"
	"io"
	"os"
)

// refuseInputs returns a usageError if an output is the same file as one of the inputs, by whatever names and links
// (contract 4.22). It opens nothing. The flag names the output; the input "-" is stdin, and an empty name is no file.
func refuseInputs(flag, output string, stdin io.Reader, inputs ...string) error {
	info, err := os.Stat(output)
	if err != nil || info.Mode()&os.ModeDevice != 0 { // a terminal can be read and written
		return nil
	}
	for _, input := range inputs {
		var other os.FileInfo
		if file, ok := stdin.(*os.File); input == "-" && ok {
			other, err = file.Stat()
		} else {
			other, err = os.Stat(input)
		}
		if err == nil && os.SameFile(info, other) {
			return usageError{fmt.Errorf("%s %s is also read, as %s; name another file", flag, output, input)}
		}
	}
	return nil
}
