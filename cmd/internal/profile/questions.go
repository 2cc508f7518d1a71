package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/runlens/runlens/http/client/report"
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

// A SavedQuestion is what the file of a saved question has.
type SavedQuestion struct {
	report.Question `yaml:",inline"`
	Output          string `yaml:"output,omitempty"` // the format of the terminal
}

// Question reads a saved question, with the defaults for what it leaves out.
func (f Folder) Question(name string) (SavedQuestion, error) {
	q := SavedQuestion{Question: report.Default()}
	path, err := f.QuestionFile(name)
	if err != nil {
		return q, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return q, fmt.Errorf("there is no saved question %s; %s", path, f.saved())
	}
	if err != nil {
		return q, err
	}
	defer file.Close()
	if err := Decode(file, &q); err != nil {
		return q, fmt.Errorf("%s: %w", path, err)
	}
	return q, nil
}

// FieldsOf are the fields of a question by their names in saved questions, which are those of the flags.
func FieldsOf(q *report.Question) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for field, value := range reflect.ValueOf(q).Elem().Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); !yield(name, value) {
				return
			}
		}
	}
}

// PeriodFields are those that name the days of a question. They replace each other: one takes the place of all.
var PeriodFields = []string{"start", "end", "last", "today", "yesterday"}

// SaveQuestion writes a question and returns its file.
func (f Folder) SaveQuestion(name string, question SavedQuestion) (string, error) {
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
