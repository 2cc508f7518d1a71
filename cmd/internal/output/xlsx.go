package output

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/runlens/runlens/cmd/internal/report"
	"github.com/runlens/runlens/http/client"
)

// exactDigits is how large a whole number may be for a spreadsheet to keep all of its digits, inclusive.
const exactDigits = 999_999_999_999_999

// A workbook is an Excel file. Text is text, never a formula; days are dates; a number of more than 15 digits is text.
// Rows beyond a sheet's capacity go on in another sheet. Rows wait in a temporary file, not in memory.
type workbook struct {
	out     io.Writer
	file    *excelize.File
	sheet   *excelize.StreamWriter
	columns []report.Column
	sheets  int
	rows    int // of the sheet, with its head
	// Styles of cells.
	head, text, date int
}

func (w *workbook) Head(columns []report.Column) (err error) {
	w.columns, w.file = columns, excelize.NewFile()
	day := "yyyy-mm-dd"
	for style, as := range map[*int]*excelize.Style{
		&w.head: {Font: &excelize.Font{Bold: true}},
		&w.text: {NumFmt: 49}, // "@": also what is typed into the cell later is text
		&w.date: {CustomNumFmt: &day},
	} {
		if *style, err = w.file.NewStyle(as); err != nil {
			return err
		}
	}
	return w.begin()
}

// begin starts the next sheet.
func (w *workbook) begin() (err error) {
	w.sheets++
	name := "Rows"
	if w.sheets == 1 {
		err = w.file.SetSheetName("Sheet1", name)
	} else {
		name = fmt.Sprintf("Rows %d", w.sheets)
		_, err = w.file.NewSheet(name)
	}
	if err != nil {
		return err
	}
	if w.sheet, err = w.file.NewStreamWriter(name); err != nil {
		return err
	}
	cells := make([]any, len(w.columns))
	for i, c := range w.columns {
		cells[i] = excelize.Cell{StyleID: w.head, Value: c.Name}
		if err := w.sheet.SetColWidth(i+1, i+1, float64(max(len(c.Name)+2, 12))); err != nil {
			return err
		}
	}
	if err := w.sheet.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	w.rows = 1
	return w.sheet.SetRow("A1", cells)
}

func (w *workbook) Row(row report.Row) error {
	if w.rows == excelize.TotalRows {
		if err := w.sheet.Flush(); err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.rows++
	cells := make([]any, len(row))
	for i, v := range row {
		cells[i] = w.cell(w.columns[i], v)
	}
	return w.sheet.SetRow(fmt.Sprintf("A%d", w.rows), cells)
}

func (w *workbook) cell(c report.Column, v client.Value) any {
	switch {
	case v.IsNull():
		return nil
	case c.Kind == report.Date:
		day, err := time.Parse(time.DateOnly, v.String())
		if err == nil && day.Year() >= 1900 { // as Excel's calendar begins
			return excelize.Cell{StyleID: w.date, Value: day}
		}
	case v.IsNumber():
		if n, ok := v.Int64(); ok && n <= exactDigits && n >= -exactDigits {
			return n
		} else if f, isFloat := v.Float64(); !ok && isFloat {
			return f
		}
	}
	return excelize.Cell{StyleID: w.text, Value: v.String()}
}

func (w *workbook) End(report.Facts) error {
	err := w.sheet.Flush()
	if err == nil {
		err = w.file.Write(w.out)
	}
	return errors.Join(err, w.file.Close())
}
