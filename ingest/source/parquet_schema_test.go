package source

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/runlens/runlens/ingest/normalize"
)

func TestParquetUnfitColumns(t *testing.T) {
	for want, change := range map[string]func(parquet.Group){
		`the column "status" is no field of a record of kind ` +
			`agent`: func(g parquet.Group) { g["status"] = parquet.String() },
		`the column "updated_at" is missing, which a record of kind agent ` +
			`needs`: func(g parquet.Group) { delete(g, "updated_at") },
		`the column "name" is nested or repeated; it must hold text ` +
			`(BYTE_ARRAY)`: func(g parquet.Group) { g["name"] = parquet.Repeated(parquet.String()) },
		`the column "slug" is nested or repeated; it must hold text ` +
			`(BYTE_ARRAY)`: func(g parquet.Group) { g["slug"] = parquet.Group{"name": parquet.String()} },
		`the column "name" holds INT64 INT(64,true); it must hold text ` +
			`(BYTE_ARRAY)`: func(g parquet.Group) { g["name"] = parquet.Int(64) },
		`the column "name" holds BYTE_ARRAY JSON; it must hold text ` +
			`(BYTE_ARRAY)`: func(g parquet.Group) { g["name"] = parquet.JSON() },
		`the column "organization_id" holds FIXED_LEN_BYTE_ARRAY(16) UUID; it must hold ` +
			`text`: func(g parquet.Group) { g["organization_id"] = parquet.UUID() },
		`the column "agent_id" holds FIXED_LEN_BYTE_ARRAY(15); it must hold text (BYTE_ARRAY) or ` +
			`UUIDs`: func(g parquet.Group) { g["agent_id"] = parquet.Leaf(parquet.FixedLenByteArrayType(15)) },
		`the column "agent_id" holds FIXED_LEN_BYTE_ARRAY(16) ` +
			`DECIMAL`: func(g parquet.Group) { g["agent_id"] = parquet.Decimal(0, 20, parquet.FixedLenByteArrayType(16)) },
		`the column "agent_id" holds INT64 ` +
			`TIMESTAMP`: func(g parquet.Group) { g["agent_id"] = parquet.Timestamp(parquet.Millisecond) },
		`the column "updated_at" holds INT64 INT(64,true); it must hold text (BYTE_ARRAY) or ` +
			`instants`: func(g parquet.Group) { g["updated_at"] = parquet.Int(64) },
		`the column "updated_at" holds INT32 DATE; it must ` +
			`hold`: func(g parquet.Group) { g["updated_at"] = parquet.Date() },
		`the column "updated_at" holds INT64 TIMESTAMP(isAdjustedToUTC=false,unit=MILLIS); it must hold text (BYTE_ARRAY) ` +
			`or instants (INT96, or TIMESTAMP that is adjusted to UTC`: func(g parquet.Group) {
			g["updated_at"] = parquet.TimestampAdjusted(parquet.Millisecond, false)
		},
	} {
		nodes := smallLayout.nodes(normalize.KindAgent)
		change(nodes)
		for name, node := range nodes {
			if node.Leaf() && !node.Repeated() {
				nodes[name] = parquet.Optional(node)
			}
		}
		l := layout{rows: 1, perGroup: 1} // without rows any type would do
		checkUnfit(t, l.write(t, nodes, func(string, int) []byte { return nil }), want)
	}
	// The library writes no name twice, so one is written over another.
	nodes := smallLayout.nodes(normalize.KindAgent)
	content := layout{}.write(t, nodes, nil)
	checkUnfit(t, bytes.ReplaceAll(content, []byte("slug"), []byte("name")), `the column "name" is there twice`)
}

// Columns that are no field are left out with --ignore-unknown, whatever they contain, and the others keep their
// places.
func TestParquetUnknownColumns(t *testing.T) {
	nodes := smallLayout.nodes(normalize.KindAgent)
	nodes["a_number"] = parquet.Int(64)
	nodes["nested"] = parquet.Group{
		"a": parquet.String(),
		"b": parquet.Group{"c": parquet.Optional(parquet.String()), "d": parquet.String()},
	}
	nodes["z"] = parquet.Repeated(parquet.String())
	l := smallLayout
	content := l.write(t, nodes, func(field string, row int) []byte {
		switch field {
		case "a_number", "z":
			return nil
		case "nested":
			return []byte("no field")
		default:
			return sample(field, row)
		}
	})
	checkUnfit(t, content, `the column "a_number" is no field of a record of kind agent; --ignore-unknown`)
	f := onDisk(t, Parquet, normalize.KindAgent, content)
	f.IgnoreUnknown = true
	if got, _ := mustRead(t, f, Position{}); !slices.Equal(got, l.samples(normalize.KindAgent)) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

// A column of another type is read if it has no values and its field may be null.
func TestParquetNullColumns(t *testing.T) {
	for _, value := range []string{"", "7"} {
		for _, field := range []string{"slug", "deleted_at", "name"} {
			nodes := smallLayout.nodes(normalize.KindAgent)
			nodes[field] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
			l := smallLayout
			l.options = append(l.options[:1:1], parquet.DataPageStatistics(true))
			content := l.write(t, nodes, func(name string, row int) []byte {
				switch {
				case name != field:
					return sample(name, row)
				case value != "" && row == l.rows-1:
					return []byte(value)
				default:
					return nil
				}
			})
			got, _, err := records(onDisk(t, Parquet, normalize.KindAgent, content), Position{})
			if fits := value == "" && field != "name"; fits && (err != nil || len(got) != l.rows) ||
				!fits && (err == nil || !strings.Contains(err.Error(), "holds DOUBLE; it must hold text")) {
				t.Errorf("%s with %q: %d rows, %v", field, value, len(got), err)
			}
		}
	}
}

// A file without rows is read whatever types its columns have: writers that find types by the values, as pandas does,
// have none to go by. Which columns there are still counts.
func TestParquetWithoutRows(t *testing.T) {
	nodes := parquet.Group{}
	for _, field := range normalize.Fields(normalize.KindAgent) {
		nodes[field] = parquet.Optional(parquet.Leaf(parquet.Int32Type))
	}
	content := layout{}.write(t, nodes, nil)
	if got, _, err := records(onDisk(t, Parquet, normalize.KindAgent, content), Position{}); len(got) > 0 || err != nil {
		t.Errorf("%d rows, %v", len(got), err)
	}
	delete(nodes, "updated_at")
	checkUnfit(t, layout{}.write(t, nodes, nil), `the column "updated_at" is missing`)
}

func checkUnfit(t *testing.T, content []byte, want string) {
	t.Helper()
	_, _, err := records(stream(Parquet, normalize.KindAgent, content), Position{})
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParquetRecordColumn(t *testing.T) {
	nodes := smallLayout.nodes(normalize.KindAgent)
	nodes["record"] = parquet.Optional(parquet.String())
	content := smallLayout.write(t, nodes, func(field string, row int) []byte {
		if field == "record" {
			return [][]byte{[]byte("agent"), []byte("run"), nil}[row%3]
		}
		return sample(field, row)
	})
	got, _ := mustRead(t, onDisk(t, Parquet, normalize.KindAgent, content), Position{})
	asCSV, _ := mustRead(t, stream(CSV, normalize.KindAgent, []byte("record,"+agentHeader+"run,,,,,,")), Position{})
	_, fault, _ := strings.Cut(asCSV[0], " ")
	for i, want := range smallLayout.samples(normalize.KindAgent) {
		if i%3 > 0 {
			want = want[:strings.Index(want, " agent")] + " " + fault
		}
		if got[i] != want {
			t.Errorf("got\n%s\nwant\n%s", got[i], want)
		}
	}
}
