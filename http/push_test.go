package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/olap/olaptest"
)

// runLine is a run of an organization in January 2026, as a line.
func runLine(organization string, n int) string {
	return fmt.Sprintf(`{"record":"run","organization_id":"%s","run_id":"%s","agent_id":"%s","status":"COMPLETED",`+
		`"created_at":"2026-01-05T09:30:00Z","updated_at":"2026-01-05T09:31:00Z"}`+"\n",
		organization, olaptest.ShortID(n), olaptest.ShortID(1))
}

func attributionLine(organization string, n int) string {
	return fmt.Sprintf(`{"record":"attribution","organization_id":"%s","attribution_id":"%s","run_id":"%s",`+
		`"agent_id":"%s","user_identifier":"ada@example.com","activity_type":"initiated","run_initiation_type":"human",`+
		`"source":"web","occurred_at":"2026-01-05T09:30:00Z"}`+"\n",
		organization, olaptest.ShortID(n), olaptest.ShortID(n), olaptest.ShortID(1))
}

// push sends a body of records.
func (s *service) push(key string, body []byte, coding string) answer {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodPost, s.base+recordsPath, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	if coding != "" {
		request.Header.Set("Content-Encoding", coding)
	}
	return s.send(request)
}

func (s *service) pusher(organization string) string {
	return s.key(organization, auth.ScopeIngestWrite)
}

// runs is how many runs an organization has by the API.
func (s *service) runs(organization string) string {
	s.t.Helper()
	a := s.post(s.key(organization, auth.ScopeAnalyticsRead), valid)
	a.want(s.t, 200, "", "")
	_, rest, _ := strings.Cut(string(a.body), `"rows":[[`)
	count, _, _ := strings.Cut(rest, "]")
	return count
}

func packedWith(t testing.TB, coding string, body []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&packed)
	case "zstd":
		encoder, err := zstd.NewWriter(&packed, zstd.WithWindowSize(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		w = encoder
	default:
		return body
	}
	w.Write(body)
	w.Close()
	return packed.Bytes()
}

// What was pushed is in the next answer, however it was packed, and counts once. Bad lines are rejected alone, each
// with its reason; of another organization nothing is stored, and nobody learns whether there is one.
func TestPush(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	key, other := s.pusher("acme"), s.pusher("globex")
	s.push(other, []byte(runLine("globex", 9)), "").want(t, 200, "", "")
	foreign := `"field":"organization_id","error":"is not the organization of the key"}`
	body := runLine("acme", 1) + "\n" + attributionLine("acme", 1) + runLine("globex", 2) + runLine("nowhere", 3) +
		strings.Replace(runLine("acme", 4), "COMPLETED", "ENDED", 1) + "{\n" +
		strings.Replace(runLine("acme", 5), `"organization_id":"acme",`, "", 1) +
		`{"record":"agent","organization_id":"acme","agent_id":"` + olaptest.ShortID(1).String() +
		`","name":"A","updated_at":"2026-01-05T09:30:00Z"}`
	want := `{"lines":8,"stored":3,"rejected":5,"rejects":[{"line":4,` + foreign + `,{"line":5,` + foreign + `,` +
		`{"line":6,"field":"status","error":"must be one of PENDING, RUNNING, WAITING_FOR_SLOT, CANCELLING, ` +
		`AWAITING_REPLY, SLEEPING, PAUSING, PAUSED, COMPLETED, FAILED, CANCELLED"},` +
		`{"line":7,"field":"","error":"is not valid JSON: it ends within a value; a record is one line"},` +
		`{"line":8,"field":"organization_id","error":"is required"}]}`
	for _, coding := range []string{"", "identity", "gzip", "zstd", "GZIP"} {
		a := s.push(key, packedWith(t, strings.ToLower(coding), []byte(body)), coding)
		if a.want(t, 200, "", ""); string(a.body) != want {
			t.Errorf("%q: %s\nwant %s", coding, a.body, want)
		}
		if got := s.runs("acme"); got != "1" {
			t.Errorf("%q: %s runs after the answer", coding, got)
		}
	}
	if acme, globex, nowhere := s.runs("acme"), s.runs("globex"), s.runs("nowhere"); acme != "1" || globex != "1" ||
		nowhere != "0" {
		t.Errorf("%s, %s and %s runs", acme, globex, nowhere)
	}
	var agents, attributions uint64
	if err := store.Conn().QueryRow(t.Context(), "SELECT (SELECT count() FROM agents FINAL), "+
		"(SELECT count() FROM attributions FINAL)").Scan(&agents, &attributions); err != nil {
		t.Fatal(err)
	}
	if agents != 1 || attributions != 1 {
		t.Errorf("%d agents and %d attributions", agents, attributions)
	}
	if !strings.Contains(s.log.String(), `"route":"/api/ingest/v1/records","status":200`) ||
		!strings.Contains(s.log.String(), `"lines":8,"stored":3`) {
		t.Errorf("the log is\n%s", s.log)
	}
}

// Every refusal is a documented one, and nothing of its body is stored.
func TestPushIsRefused(t *testing.T) {
	s := serve(t, nil)
	key := s.pusher("acme")
	line := []byte(runLine("acme", 1))
	gzipped, zstded := packedWith(t, "gzip", line), packedWith(t, "zstd", line)
	for name, c := range map[string]struct {
		key, coding string
		body        []byte
		status      int
		code        string
	}{
		"no key":         {"", "", line, 401, "unauthorized"},
		"a bad key":      {"rl_x", "", line, 401, "unauthorized"},
		"a reader's key": {s.reader(), "", line, 403, "insufficient_scope"},
		"another coding": {key, "br", line, 400, "invalid_body"},
		"two codings":    {key, "gzip, zstd", gzipped, 400, "invalid_body"},
		"plain as gzip":  {key, "gzip", line, 400, "invalid_body"},
		"plain as zstd":  {key, "zstd", line, 400, "invalid_body"},
		"gzip as plain":  {key, "", gzipped, 422, "no_valid_record"},
		"a cut gzip":     {key, "gzip", gzipped[:len(gzipped)-9], 400, "invalid_body"},
		"a cut zstd":     {key, "zstd", zstded[:len(zstded)-5], 400, "invalid_body"},
		"gzip and more":  {key, "gzip", append(bytes.Clone(gzipped), "more"...), 400, "invalid_body"},
		"only bad lines": {key, "", []byte("{}\n[]\n"), 422, "no_valid_record"},
		"no lines":       {key, "", nil, 200, ""},
		"blank lines":    {key, "", []byte("\n \r\n"), 200, ""},
		"a large body":   {key, "", bytes.Repeat([]byte("\n"), push.MaxBytes+1), 413, "body_too_large"},
		"a gzip bomb":    {key, "gzip", packedWith(t, "gzip", make([]byte, 200<<20)), 413, "body_too_large"},
		"a zstd bomb":    {key, "zstd", packedWith(t, "zstd", make([]byte, 200<<20)), 413, "body_too_large"},
		"many lines":     {key, "", bytes.Repeat([]byte("{}\n"), push.MaxLines+1), 413, "body_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			s.push(c.key, c.body, c.coding).want(t, c.status, c.code, "")
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	large := strings.Repeat(runLine("acme", 1), 100)
	for name, rest := range map[string]string{
		"a small body":    fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(line)+1, line),
		"a large body":    fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large)+1, large),
		"between chunks":  fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(large), large),
		"within a chunk":  fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(large)+1, large),
		"before the last": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0", len(large), large),
	} {
		connection, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s", recordsPath, key, rest)
		if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if a, err := io.ReadAll(connection); err != nil || !bytes.Contains(a, []byte(" 400 ")) {
			t.Errorf("cut off, %s: %s, %v", name, a, err)
		}
	}
	if got := s.runs("acme"); got != "0" {
		t.Errorf("%s runs were stored", got)
	}
	// A key that may only push can't ask, and who is refused as largest body has it: exactly the bound is read.
	s.post(key, valid).want(t, 403, "insufficient_scope", "")
	s.push(key, append(bytes.Repeat([]byte("\n"), push.MaxBytes-len(line)), line...), "").want(t, 200, "", "")
	s.push(key, packedWith(t, "zstd", append(bytes.Repeat([]byte("\n"), push.MaxBytes-len(line)), line...)), "zstd").
		want(t, 200, "", "")
	if got := s.runs("acme"); got != "1" {
		t.Errorf("%s runs", got)
	}
	// Of many bad lines the first ones are named.
	a := decode[pushed](t, s.push(key, append(bytes.Repeat([]byte("{}\n"), 2000), line...), "").body)
	if a.Stored != 1 || a.Rejected != 2000 || len(a.Rejects) != push.MaxRejects || a.Rejects[999].Line != 1000 {
		t.Errorf("%d stored, %d rejected, %d named", a.Stored, a.Rejected, len(a.Rejects))
	}
}

type pushed struct {
	Lines, Stored, Rejected int
	Rejects                 []push.Reject
}

// A thousand hostile bodies get documented answers alone (send holds each against the description), and good records
// among them are stored.
func TestHostileBodies(t *testing.T) {
	s := serve(t, nil)
	key := s.pusher("acme")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	wrong := []string{"", "\x00", "\xff\xfe{}", "{", "null", `"` + strings.Repeat("x", 300) + `"`,
		strings.Repeat("[", 5000), strings.Repeat(" ", 70_000), "<script>", "'; DROP TABLE",
		`{"record":"run"}`, `{"record":"agent","record":"run"}`, `{"` + strings.Repeat("é", 200) + `":"1","record":"run"}`,
		`{"record":"run","error":"x"}`, `{"error":"x","record":{"csv":{}}}`,
		`{"record":"run","organization_id":"acme","run_id":"\ud800"}`,
		strings.Replace(runLine("acme", 1), "2026", "9999", 1), runLine("globex", 1), "\xef\xbb\xbf{}"}
	type hostile struct {
		body, sent []byte
		coding     string
		good       bool // has a good line, and was sent as it is
	}
	bodies := make(chan hostile, 1000)
	for n := range cap(bodies) {
		var body bytes.Buffer
		h := hostile{coding: []string{"", "", "gzip", "zstd", "deflate"}[random.IntN(5)]}
		for range random.IntN(4) {
			if random.IntN(6) == 0 {
				body.WriteString(runLine("acme", 1000+n))
				h.good = true
			}
			body.WriteString(wrong[random.IntN(len(wrong))] + "\n")
		}
		h.body, h.sent = body.Bytes(), packedWith(t, h.coding, body.Bytes())
		if random.IntN(3) == 0 && len(h.sent) > 0 {
			h.sent, h.good = bytes.Clone(h.sent), false
			h.sent[random.IntN(len(h.sent))] ^= byte(1 + random.IntN(255))
		}
		bodies <- h
	}
	close(bodies)
	var mu sync.Mutex
	acknowledged, statuses := 0, map[int]int{}
	var pushing sync.WaitGroup
	for range 16 {
		pushing.Go(func() {
			for h := range bodies {
				a := s.push(key, h.sent, h.coding)
				answer := decode[pushed](t, a.body)
				mu.Lock()
				statuses[a.status]++
				if h.good && h.coding != "deflate" {
					acknowledged++
				}
				mu.Unlock()
				if a.status >= 500 || a.status == 401 || h.coding == "deflate" && a.status != 400 ||
					h.good && h.coding != "deflate" && (a.status != 200 || answer.Stored == 0) {
					t.Errorf("seed %d, %q of %q: %d %s", seed, h.coding, h.body, a.status, a.body)
				}
			}
		})
	}
	pushing.Wait()
	// A body in which a byte was changed may be good all the same.
	if got := whole(s.runs("acme")); got < acknowledged || acknowledged == 0 {
		t.Errorf("seed %d: %d runs, of %d bodies that were acknowledged", seed, got, acknowledged)
	}
	if s.runs("globex") != "0" || statuses[200] == 0 || statuses[422] == 0 || statuses[400] == 0 {
		t.Errorf("seed %d: answers %v", seed, statuses)
	}
}

func whole(digits string) (n int) {
	fmt.Sscan(digits, &n)
	return n
}
