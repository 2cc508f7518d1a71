package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// agentSpans are what a collector writes of two runs and another span, in one line.
const agentSpans = `{"resourceSpans":[{"scopeSpans":[{"spans":[
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","startTimeUnixNano":"1767607200007000000",
"endTimeUnixNano":"1767607201250999999","status":{},"attributes":[
{"key":"gen_ai.operation.name","value":{"stringValue":"invoke_agent"}},
{"key":"user.id","value":{"stringValue":"ada@x.example"}},
{"key":"gen_ai.agent.id","value":{"stringValue":"00000000-0000-4000-8000-00000000000a"}}]},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b7","startTimeUnixNano":"1767607200000000000",
"endTimeUnixNano":"1767607201000000000","status":{"code":2},"attributes":[
{"key":"gen_ai.operation.name","value":{"stringValue":"invoke_agent"}},
{"key":"gen_ai.agent.id","value":{"stringValue":"00000000-0000-4000-8000-00000000000a"}}]},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b8","startTimeUnixNano":"1","endTimeUnixNano":"2",
"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}]}]}]}`

// runsOfSpans are they as records. 1767607200 is 2026-01-05T10:00:00Z.
const runsOfSpans = `{"record":"run","organization_id":"acme","run_id":"0af76519-16cd-43dd-b7ad-6b7169203331",` +
	`"agent_id":"00000000-0000-4000-8000-00000000000a","status":"COMPLETED","initiator_identifier":"ada@x.example",` +
	`"created_at":"2026-01-05T10:00:00.007Z","updated_at":"2026-01-05T10:00:01.250Z"}
{"record":"run","organization_id":"acme","run_id":"0af76519-16cd-43dd-00f0-67aa0ba902b7",` +
	`"agent_id":"00000000-0000-4000-8000-00000000000a","status":"FAILED","initiator_identifier":null,` +
	`"created_at":"2026-01-05T10:00:00.000Z","updated_at":"2026-01-05T10:00:01.000Z"}
`

// The program of the page on pushing turns spans into runs, which are pushed.
func pushSpans(t *testing.T, base string) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("there is no jq")
	}
	page, err := os.ReadFile("../../ingest/push.md")
	must(t, err)
	program := regexp.MustCompile("(?s)```jq\n(.*?)```").FindSubmatch(page)
	jq := exec.CommandContext(t.Context(), "jq", "-c", "--arg", "org", "acme", string(program[1]))
	jq.Stdin = strings.NewReader(strings.ReplaceAll(agentSpans, "\n", ""))
	got, err := jq.CombinedOutput()
	if err != nil || string(got) != runsOfSpans {
		t.Fatalf("%v:\n%s\nwant\n%s", err, got, runsOfSpans)
	}
	code, out, stderr := command(t, string(got), "push", "--url", base, "-")
	if code != exitDone || !strings.Contains(out, "runs 2") {
		t.Errorf("ended with %d: %s %s", code, out, stderr)
	}
}
