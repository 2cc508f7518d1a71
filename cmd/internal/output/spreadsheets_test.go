package output

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/runlens/runlens/http/client/report"
)

// hostileTexts become formulas where a spreadsheet separates by something else than commas.
var hostileTexts = []string{
	"x;=1+1", "x\t=1+1", "x\n=1+1", "x\r\n@SUM(A1)", "x;\t;=cmd|' /C calc'!A0", "x\";=1+1;\"",
	"\";=1+1", "\"\";\"=1+1",
	"=1+1", "x|-2+3", "a;b", "\"\n=1+1\n\"", "x,=1+1", "x\",=1+1", "＝1+1", "plain", "HYPERLINK(A1)", ";", "=",
	"\"", "\"\"",
	"x;" + strings.Repeat("=1;", 160), strings.Repeat("\"=", 240),
}

// Whatever a spreadsheet separates by, no cell is a formula but of literals, and with commas each text is itself.
func TestNoTextIsAFormula(t *testing.T) {
	some := []report.Column{
		{Name: "day", Kind: report.Date}, {Name: "=1+1", Kind: report.Text}, {Name: "user_name", Kind: report.Text},
		{Name: "run_count", Kind: report.Count},
	}
	quoted := func(text string) string {
		j, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(j)
	}
	var rows []string
	var want [][2]string
	for _, first := range hostileTexts {
		for _, second := range hostileTexts {
			rows = append(rows, `["2026-01-01",`+quoted(first)+`,`+quoted(second)+`,5]`)
			want = append(want, [2]string{first, second})
		}
	}
	for name, columns := range map[string][]report.Column{"day first": some, "text first": some[1:]} {
		given := make([]string, len(rows))
		for i, row := range rows {
			if given[i] = row; name == "text first" {
				given[i] = "[" + strings.TrimPrefix(row, `["2026-01-01",`)
			}
		}
		text := strings.TrimPrefix(written(t, "csv", Options{Spreadsheets: true}, columns, given...), "\ufeff")
		reader := csv.NewReader(strings.NewReader(text))
		records, err := reader.ReadAll()
		if err != nil || len(records) != len(rows)+1 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		for i, record := range records[1:] {
			for n, field := range record[len(record)-3 : len(record)-1] {
				if got := computed(t, field); got != want[i][n] {
					t.Fatalf("%s: %q is shown as %q, want %q", name, field, got, want[i][n])
				}
			}
		}
		for _, separator := range ";\t|" { // these break the quotation of cells
			pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\r\n", r) || r == separator })
			for _, cell := range append(pieces, cellsOf(text, byte(separator))...) {
				if !harmless(cell) {
					t.Fatalf("%s, separated by %q: a cell is %.300q", name, separator, cell)
				}
			}
		}
	}
}

// cellsOf reads CSV as spreadsheets do: what follows the end of a quotation belongs to the cell, as it is.
func cellsOf(text string, separator byte) (cells []string) {
	var cell strings.Builder
	for i := 0; i < len(text); i++ {
		if cell.Len() == 0 && text[i] == '"' {
			for i++; i < len(text); i++ {
				if text[i] == '"' {
					if i+1 == len(text) || text[i+1] != '"' {
						break
					}
					i++
				}
				cell.WriteByte(text[i])
			}
			continue
		}
		if text[i] == separator || text[i] == '\r' || text[i] == '\n' {
			cells = append(cells, cell.String())
			cell.Reset()
			continue
		}
		cell.WriteByte(text[i])
	}
	return append(cells, cell.String())
}

var literal = regexp.MustCompile(`"(?:[^"]|"")*"`)

// computed is what a spreadsheet shows of a cell: the text, or the result of a formula of literals.
func computed(t *testing.T, field string) (shown string) {
	if !strings.HasPrefix(field, "=") {
		return field
	}
	for _, one := range literal.FindAllString(field, -1) {
		one = strings.ReplaceAll(one[1:len(one)-1], `""`, `"`)
		if shown += one; len([]rune(one)) > 255 {
			t.Errorf("a literal has %d characters", len([]rune(one)))
		}
	}
	if rest := literal.ReplaceAllString(field, ""); strings.Trim(rest, "=&") != "" {
		t.Errorf("%q is no formula of literals: %q", field, rest)
	}
	return shown
}

// harmless is a cell that no spreadsheet computes, a number, or a formula of literals.
func harmless(cell string) bool {
	cell = strings.TrimLeft(cell, " \t\r\n")
	if cell == "" || !strings.Contains("=+-@＝", cell[:1]) && !strings.HasPrefix(cell, "＝") {
		return true
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return true
	}
	rest := literal.ReplaceAllString(cell, "")
	if at := strings.IndexByte(rest, '"'); at >= 0 { // a literal without an end is a mistake, which is text
		rest = rest[:at]
	}
	return strings.Trim(rest, "=&,0123456789\n") == ""
}

// unescaped reads text as ECMA-376 describes ST_Xstring: from left to right, each _xHHHH_ is a character.
func unescaped(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		if len(text) >= 7 && text[:2] == "_x" && text[6] == '_' {
			if n, err := strconv.ParseUint(text[2:6], 16, 16); err == nil {
				b.WriteRune(rune(n))
				text = text[7:]
				continue
			}
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String()
}

// Every text of a workbook is read as it was, also one that looks like escapes.
func TestWorkbookTextsAreExact(t *testing.T) {
	texts := []string{
		"_x0041_x0042_", "_x0041_x0041_x0041_", "__x0041_", "_x0041\x01", "_x005F_x0041_", "_x005f_", "_x00_x0041_",
		"\x01x0041_", "_x0041_\x02_x0041_", "a\rb\r\nc\td", "_X0041_", "_x004G_", "\ufffe\uffff", "_x0041", "_",
	}
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"_", "x", "0041", "005F", "_x", "\x01", "00", "é", "&", "<", "\r", " "}
	for range 3000 {
		var text string
		for range 1 + random.IntN(9) {
			text += pieces[random.IntN(len(pieces))]
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		var read string
		if err := xml.Unmarshal([]byte("<t>"+escaped(text)+"</t>"), &read); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := unescaped(read); got != text {
			t.Fatalf("%q is written as %q and read as %q", text, escaped(text), got)
		}
	}
	var rows []string
	for _, text := range texts[:15] {
		j, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, "["+string(j)+"]")
	}
	file, err := excelize.OpenReader(strings.NewReader(written(t, "xlsx", Options{}, columns[1:2], rows...)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for i, text := range texts[:15] {
		if got, err := file.GetCellValue("Rows", fmt.Sprintf("A%d", i+2)); err != nil || got != text {
			t.Errorf("excelize reads %q as %q, %v", text, got, err)
		}
	}
}
