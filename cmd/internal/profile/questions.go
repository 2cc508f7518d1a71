package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// QuestionFile is where a saved question is: a name in the folder, or a path, which has a slash or the ending .yaml.
func (f Folder) QuestionFile(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".yaml") {
		return name, nil
	}
	if err := CheckName(name); err != nil {
		return "", err
	}
	if f == Nowhere {
		_, err := Home()
		return "", fmt.Errorf("%w; name a file of questions, such as ./%s.yaml", err, name)
	}
	return filepath.Join(string(f), "queries", name+".yaml"), nil
}

// Files are those that a command may read: the profiles, and that of a saved question, unless its name is empty.
func (f Folder) Files(question string) []string {
	var files []string
	if f != Nowhere {
		files = append(files, f.profiles())
	}
	if path, err := f.QuestionFile(question); err == nil {
		files = append(files, path)
	}
	return files
}

// Question reads a saved question into a struct.
func (f Folder) Question(name string, into any) error {
	path, err := f.QuestionFile(name)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no saved question %s; %s", path, f.saved())
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := Decode(file, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// SaveQuestion writes a question and returns its file.
func (f Folder) SaveQuestion(name string, question any) (string, error) {
	path, err := f.SaveFile(name)
	if err != nil {
		return "", err
	}
	return path, f.write(path, question)
}

// SaveFile is where SaveQuestion writes. What is not for questions is refused: a path without the ending .yaml, the
// profiles, and what is no regular file, such as a pipe, which a file would replace.
func (f Folder) SaveFile(name string) (string, error) {
	path, err := f.QuestionFile(name)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(path, ".yaml") {
		return "", fmt.Errorf("%s does not end in .yaml, as the file of a question does", path)
	}
	if whole, err := filepath.Abs(path); err == nil && whole == f.profiles() { // also where there are none yet
		return "", fmt.Errorf("%s is for the keys of profiles; name another file", path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file; name another one", path)
	}
	return path, nil
}

// saved lists the questions of the folder.
func (f Folder) saved() string {
	names, err := f.Questions()
	if err != nil || len(names) == 0 {
		return "none are saved yet: --save NAME does"
	}
	return "saved are @" + strings.Join(names, ", @")
}
