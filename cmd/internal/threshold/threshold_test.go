package threshold

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

func TestThresholds(t *testing.T) {
	columns := []report.Column{{Name: "day", Kind: report.Date, Member: "day"}, {Name: "run_count", Kind: report.Count},
		{Name: "run_success_rate", Kind: report.Number}}
	var row report.Row
	if err := json.Unmarshal([]byte(`["2026-01-02",9007199254740993,0.9]`), &row); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"run_count > 9007199254740992": true, "run_count>=9007199254740993": true, "run_count == 9007199254740992": false,
		"run_count != 9007199254740993": false, "run_success_rate < 0.9": false, "run_success_rate <= 0.9": true,
		"run_success_rate < 9.1e-1": true, "run_success_rate > -1": true,
	} {
		found, err := Parse([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		on, err := found[0].On(columns)
		if err != nil {
			t.Fatal(err)
		}
		says, crossed := on.Crossed(columns, row)
		if crossed != want || crossed && !strings.Contains(says.String(), "of day 2026-01-02 is") {
			t.Errorf("%s: %t %v", text, crossed, says)
		}
		if _, crossed := on.Crossed(columns, report.Row{row[0], {}, {}}); crossed {
			t.Errorf("%s holds for null", text)
		}
	}
	// A name and a percentage are there where the answer has them.
	named := []report.Column{{Name: "agent_id", Member: "agent_id"}, {Name: "agent_name", Member: "agent_id"},
		{Name: "run_success_rate", Kind: report.Number}}
	one, _ := Parse([]string{"run_success_rate < 0.9"})
	on, _ := one[0].On(named)
	says, _ := on.Crossed(named, report.Row{client.StringValue("0b7e"), client.StringValue("Billing desk"),
		client.Float64Value(0.8512)})
	if says.String() != "run_success_rate < 0.9: the value of agent_id 0b7e (Billing desk) is 0.8512 (85.12%)" {
		t.Error(says)
	}
	// Every row has a key of its own. Keys are kept in files, so they stay as they are.
	pair := []report.Column{{Name: "source", Member: "source"}, {Name: "user_domain", Member: "user_domain"},
		{Name: "run_success_rate", Kind: report.Number}}
	on, _ = one[0].On(pair)
	text, rate := client.StringValue, client.Float64Value(0.5)
	for want, row := range map[string]report.Row{
		"source web, user_domain example.com":               {text("web"), text("example.com"), rate},
		`source "web, user_domain example.com"`:             {text("web, user_domain example.com"), {}, rate},
		`source "\"web\"", user_domain example.com`:         {text(`"web"`), text("example.com"), rate},
		`source "\\\"web", user_domain example.com`:         {text(`\"web`), text("example.com"), rate},
		`source "\\x1b", user_domain it's an example.com/ä`: {text(`\x1b`), text("it's an example.com/ä"), rate},
		"user_domain web": {{}, text("web"), rate},
	} {
		if says, _ := on.Crossed(pair, row); says.Key != "run_success_rate < 0.9: the value of "+want {
			t.Errorf("%s, want %s", says.Key, want)
		}
	}
	for _, text := range []string{"", "run_count", "run_count < ", "< 1", "run_count < x", "run_count = 1",
		"run_count < 1e999", "run_count < 0x1", "run_count < NaN", "run_count < 1_000", "run_count < 1 and 2"} {
		if _, err := Parse([]string{text}); err == nil {
			t.Errorf("%q is no condition", text)
		}
	}
	found, _ := Parse([]string{"day < 1"})
	if _, err := found[0].On(columns); err == nil || !strings.Contains(err.Error(), "run_count, run_success_rate") {
		t.Errorf("a day has no threshold: %v", err)
	}
}
