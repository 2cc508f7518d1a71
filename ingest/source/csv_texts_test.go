package source

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/ingest/normalize"
)

// Contract 3: nothing is dropped silently. What a writer of CSV quotes arrives as it is, line ends of every kind too,
// and again from the text that a reject keeps.
func TestCSVTextsArriveAsTheyAre(t *testing.T) {
	character := rapid.SampledFrom([]rune("\r\n\r\n\",a \tÅ\\N"))
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringOfN(character, 1, 9, -1), 1, 5).Draw(t, "names")
		var in bytes.Buffer
		in.WriteString(agentHeader)
		w := csv.NewWriter(&in)
		for _, name := range names {
			w.Write([]string{"o", name, name + "\r\n", name, "", "t"})
		}
		w.Flush()
		reader, err := stream(CSV, normalize.KindAgent, in.Bytes()).From(Position{})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			record, err := reader.Next()
			if errors.Is(err, io.EOF) {
				if i != len(names) {
					t.Fatalf("%d records of %d", i, len(names))
				}
				return
			}
			if err != nil || record.Fault != nil {
				t.Fatal(err, record.Fault)
			}
			read := reader.(*csvRecords)
			var again normalize.Raw
			if fault := read.dialect.Read(slices.Clone(read.text), &again); fault != nil {
				t.Fatal(fault)
			}
			for _, raw := range []normalize.Raw{record.Raw, again} {
				for field, want := range map[int]string{1: names[i], 2: names[i] + "\r\n", 3: names[i]} {
					if got := string(raw.Values[field]); got != want && want != `\N` {
						t.Fatalf("%q arrives as %q", want, got)
					}
				}
			}
		}
	})
}
