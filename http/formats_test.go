package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/olaptest"
)

// people have names that formats must escape, in the order of the identifiers. A nil is null.
var people = []struct {
	identifier string
	name       *string
}{
	{"a@x", new(`say "hello", twice`)}, {"b@x", new("two\nlines\r\nand\ra tab\t")}, {"c@x", new(" =1+1 ")},
	{"d@x", new("")}, {"e@x", nil}, {"f@x", new(`\N`)}, {"g@x", new("Åsa 名前 🙂\u2028\u0001")}, {"h@x", new(`null`)},
}

// serveFormats serves one run of each of the people, the run of the first one failed, and the others are queued.
func serveFormats(t *testing.T) (*service, *clickhouse.Server) {
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("a secret of tests"))
	engine.CacheAnswers(1 << 20)
	s := serveOn(t, store, func(c *httpapi.Config) { c.Engine = engine })
	at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	var records olaptest.Records
	for i, p := range people {
		status := "PENDING"
		if i == 0 {
			status = "FAILED"
		}
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ShortID(i + 1), CreatedAt: at,
			UpdatedAt: at, Kind: "agent", Status: status, Identifier: &p.identifier, Name: p.name})
	}
	olaptest.Load(t, store.Conn(), records)
	return s, store
}

// question asks for three people a page.
const question = `{"model":"agent_runs","metrics":["run_count","run_success_rate"],"dimensions":["user_identifier",` +
	`"day"],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"Europe/Stockholm"},"limit":3`

// A page in JSON, and what headers must have of it.
type jsonPage struct {
	CatalogVersion, AsOf string
	Range                struct{ StartUTC, EndUTC string }
	Rows                 [][]any
	Cursor               *string
}

// Over all pages each format has the rows that JSON has, as other programs read them, and headers have the rest.
func TestFormats(t *testing.T) {
	s, store := serveFormats(t)
	key := s.reader()
	cursor, rows := "", 0
	for page := 0; ; page++ {
		body := question + "}"
		if cursor != "" {
			body = question + fmt.Sprintf(`,"cursor":%q}`, cursor)
		}
		want := decode[jsonPage](t, s.post(key, body).body)
		for i, row := range want.Rows {
			p, rate := people[rows+i], any(nil)
			if rows+i == 0 {
				rate = 0.0
			}
			var name any
			if p.name != nil {
				name = *p.name
			}
			if hand := []any{p.identifier, name, "2026-01-05", 1.0, rate}; !reflect.DeepEqual(row, hand) {
				t.Fatalf("row %d is %q, want %q", rows+i, row, hand)
			}
		}
		rows += len(want.Rows)
		csv := s.post(key, body, "Accept", "text/csv")
		checkFacts(t, csv, "text/csv; charset=utf-8; header=present", want)
		// Python does not tell null from an empty text; ClickHouse does.
		text := make([][]any, len(want.Rows))
		for i, row := range want.Rows {
			for _, value := range row {
				if value == nil {
					value = ""
				}
				text[i] = append(text[i], fmt.Sprint(value))
			}
		}
		if got := readByPython(t, csv.body); !reflect.DeepEqual(got, text) {
			t.Errorf("page %d: Python reads %q, want %q", page, got, text)
		}
		if got := readByClickHouse(t, store, "CSVWithNames", csv.body); !reflect.DeepEqual(got, want.Rows) {
			t.Errorf("page %d: ClickHouse reads %q, want %q", page, got, want.Rows)
		}
		lines := s.post(key, body, "Accept", "application/x-ndjson")
		checkFacts(t, lines, "application/x-ndjson", want)
		if got := readByClickHouse(t, store, "JSONEachRow", lines.body); !reflect.DeepEqual(got, want.Rows) {
			t.Errorf("page %d: ClickHouse reads %q, want %q", page, got, want.Rows)
		}
		arrow := s.post(key, body, "Accept", "application/vnd.apache.arrow.stream")
		checkFacts(t, arrow, "application/vnd.apache.arrow.stream", want)
		if got := readByClickHouse(t, store, "ArrowStream", arrow.body); !reflect.DeepEqual(got, want.Rows) {
			t.Errorf("page %d: ClickHouse reads %q, want %q", page, got, want.Rows)
		}
		for scanner, i := bufio.NewScanner(bytes.NewReader(lines.body)), 0; scanner.Scan(); i++ {
			row := decode[map[string]any](t, scanner.Bytes())
			for n, name := range []string{"user_identifier", "user_name", "day", "run_count", "run_success_rate"} {
				if value, there := row[name]; !there || !reflect.DeepEqual(value, want.Rows[i][n]) {
					t.Errorf("page %d: %s of %q is not %q", page, name, row, want.Rows[i][n])
				}
			}
		}
		if want.Cursor == nil {
			break
		}
		cursor = *want.Cursor
	}
	// What Arrow says of its types is read from the stream, which has no rows here.
	const nobody = `,"filters":[{"member":"user_identifier","op":"eq","value":"nobody@x.example"}]}`
	empty := s.post(key, question+nobody, "Accept", "application/vnd.apache.arrow.stream").body
	if got := readByClickHouse(t, store, "ArrowStream", empty); len(got) > 0 {
		t.Errorf("no rows are read as %q", got)
	}
	var types string
	err := store.Conn().QueryRow(t.Context(), fmt.Sprintf("SELECT toTypeName(tuple(*)) FROM (SELECT * FROM "+
		"format(ArrowStream, unhex('%x')) UNION ALL SELECT NULL, NULL, NULL, NULL, NULL)", empty)).Scan(&types)
	if err != nil {
		t.Fatal(err)
	}
	if types != "Tuple(Nullable(String), Nullable(String), Nullable(Date32), Nullable(Int64), Nullable(Float64))" {
		t.Errorf("Arrow has the types %s", types)
	}
	if rows != len(people) {
		t.Errorf("%d rows of %d", rows, len(people))
	}
	// What was asked in one format is answered from the cache in another.
	if log := s.log.String(); !strings.Contains(log, `"reads":"cached_answer"`) {
		t.Errorf("nothing was answered from the cache:\n%s", log)
	}
}

// checkFacts checks the headers of an answer in a format without them.
func checkFacts(t *testing.T, a answer, contentType string, want jsonPage) {
	t.Helper()
	cursor := ""
	if want.Cursor != nil {
		cursor = *want.Cursor
	}
	for name, value := range map[string]string{
		"Content-Type": contentType, "Vary": "Accept, Accept-Encoding",
		"X-Runlens-Catalog-Version": want.CatalogVersion,
		"X-Runlens-Range-Utc":       want.Range.StartUTC + "/" + want.Range.EndUTC,
		"X-Runlens-Columns": "user_identifier;type=string;member=user_identifier, user_name;type=string;" +
			"member=user_identifier, day;type=date;member=day, run_count;type=number;member=run_count, " +
			"run_success_rate;type=number;member=run_success_rate",
		"X-Runlens-Warnings": "run_success_rate;code=non_additive_metric",
	} {
		if got := a.header.Get(name); got != value {
			t.Errorf("%s: %s is %q, want %q", contentType, name, got, value)
		}
	}
	// A cached answer of a single page has the asOf of now, and so would its cursor.
	if got := a.header.Get("X-Runlens-Cursor"); (got == "") != (cursor == "") {
		t.Errorf("%s: the cursor is %q, want %q", contentType, got, cursor)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", a.header.Get("X-Runlens-As-Of")); err != nil ||
		len(a.header.Get("X-Runlens-Query-Id")) != 36 {
		t.Errorf("%s: %v", contentType, a.header)
	}
}

// readByPython reads CSV with Python's reader, which must not find anything wrong.
func readByPython(t *testing.T, content []byte) (rows [][]any) {
	t.Helper()
	const program = "import csv,io,json,sys\n" +
		"print(json.dumps(list(csv.reader(io.StringIO(sys.stdin.buffer.read().decode(),newline=''),strict=True))[1:]))"
	python := exec.Command("python3", "-c", program)
	python.Stdin = bytes.NewReader(content)
	out, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	return decode[[][]any](t, out)
}

// readByClickHouse reads a format with the engine.
func readByClickHouse(t *testing.T, store *clickhouse.Server, format string, content []byte) (rows [][]any) {
	t.Helper()
	const structure = "user_identifier Nullable(String), user_name Nullable(String), day Nullable(Date), " +
		"run_count Nullable(UInt64), run_success_rate Nullable(Float64)"
	var text string
	err := store.Conn().QueryRow(t.Context(), fmt.Sprintf(
		"SELECT '[' || arrayStringConcat(groupArray(toJSONString(tuple(*))), ',') || ']' FROM format(%s, '%s', unhex('%x'))",
		format, structure, content)).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// RFC 9110, section 12.5.1: the format is the one that the client likes best, and JSON where it does not care or likes
// none of them. Errors are JSON.
func TestFormatsAreNegotiated(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	const asJSON, asCSV, asLines = "application/json", "text/csv; charset=utf-8; header=present", "application/x-ndjson"
	const asArrow = "application/vnd.apache.arrow.stream"
	for accept, want := range map[string]string{
		"": asJSON, "*/*": asJSON, "application/*": asJSON, "application/json": asJSON, "image/png": asJSON, ",;": asJSON,
		"application/json, text/plain, */*": asJSON, "text/html,application/xml;q=0.9,*/*;q=0.8": asJSON,
		"text/csv;q=0": asJSON, "*/*;q=0": asJSON, "text/csv;q=0.5, application/json": asJSON, "text/csv;q=2": asJSON,
		"text/csv;q=NaN": asJSON, "application/vnd.apache.arrow.file": asJSON, asArrow: asArrow,
		asArrow + ", text/csv;q=0.9": asArrow, asArrow + ";q=0.1, text/*": asCSV,
		"text/csv": asCSV, "Text/CSV": asCSV, "text/*": asCSV, "text/csv; charset=utf-8": asCSV, "text/csv, */*;q=0.1": asCSV,
		"text/csv, */*": asCSV, "application/json;q=0.4, text/csv;q=0.5": asCSV, "application/json;q=0, text/*": asCSV,
		"text/csv;q=0.9, text/*;q=0.1, application/json;q=0.5": asCSV, "bad/;/, text/csv": asCSV,
		"application/x-ndjson": asLines, "application/x-ndjson, text/csv;q=0.9": asLines,
		"application/json;q=0, application/*": asLines, "text/csv;q=0.1, application/x-ndjson;q=0.2": asLines,
	} {
		a := s.post(key, valid, "Accept", accept)
		if got := a.header.Get("Content-Type"); got != want || a.status != 200 {
			t.Errorf("%q gets %d %q, want %q", accept, a.status, got, want)
		}
	}
	two, _, _ := s.exchange(http.MethodPost, queryPath, key, valid, "Accept: image/png", "Accept: text/csv")
	if got := two.Header.Get("Content-Type"); got != asCSV {
		t.Errorf("two fields get %q", got)
	}
	a := s.post(key, `[]`, "Accept", "text/csv")
	if a.want(t, 400, "invalid_query", ""); a.header.Get("Content-Type") != asJSON {
		t.Errorf("an error is %s", a.header.Get("Content-Type"))
	}
	// A row of null alone is no empty line.
	rate := strings.Replace(valid, "run_count", "run_success_rate", 1)
	if got := string(s.post(key, rate, "Accept", "text/csv").body); got != "\"run_success_rate\"\r\n\"\"\r\n" {
		t.Errorf("null alone is %q", got)
	}
}
