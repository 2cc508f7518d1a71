package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// refuseInputs returns a usageError if an output is the same file as one of the inputs, by whatever names and links
// (contract 4.22). It opens nothing. The flag names the output; the input "-" is stdin, and an empty name is no file.
func refuseInputs(flag, output string, stdin io.Reader, inputs ...string) error {
	info, missing := os.Stat(output)
	if output == "" || missing == nil && info.Mode()&os.ModeDevice != 0 { // a terminal can be read and written
		return nil
	}
	for _, input := range inputs {
		var other os.FileInfo
		var err error
		if file, ok := stdin.(*os.File); input == "-" && ok {
			other, err = file.Stat()
		} else {
			other, err = os.Stat(input)
		}
		same := missing == nil && err == nil && os.SameFile(info, other)
		if missing != nil && err != nil && input != "-" { // neither is there yet
			same = absolute(output) == absolute(input)
		}
		if same {
			return usageError{fmt.Errorf("%s %s is also read, as %s; name another file", flag, output, input)}
		}
	}
	return nil
}

// absolute is a file's path, behind the links of its folder.
func absolute(path string) string {
	if path, err := filepath.Abs(path); err == nil {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			return filepath.Join(folder, filepath.Base(path))
		}
	}
	return path
}

// printObjects prints JSON, an object a line.
func printObjects[T, L any](out io.Writer, all []T, line func(T) L) error {
	encoder := json.NewEncoder(out)
	for _, one := range all {
		if err := encoder.Encode(line(one)); err != nil {
			return err
		}
	}
	return nil
}
