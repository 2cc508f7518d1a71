package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// An answer is rows of cells in one spelling, whoever gave it: null, a quoted text, or a number.
type answer [][]string

const nullCell = "null"

func numberCell(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// answerOfJSON reads the rows of a response body.
func answerOfJSON(body []byte) (answer, error) {
	var response struct{ Rows [][]any }
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&response); err != nil {
		return nil, err
	}
	rows := make(answer, len(response.Rows))
	for i, row := range response.Rows {
		for _, value := range row {
			rows[i] = append(rows[i], cell(reflect.ValueOf(value)))
		}
	}
	return rows, nil
}

// runNaive runs a naive statement and reads all of its rows.
func runNaive(ctx context.Context, conn driver.Conn, sql string) (answer, error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	types := rows.ColumnTypes()
	targets := make([]any, len(types))
	for i, t := range types {
		targets[i] = reflect.New(t.ScanType()).Interface()
	}
	var all answer
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := make([]string, len(targets))
		for i, target := range targets {
			row[i] = cell(reflect.ValueOf(target).Elem())
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func cell(value reflect.Value) string {
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	switch {
	case !value.IsValid() || value.Kind() == reflect.Pointer:
		return nullCell
	case value.Kind() == reflect.String:
		return strconv.Quote(value.String())
	case value.CanUint():
		return numberCell(float64(value.Uint()))
	case value.CanInt():
		return numberCell(float64(value.Int()))
	case value.CanFloat():
		return numberCell(value.Float())
	}
	if day, ok := reflect.TypeAssert[time.Time](value); ok {
		return strconv.Quote(day.Format(time.DateOnly))
	}
	return fmt.Sprint(value.Interface())
}

// difference describes how an answer departs from the reference's, or is empty.
func (a answer) difference(reference answer) string {
	for i := range min(len(a), len(reference)) {
		if !slices.Equal(a[i], reference[i]) {
			return fmt.Sprintf("row %d is %v, the reference has %v", i, a[i], reference[i])
		}
	}
	if len(a) != len(reference) {
		return fmt.Sprintf("%d rows, the reference has %d", len(a), len(reference))
	}
	return ""
}
