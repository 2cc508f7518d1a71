package output

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

var (
	columns = []report.Column{
		{Name: "day", Kind: report.Date, Member: "day"},
		{Name: "user_identifier", Kind: report.Text, Member: "user_identifier"},
		{Name: "user_name", Kind: report.Text, Member: "user_identifier"},
		{Name: "run_count", Kind: report.Count, Member: "run_count"},
		{Name: "run_success_rate", Kind: report.Number, Member: "run_success_rate"},
		{Name: "run_count_percent", Kind: report.Percent},
	}
	facts = report.Facts{
		QueryID: "q", CatalogVersion: "1.0", AsOf: time.Date(2026, 1, 3, 4, 5, 6, 0, time.UTC),
		Range: client.ResponseRange{Start: "2026-01-01", End: "2026-01-31", Timezone: "UTC"},
	}
)

// row reads a JSON array.
func row(t testing.TB, text string) report.Row {
	t.Helper()
	var r report.Row
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// written is what a format makes of rows.
func written(t testing.TB, format string, o Options, columns []report.Column, rows ...string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := New(format, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Head(columns); err != nil {
		t.Fatal(err)
	}
	for _, text := range rows {
		if err := w.Row(row(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(facts); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var nasty = []string{
	`["2026-01-01","+15550100004","=1+1",9007199254740993,0.5,-12.5]`,
	`["2026-01-02","007","a,b \"c\" | <d>\u001b[31m\n",2,null,null]`,
	`["2026-01-03",null,null,0,0.92653,3]`,
}

func TestTexts(t *testing.T) {
	for name, c := range map[string]struct {
		format string
		o      Options
		want   string
	}{
		"csv": {"csv", Options{}, "day,user_identifier,user_name,run_count,run_success_rate,run_count_percent\n" +
			"2026-01-01,+15550100004,=1+1,9007199254740993,0.5,-12.5\n2026-01-02,007,\"a,b \"\"c\"\" | <d>\x1b[31m\n\",2,,\n" +
			"2026-01-03,,,0,0.92653,3\n"},
		"csv for spreadsheets": {"csv", Options{Spreadsheets: true},
			"\ufeffday,user_identifier,user_name,run_count,run_success_rate,run_count_percent\n" +
				"2026-01-01,\"=\"\"+15550100004\"\"\",\"=\"\"=1+1\"\"\",9007199254740993,0.5,-12.5\n2026-01-02,\"=\"\"007\"\"\"," +
				"\"=\"\"a,b \"\"\"\"c\"\"\"\" |\"\"&\"\" <d>\x1b[31m\n\"\"\",2,,\n2026-01-03,,,0,0.92653,3\n"},
		"ndjson": {"ndjson", Options{}, `{"day":"2026-01-01","user_identifier":"+15550100004","user_name":"=1+1",` +
			`"run_count":9007199254740993,"run_success_rate":0.5,"run_count_percent":-12.5}` + "\n" +
			`{"day":"2026-01-02","user_identifier":"007","user_name":"a,b \"c\" | <d>\u001b[31m\n","run_count":2,` +
			`"run_success_rate":null,"run_count_percent":null}` + "\n" +
			`{"day":"2026-01-03","user_identifier":null,"user_name":null,"run_count":0,"run_success_rate":0.92653,` +
			`"run_count_percent":3}` + "\n"},
		"markdown": {"markdown", Options{},
			`| day | user_identifier | user_name | run_count | run_success_rate | run_count_percent |
| --- | --- | --- | ---: | ---: | ---: |
| 2026-01-01 | +15550100004 | =1+1 | 9007199254740993 | 0.5 | -12.5% |
| 2026-01-02 | 007 | a,b "c" \| &lt;d&gt;\\x1b\[31m\\n | 2 | - | - |
| 2026-01-03 | - | - | 0 | 0.9265 | +3.0% |
`},
		"table": {"table", Options{},
			`DAY         USER_IDENTIFIER  USER_NAME                     RUN_COUNT  RUN_SUCCESS_RATE  RUN_COUNT_PERCENT
2026-01-01  +15550100004     =1+1                   9007199254740993               0.5             -12.5%
2026-01-02  007              a,b "c" | <d>\x1b[31m\n                 2                 -                  -
2026-01-03  -                -                                     0            0.9265              +3.0%
`},
		"vertical": {"table", Options{Vertical: true}, strings.Join([]string{
			"-- row 1", "day                2026-01-01", "user_identifier    +15550100004", "user_name          =1+1",
			"run_count          9007199254740993", "run_success_rate   0.5", "run_count_percent  -12.5%",
			"-- row 2", "day                2026-01-02", "user_identifier    007", `user_name          a,b "c" | <d>\x1b[31m\n`,
			"run_count          2", "run_success_rate   -", "run_count_percent  -",
			"-- row 3", "day                2026-01-03", "user_identifier    -", "user_name          -", "run_count          0",
			"run_success_rate   0.9265", "run_count_percent  +3.0%", "",
		}, "\n")},
	} {
		got := written(t, c.format, c.o, columns, nasty...)
		if name == "table" { // how wide the third column is does not matter here
			got, c.want = strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(c.want), " ")
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// A document has the API's shape, and is read as JSON.
func TestDocument(t *testing.T) {
	for _, rows := range [][]string{nil, nasty} {
		text := written(t, "json", Options{}, columns, rows...)
		var got struct {
			QueryID  string              `json:"queryId"`
			AsOf     string              `json:"asOf"`
			Range    map[string]string   `json:"range"`
			Columns  []map[string]string `json:"columns"`
			Rows     []json.RawMessage   `json:"rows"`
			Cursor   any                 `json:"cursor"`
			Warnings []any               `json:"warnings"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err, text)
		}
		if got.AsOf != "2026-01-03T04:05:06.000Z" || got.Range["end"] != "2026-01-31" || len(got.Rows) != len(rows) ||
			got.Warnings == nil || got.Columns[3]["type"] != "number" {
			t.Errorf("%s", text)
		}
		for i := range rows {
			if string(got.Rows[i]) != rows[i] {
				t.Errorf("row %s, want %s", got.Rows[i], rows[i])
			}
		}
	}
}

// A table fits the terminal by cutting text, never numbers or days; wide characters count twice.
func TestTablesFit(t *testing.T) {
	some := columns[:4]
	long := `["2026-01-01","somebody.with.a.long.name@example.com","漢字漢字漢字漢字漢字漢字",12345678]`
	for _, width := range []int{60, 45, 41} {
		text := written(t, "table", Options{Width: width}, some, long)
		for line := range strings.Lines(text) {
			if w := len([]rune(strings.TrimSuffix(line, "\n"))); w > width {
				t.Errorf("%d columns in a terminal of %d: %s", w, width, line)
			}
		}
		if !strings.Contains(text, "2026-01-01") || !strings.Contains(text, "12345678") || !strings.Contains(text, "…") {
			t.Errorf("%s", text)
		}
	}
	// A comparison has short heads before a name is cut, and not where there is room.
	compared := []report.Column{{Name: "agent_name", Kind: report.Text, Member: "agent_id"},
		{Name: "run_count", Kind: report.Count, Member: "run_count"},
		{Name: "run_count_previous", Kind: report.Count, Member: "run_count"},
		{Name: "run_count_difference", Kind: report.Count}, {Name: "run_count_percent", Kind: report.Percent}}
	const desk = `["The support desk of Gothenburg",94,100,-6,-6]`
	for width, head := range map[int]string{0: "RUN_COUNT_PREVIOUS", 80: "RUN_COUNT  PREV   Δ     Δ%\n"} {
		if text := written(t, "table", Options{Width: width}, compared, desk); !strings.Contains(text, head) ||
			!strings.Contains(text, "Gothenburg  ") {
			t.Errorf("in %d columns:\n%s", width, text)
		}
	}
	var out bytes.Buffer
	narrow := &table{out: &out, width: 20}
	narrow.Head(some)
	narrow.Row(row(t, long))
	if narrow.End(facts) != nil || !narrow.Cut() {
		t.Error("a table that does not fit says so")
	}
	// Rows behind the sample stream; a longer value moves its line only.
	rows := make([]string, sampled+1)
	for i := range rows {
		rows[i] = `["2026-01-01","a","b",1]`
	}
	rows[sampled] = strings.Replace(long, "12345678", "1", 1)
	text := written(t, "table", Options{}, some, rows...)
	if strings.Count(text, "\n") != sampled+2 || !strings.Contains(text, "somebody.with.a.long.name@example.com") {
		t.Error("the last row is not whole")
	}
}

// What excelize, an independent reader, finds in a workbook.
func TestWorkbook(t *testing.T) {
	wide := []string{`["1899-12-31","_x0041_","\u0001 x ",-5,1e-7,0]`, `["1900-03-01","",null,999999999999999,1,2]`}
	file, err := excelize.OpenReader(strings.NewReader(written(t, "xlsx", Options{}, columns, append(nasty, wide...)...)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for cell, want := range map[string]string{
		"A1": "day", "F1": "run_count_percent", "A2": "2026-01-01", "B2": "+15550100004", "C2": "=1+1",
		"D2": "9007199254740993", "E2": "0.5", "F2": "-12.5",
		"B3": "007", "C3": "a,b \"c\" | <d>\x1b[31m\n", "D3": "2", "E3": "", "A4": "2026-01-03", "B4": "", "E4": "0.92653",
		"A5": "1899-12-31", "B5": "_x0041_", "C5": "\x01 x ", "D5": "-5", "A6": "1900-03-01", "D6": "999999999999999",
	} {
		got, err := file.GetCellValue("Rows", cell)
		if err != nil || got != want {
			t.Errorf("%s holds %q, %v, want %q", cell, got, err, want)
		}
	}
	for cell, want := range map[string]excelize.CellType{"B2": excelize.CellTypeInlineString,
		"C2": excelize.CellTypeInlineString, "D2": excelize.CellTypeInlineString, "D3": excelize.CellTypeUnset,
		"A2": excelize.CellTypeUnset} {
		if got, err := file.GetCellType("Rows", cell); err != nil || got != want {
			t.Errorf("%s is of the type %d, %v, want %d", cell, got, err, want)
		}
		if formula, err := file.GetCellFormula("Rows", cell); err != nil || formula != "" {
			t.Errorf("%s has the formula %q, %v", cell, formula, err)
		}
	}
}

// Rows beyond a sheet's capacity are in the next one.
func TestWorkbookOfSeveralSheets(t *testing.T) {
	var out bytes.Buffer
	w := &workbook{out: &out}
	if err := w.Head(columns[3:4]); err != nil {
		t.Fatal(err)
	}
	for n := range sheetRows + 1 {
		if err := w.Row(report.Row{client.Int64Value(int64(n))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(facts); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var second bytes.Buffer
	entry, err := archive.Open("xl/worksheets/sheet2.xml")
	if err != nil {
		t.Fatal(err)
	}
	second.ReadFrom(entry)
	// The first sheet has its head and 1,048,575 rows, 0 to 1,048,574.
	if !strings.Contains(second.String(),
		`<row r="2"><c r="A2"><v>1048575</v></c></row><row r="3"><c r="A3"><v>1048576</v></c></row></sheetData>`) {
		t.Errorf("the second sheet holds %s", second.String())
	}
}

func TestParquet(t *testing.T) {
	text := written(t, "parquet", Options{}, columns, nasty...)
	file, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if asOf, _ := file.Lookup("runlens.as_of"); asOf != "2026-01-03T04:05:06.000Z" {
		t.Errorf("as of %q", asOf)
	}
	type record struct {
		Day     *time.Time `parquet:"day,optional,date"`
		User    *string    `parquet:"user_identifier,optional"`
		Name    *string    `parquet:"user_name,optional"`
		Count   *int64     `parquet:"run_count,optional"`
		Rate    *float64   `parquet:"run_success_rate,optional"`
		Percent *float64   `parquet:"run_count_percent,optional"`
	}
	records, err := parquet.Read[record](strings.NewReader(text), int64(len(text)))
	if err != nil || len(records) != 3 {
		t.Fatal(records, err)
	}
	first, second := records[0], records[1]
	if first.Day.Format(time.DateOnly) != "2026-01-01" || *first.User != "+15550100004" ||
		*first.Count != 9007199254740993 || *first.Rate != 0.5 || second.Rate != nil || records[2].User != nil ||
		*second.Name != "a,b \"c\" | <d>\x1b[31m\n" {
		t.Errorf("%+v %+v", first, second)
	}
	if names := file.Schema().Columns(); names[0][0] != "day" || names[5][0] != "run_count_percent" {
		t.Errorf("columns %v", names)
	}
	var out bytes.Buffer
	w := &parquetFile{out: &out}
	w.Head(columns[3:4])
	if err := w.Row(row(t, `[0.5]`)); err == nil || !strings.Contains(err.Error(), "another format") {
		t.Errorf("half a run: %v", err)
	}
}
