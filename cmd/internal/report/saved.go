package report

import (
	"sync"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/profile"
)

// TagVariables are what names in the struct tags of Question stand for, such as enum:"${weekdays}": what parses a
// Question by its tags needs them.
var TagVariables = map[string]string{"weekdays": "monday,tuesday,wednesday,thursday,friday,saturday,sunday"}

// Default is a question with the defaults of runlens query.
var Default = sync.OnceValues(func() (q Question, err error) {
	err = kong.ApplyDefaults(&q, kong.Vars(TagVariables))
	return q, err
})

// Saved reads a saved question by its name or path, with the defaults for what it leaves out.
func Saved(folder profile.Folder, name string) (Question, error) {
	q, err := Default()
	if err != nil {
		return q, err
	}
	saved := struct {
		*Question `yaml:",inline"`
		Output    string `yaml:"output"` // is for the terminal
	}{Question: &q}
	err = folder.Question(name, &saved)
	return q, err
}
