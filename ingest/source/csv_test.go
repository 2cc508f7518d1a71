package source

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
)

func TestCSVHeader(t *testing.T) {
	const row = `2 agent "1" "2" "3" "4" "5" "6"`
	for name, c := range map[string]struct {
		header, cells, want string
	}{
		"order of the fields": {"organization_id,agent_id,name,slug,deleted_at,updated_at", "1,2,3,4,5,6", row},
		"any order":           {"updated_at,slug,organization_id,deleted_at,name,agent_id", "6,4,1,5,3,2", row},
		"no nullable ones":    {"agent_id,organization_id,name,updated_at", "2,1,3,6", `2 agent "1" "2" "3" - - "6"`},
		"a byte order mark": {"\xef\xbb\xbforganization_id,agent_id,name,updated_at", "1,2,3,6",
			`2 agent "1" "2" "3" - - "6"`},
		"a mark and quotes": {"\xef\xbb\xbf\"organization_id\",agent_id,name,updated_at", "1,2,3,6",
			`2 agent "1" "2" "3" - - "6"`},
		"spaces around": {"organization_id, agent_id ,name,updated_at", "1,2,3,6", `2 agent "1" "2" "3" - - "6"`},
		"the kind": {"record,organization_id,agent_id,name,updated_at", "agent,1,2,3,6",
			`2 agent "1" "2" "3" - - "6"`},
		"another kind": {"organization_id,agent_id,name,updated_at,record", "1,2,3,6,run",
			"2 fault record: must be agent, the kind of all records of this file"},
		"no kind": {"organization_id,agent_id,name,updated_at,record", "1,2,3,6,", "2 fault record: must " +
			"be agent, the kind of all records of this file"},
		"an unknown one": {"organization_id,agent_id,name,updated_at,status", "", `the header names "status", ` +
			`which is no field of a record of kind agent`},
		"letter case counts": {"Organization_id,agent_id,name,updated_at", "", `the header names "Organization_id", ` +
			`which is no field of a record of kind agent`},
		"one twice":    {"organization_id,agent_id,name,updated_at,name", "", `the header names "name" twice`},
		"record twice": {"record,organization_id,agent_id,name,updated_at,record", "", `the header names "record" twice`},
		"a missing one": {"organization_id,agent_id,updated_at,slug", "", `the header lacks "name", which a ` +
			`record of kind agent needs`},
		"no header but a record": {"org,0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10,n,t", "", `the header names "org", which is ` +
			`no field of a record of kind agent`},
		"carriage returns end lines": {"organization_id,agent_id,name,updated_at\r1,2,3,6\r", "",
			"the header has a carriage return that belongs to no CRLF"},
		"two carriage returns": {"organization_id,agent_id,name,updated_at,slug\r\r", "1,2,3,6,s\r\r",
			"the header has a carriage return that belongs to no CRLF"},
		"carriage returns end lines with quotes": {"organization_id,agent_id,updated_at,name\r1,2,6,\"3\"\r1,2,6,\"4\"\r",
			"", "the header has a carriage return that belongs to no CRLF"},
		"CRLF":                 {"organization_id,agent_id,name,updated_at\r", "1,2,3,6\r", `2 agent "1" "2" "3" - - "6"`},
		"a quote never closed": {"\"organization_id", "", `read the header: parse error on line 1`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := records(stream(CSV, normalize.KindAgent, []byte(c.header+"\n"+c.cells)), Position{})
			if err != nil {
				got = []string{err.Error()}
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, _, err := records(stream(CSV, normalize.KindAgent, nil), Position{}); err == nil ||
		!strings.Contains(err.Error(), "the file is empty") {
		t.Errorf("an empty file: %v", err)
	}
}

const agentHeader = "organization_id,agent_id,name,slug,deleted_at,updated_at\n"

func TestCSVRecords(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no records":         {"", ""},
		"empty cells":        {"o,a,,,,t\n", `2 agent "o" "a" "" - - "t"`},
		"quoted empty cells": {"\"o\",\"a\",\"\",\"\",\"\",\"t\"\n", `2 agent "o" "a" "" - - "t"`},
		"nothing but commas": {",,,,,\n", `2 agent "" "" "" - - ""`},
		"spaces stay":        {" o,a , ,s,d,t\n", `2 agent " o" "a " " " "s" "d" "t"`},
		"quotes and commas":  {"o,a,\"\"\"n\"\", m\",s,d,t\n", `2 agent "o" "a" "\"n\", m" "s" "d" "t"`},
		"line feeds in quotes": {"o,a,\"1\n2\r\n\n4\",,,t\no,b,n,,,t", "2 agent \"o\" \"a\" \"1\\n2\\r\\n\\n4\" - - \"t\"\n" +
			"6 agent \"o\" \"b\" \"n\" - - \"t\""},
		"blank lines": {"\n\r\no,a,n,,,t\n\n\no,b,n,,,t\n\n", "4 agent \"o\" \"a\" \"n\" - - \"t\"\n7 agent " +
			"\"o\" \"b\" \"n\" - - \"t\""},
		"too few cells": {"o,a,n\no,b,n,,,t\n", "2 fault is not valid CSV: wrong number of fields\n3 agent \"o\" " +
			"\"b\" \"n\" - - \"t\""},
		"too many cells": {"o,a,n,,,t,\no,b,n,,,t\n", "2 fault is not valid CSV: wrong number of fields\n3 agent " +
			"\"o\" \"b\" \"n\" - - \"t\""},
		"a bare quote": {"o,a\"a,n,,,t\no,b,n,,,t\n", "2 fault is not valid CSV: bare \" in non-quoted-field\n3 " +
			"agent \"o\" \"b\" \"n\" - - \"t\""},
		"after a quote": {"o,\"a\"a,n,,,t\no,b,n,,,t\n", "2 fault is not valid CSV: extraneous or missing \" in " +
			"quoted-field\n3 agent \"o\" \"b\" \"n\" - - \"t\""},
		"wrong in a later line": {"o,\"a\n\n\"a,n,,,t\no,b,n,,,t\n", "2 fault is not valid CSV: extraneous or missing \" " +
			"in quoted-field\n5 agent \"o\" \"b\" \"n\" - - \"t\""},
		"a quote never closed": {"o,a,n,,,t\no,\"b,n,,,t\no,c,n,,,t\n", "2 agent \"o\" \"a\" \"n\" - - \"t\"\n3 fault is " +
			"not valid CSV: extraneous or missing \" in quoted-field"},
		"a semicolon": {"o;a;n;;;t\n", "2 fault is not valid CSV: wrong number of fields"},
	} {
		t.Run(name, func(t *testing.T) {
			f := stream(CSV, normalize.KindAgent, []byte(agentHeader+c.in))
			got, _ := mustRead(t, f, Position{})
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
			checkResume(t, f)
		})
	}
}

// What was wrong is shown as it was written, without the lines around it, and only in part where it is long.
func TestCSVFaultText(t *testing.T) {
	long := "o,\"" + strings.Repeat("x", 2*maxRejectBytes)
	in := "record," + agentHeader + "agent,o,a,n,,,t\n\n\"run\",o,\"a\nb\",n,,,t\r\n\nagent,b\n\nagent,c\"c\n" + long
	reader, err := stream(CSV, normalize.KindAgent, []byte(in)).From(Position{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "\"run\",o,\"a\nb\",n,,,t", "agent,b", "agent,c\"c", long[:keptBytes]} {
		record, err := reader.Next()
		isWhole := want != "" && len(want) < keptBytes
		if err != nil || (record.Fault != nil) != (want != "") || string(record.Text) != want ||
			(record.CSV != nil) != isWhole {
			t.Errorf("got %.80q, %v, %v; want %.80q", record.Text, record.Fault, err, want)
		}
	}
}

// Quotes distinguish a text from a null that reads the same, wherever the cell is.
func TestCSVNull(t *testing.T) {
	for name, c := range map[string]struct{ null, in, want string }{
		"bare":              {`\N`, `o,a,n,\N,\N,t`, `2 agent "o" "a" "n" - - "t"`},
		"quoted":            {`\N`, `"o","a","\N","\N",\N,"t"`, `2 agent "o" "a" "\\N" "\\N" - "t"`},
		"after line feeds":  {`\N`, "o,\"\n\r\n\",\"\n,\\N\",\\N,\"\\N\",t", `2 agent "o" "\n\r\n" "\n,\\N" - "\\N" "t"`},
		"after blank lines": {`\N`, "\n\no,a,n,\\N,\"\\N\",t", `4 agent "o" "a" "n" - "\\N" "t"`},
		"required":          {`\N`, `\N,a,\N,,,t`, `2 agent - "a" - - - "t"`},
		"another text":      {"NULL", `o,a,NULL,NULL,"NULL",\N`, `2 agent "o" "a" - - "NULL" "\\N"`},
		"letter case":       {"NULL", `o,a,null,,,t`, `2 agent "o" "a" "null" - - "t"`},
		"no text":           {"", `o,a,\N,\N,,t`, `2 agent "o" "a" "\\N" "\\N" - "t"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := stream(CSV, normalize.KindAgent, []byte(agentHeader+c.in+"\n"))
			f.Null = c.null
			if got, _ := mustRead(t, f, Position{}); strings.Join(got, "\n") != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			// The same after a position that is not the beginning.
			f = stream(CSV, normalize.KindAgent, []byte(agentHeader+"o,\"\n\",n,,,t\n"+c.in+"\n"))
			f.Null = c.null
			_, after := mustRead(t, f, Position{})
			got, _ := mustRead(t, f, after[0])
			if _, values, _ := strings.Cut(got[0], " "); !strings.HasSuffix(c.want, " "+values) {
				t.Errorf("after another record: got %s, want %s", got, c.want)
			}
		})
	}
}

func TestCSVDelimiterAndUnknownColumns(t *testing.T) {
	const want = `2 agent "o" "a" "n, m" - - "t"`
	for delimiter, in := range map[rune]string{
		';':  "organization_id;agent_id;name;updated_at\no;a;n, m;t\n",
		'\t': "organization_id\tagent_id\tname\tupdated_at\no\ta\tn, m\tt\n",
		'¦':  "organization_id¦agent_id¦name¦updated_at\no¦a¦\"n, m\"¦t\n",
	} {
		f := stream(CSV, normalize.KindAgent, []byte(in))
		f.Delimiter = delimiter
		if got, _ := mustRead(t, f, Position{}); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %s", delimiter, got)
		}
	}
	f := stream(CSV, normalize.KindAgent, []byte("organization_id;agent_id;name;updated_at\no;a;n;t\n"))
	if _, _, err := records(f, Position{}); err == nil || !strings.Contains(err.Error(), "--delimiter") {
		t.Errorf("another delimiter: %v", err)
	}
	f = stream(CSV, normalize.KindAgent,
		[]byte("colour,organization_id,agent_id,colour,name,updated_at,size\nred,o,a,blue,\"n, m\",t,\nx\n"))
	if _, _, err := records(f, Position{}); err == nil || !strings.Contains(err.Error(), "--ignore-unknown") {
		t.Errorf("an unknown column: %v", err)
	}
	f.IgnoreUnknown = true
	if got, _ := mustRead(t, f, Position{}); len(got) != 2 || got[0] != want || !strings.Contains(got[1], "wrong number") {
		t.Errorf("ignored columns: %q", got)
	}
}

// A quote that is never closed ends a large file; it does not fill the memory with the rest of it.
func TestCSVOpenQuote(t *testing.T) {
	rest := io.LimitReader(endless("all the rest of a large file\n"), 512<<20)
	f := &File{Format: CSV, Kind: normalize.KindAgent, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(agentHeader+"o,a,n,,,t\no,\"b"), rest)), nil
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, _, err := records(f, Position{})
	runtime.ReadMemStats(&after)
	if len(got) != 1 || err == nil || !strings.Contains(err.Error(), "is the quote that opens in line 3 never closed?") {
		t.Errorf("got %q, %v", got, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 100<<20 {
		t.Errorf("%d MB were allocated", grown>>20)
	}
}

// endless repeats a text.
type endless string

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

// Records lie across the borders of all buffers.
func TestCSVLarge(t *testing.T) {
	var in bytes.Buffer
	var want []string
	in.WriteString(agentHeader)
	line := 2
	for i := range 3000 {
		text := strings.Repeat("é\n", i%97)
		fmt.Fprintf(&in, "o%d,a,\"%s\",,,t\n", i, text)
		want = append(want, fmt.Sprintf(`%d agent "o%d" "a" %q - - "t"`, line, i, text))
		line += 1 + i%97
	}
	f := stream(CSV, normalize.KindAgent, in.Bytes())
	got, after := mustRead(t, f, Position{})
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatal("other records than were written")
	}
	for i := 0; i < len(after); i += 271 {
		if tail, _ := mustRead(t, f, after[i]); strings.Join(tail, "\n") != strings.Join(want[i+1:], "\n") {
			t.Fatalf("another tail after record %d", i)
		}
	}
}

func BenchmarkCSV(b *testing.B) {
	var in bytes.Buffer
	in.WriteString(strings.Join(normalize.Fields(normalize.KindRun), ",") + "\n")
	for row := range benchmarkRows {
		for i, field := range normalize.Fields(normalize.KindRun) {
			if i > 0 {
				in.WriteByte(',')
			}
			if text := sample(field, row); text != nil {
				in.Write(text)
			}
		}
		in.WriteByte('\n')
	}
	benchmark(b, onDisk(b, CSV, normalize.KindRun, in.Bytes()))
}

// Whoever searches for an open quote is told where it opens and how much it takes.
func TestCSVQuoteIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		in          string
		line, lines int // of the second record
	}{
		"closed by a later quote": {"o,a,n,,,t\no,\"b,n,,,t\no,c,n,,,t\no,\"d\",n,,,t\no,e,n,,,t\n", 3, 3},
		"never closed":            {"o,a,n,,,t\n\no,\"b,n,,,t\no,c,n,,,t\n", 4, 2},
		"after lines of its own":  {"o,a,n,,,t\no,\"b\nb\",\"n,,,t\no,c,n,,,t\no,d,n\"\"\",,,t\n", 4, 3},
		"a cell of lines":         {"o,a,n,,,t\no,\"b\n\nb\",n,,,t\n", 3, 3},
		"none":                    {"o,a,n,,,t\no,\"b\"b,n,,,t\n", 0, 0},
		// Takes minutes if the search for a line feed begins again at every byte.
		"after a long cell": {"o,a,n,,,t\no," + strings.Repeat("b", maxCSVBytes/2) + ",\"n\nn\",,,t\n", 3, 2},
	} {
		reader, err := stream(CSV, normalize.KindAgent, []byte(agentHeader+c.in)).From(Position{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		record, err := reader.Next()
		if err != nil || record.QuoteLine != c.line || record.QuoteLines != c.lines {
			t.Errorf("%s: line %d, %d lines (%v), want %d and %d",
				name, record.QuoteLine, record.QuoteLines, err, c.line, c.lines)
		}
	}
}
