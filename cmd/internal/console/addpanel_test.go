package console

import "testing"

// A panel comes behind the last one, and every other byte of the file stays.
func TestAddPanel(t *testing.T) {
	const one = "  # counted since May\n  - saved: a  # the first\n"
	for name, c := range map[string]struct{ before, after, rest string }{
		"at the end":       {"# mine\ntitle: T\n\npanels:\n" + one, "  - title: 'Ä: b'\n    saved: b\n", ""},
		"not indented":     {"panels:\n- saved: a\n", "- title: 'Ä: b'\n  saved: b\n", ""},
		"before a comment": {"panels:\n" + one, "  - title: 'Ä: b'\n    saved: b\n", "\n  # - saved: old\n# the end\n"},
		"before a key":     {"panels:\n" + one, "  - title: 'Ä: b'\n    saved: b\n", "\n# in UTC\ntimezone: UTC\n"},
		"Windows":          {"panels:\r\n- saved: a\r\n", "- title: 'Ä: b'\r\n  saved: b\r\n", "title: x\r\n"},
		"a question": {"panels:\n  - question:\n      metrics: [a,\n        b]\n      dimensions:\n      - day\n\n" +
			"    top: 3\n", "  - title: 'Ä: b'\n    saved: b\n", ""},
	} {
		got, err := addPanel([]byte(c.before+c.rest), savedPanel{Title: "Ä: b", Saved: "b"})
		if want := c.before + c.after + c.rest; err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	got, err := addPanel([]byte("panels:\n- saved: a"), savedPanel{Title: "x", Saved: "b", Chart: "bar", Top: 3})
	if want := "panels:\n- saved: a\n- title: x\n  saved: b\n  chart: bar\n  top: 3\n"; err != nil || string(got) != want {
		t.Errorf("without a line break at the end: %v\n%s", err, got)
	}
	for name, content := range map[string]string{
		"in one line":   "panels: [{saved: a}]\n",
		"over lines":    "panels: [\n  {saved: a},\n]\n",
		"a number sign": "panels:\n- title: |\n    a\n    # b\n  saved: a\n- title: |\n    c\n    # d\n",
		"a dash alone":  "panels:\n  -\n    saved: a\n",
	} {
		if got, err := addPanel([]byte(content), savedPanel{Title: "x", Saved: "b"}); err == nil {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
