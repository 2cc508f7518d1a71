package output

import (
	"archive/zip"
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

const (
	// exactDigits is how large a whole number may be for a spreadsheet to keep all of its digits, inclusive.
	exactDigits = 999_999_999_999_999
	// sheetRows is a sheet's capacity, with its head.
	sheetRows = 1 << 20
)

// A workbook is an Excel file (ECMA-376). Text is text, never a formula; days are dates; a number of more than 15
// digits is text. Rows beyond a sheet's capacity go on in another sheet. Every row is compressed as it comes: the
// stream writer of excelize would hold 16 MiB of them, and all where it finds no place for temporary files.
type workbook struct {
	out     io.Writer
	zip     *zip.Writer
	sheet   *bufio.Writer
	columns []report.Column
	letters []string // of the columns
	sheets  int
	rows    int // of the sheet, with its head
}

func (w *workbook) Head(columns []report.Column) error {
	w.columns, w.zip = columns, zip.NewWriter(w.out)
	for i := range columns {
		letter := string(rune('A' + i%26))
		if i >= 26 { // a query has far fewer than 702 columns
			letter = string(rune('A'+i/26-1)) + letter
		}
		w.letters = append(w.letters, letter)
	}
	return w.begin()
}

// begin starts the next sheet.
func (w *workbook) begin() error {
	w.sheets++
	entry, err := w.zip.Create(fmt.Sprintf("xl/worksheets/sheet%d.xml", w.sheets))
	if err != nil {
		return err
	}
	w.sheet, w.rows = bufio.NewWriter(entry), 1
	w.sheet.WriteString(xmlHead + `<worksheet xmlns="` + mainNamespace + `"><sheetViews><sheetView workbookViewId="0">` +
		`<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>`)
	for i, c := range w.columns {
		fmt.Fprintf(w.sheet, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, i+1, i+1, max(len(c.Name)+2, 12))
	}
	w.sheet.WriteString(`</cols><sheetData><row r="1">`)
	for i, c := range w.columns {
		w.text(i, c.Name, styleHead)
	}
	_, err = w.sheet.WriteString(`</row>`)
	return err
}

func (w *workbook) Row(row report.Row) error {
	if w.rows == sheetRows {
		if err := w.endSheet(); err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.rows++
	fmt.Fprintf(w.sheet, `<row r="%d">`, w.rows)
	for i, v := range row {
		w.cell(i, v)
	}
	_, err := w.sheet.WriteString(`</row>`)
	return err
}

// cell writes a value into a column of the row.
func (w *workbook) cell(i int, v client.Value) {
	if v.IsNull() {
		return
	}
	if n, ok := v.Int64(); v.IsNumber() && (!ok || n <= exactDigits && n >= -exactDigits) {
		fmt.Fprintf(w.sheet, `<c r="%s%d"><v>%s</v></c>`, w.letters[i], w.rows, v)
		return
	}
	day, err := time.Parse(time.DateOnly, v.String())
	if w.columns[i].Kind == report.Date && err == nil && !day.Before(firstMarch1900) {
		days := int(day.Sub(firstMarch1900)/(24*time.Hour)) + 61
		fmt.Fprintf(w.sheet, `<c r="%s%d" s="%d"><v>%d</v></c>`, w.letters[i], w.rows, styleDate, days)
		return
	}
	w.text(i, v.String(), styleText)
}

// firstMarch1900 is day 61 of Excel's calendar, which has a 29th of February before it.
var firstMarch1900 = time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC)

func (w *workbook) text(i int, text string, style int) {
	fmt.Fprintf(w.sheet, `<c r="%s%d" s="%d" t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, w.letters[i],
		w.rows, style, escaped(text))
}

var (
	xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	// notInXML is what XML cannot hold.
	notInXML = regexp.MustCompile(`[\x00-\x08\x0B-\x1F\x{FFFE}\x{FFFF}]`)
	// likeEscape is what begins as the escape of a character does. Its end is not looked at: the next one, or an escape of
	// ours, may follow, and a reader takes the first that it finds.
	likeEscape = regexp.MustCompile(`_(x[0-9A-Fa-f]{4})`)
)

// escaped is text of a cell; what XML cannot hold is written as ECMA-376 (ST_Xstring) has it, such as _x001B_.
func escaped(text string) string {
	text = likeEscape.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "_x005F_$1")
	return xmlEscapes.Replace(notInXML.ReplaceAllStringFunc(text, func(found string) string {
		return fmt.Sprintf("_x%04X_", []rune(found)[0])
	}))
}

func (w *workbook) endSheet() error {
	w.sheet.WriteString(`</sheetData></worksheet>`)
	return w.sheet.Flush()
}

func (w *workbook) End(report.Facts) error {
	if err := w.endSheet(); err != nil {
		return err
	}
	var sheets, relations, types strings.Builder
	for n := 1; n <= w.sheets; n++ {
		name := "Rows"
		if n > 1 {
			name += " " + strconv.Itoa(n)
		}
		fmt.Fprintf(&sheets, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, name, n, n)
		fmt.Fprintf(&relations, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, n,
			relationNamespace, n)
		fmt.Fprintf(&types, `<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%s.worksheet+xml"/>`, n,
			contentType)
	}
	for _, part := range []struct{ name, content string }{
		{"xl/styles.xml", stylesPart},
		{"xl/workbook.xml", fmt.Sprintf(workbookPart, sheets.String())},
		{"xl/_rels/workbook.xml.rels", fmt.Sprintf(workbookRelations, relations.String())},
		{"_rels/.rels", rootRelations},
		{"[Content_Types].xml", fmt.Sprintf(contentTypes, types.String())},
	} {
		entry, err := w.zip.Create(part.name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(entry, xmlHead+part.content); err != nil {
			return err
		}
	}
	return w.zip.Close()
}
