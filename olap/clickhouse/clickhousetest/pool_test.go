package clickhousetest

import (
	"os"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
)

// Tests that run side by side have an engine each, a subtest has that of the test around it, and whoever comes later
// gets one that was given back.
func TestEnginesAreLentToOneTestAtATime(t *testing.T) {
	if os.Getenv(urlVariable)+os.Getenv(containerVariable) != "" {
		t.Skip("there is one server")
	}
	p := newPool()
	lend := func(test string) (dataDir string, giveBack func()) {
		t.Helper()
		config, giveBack, err := p.lend(test)
		if err != nil {
			t.Fatal(err)
		}
		return config.DataDir, giveBack
	}
	one, giveBack := lend("TestOne")
	if two, _ := lend("TestTwo"); two == one {
		t.Error("two tests have one engine")
	}
	inner, giveBackInner := lend("TestOne/of/its/subtests")
	if inner != one {
		t.Error("a subtest has another engine than its test")
	}
	giveBack()
	if three, giveBack := lend("TestThree"); three == one {
		t.Error("an engine was given back while a subtest had it")
	} else {
		giveBack()
	}
	giveBackInner()
	if four, _ := lend("TestFour"); four != one {
		t.Error("an engine that was given back stays unused")
	}
}

// Where there is one server, tests have it one after the other.
func TestOneServerIsLentToOneTestAtATime(t *testing.T) {
	p := newPool()
	p.only, p.free = true, []clickhouse.Config{{URL: "clickhouse://one"}}
	_, giveBack, err := p.lend("TestOne")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.lend("TestOne/inner"); err != nil {
		t.Fatal(err)
	}
	given := make(chan bool, 1)
	began := make(chan struct{})
	go func() {
		close(began)
		config, _, err := p.lend("TestTwo")
		given <- err == nil && config.URL == "clickhouse://one"
	}()
	<-began
	giveBack()
	if len(given) > 0 {
		t.Error("two tests have the one server")
	}
	giveBack()
	if !<-given {
		t.Error("the server was not lent to the next test")
	}
}
