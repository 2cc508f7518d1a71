package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A browser shows the documentation that the API's address serves, under its policy, and sends a query to that address
// with a key.
func documentationPages(t *testing.T, o office) {
	t.Parallel()
	_, key := createKey(t, o.flags)
	b := o.browser.another(t)
	for _, page := range []string{"records", "errors#unknown_member", "changelog"} {
		b.do(chromedp.Navigate(o.base + "/docs/" + page))
		b.until(`document.readyState === "complete" && getComputedStyle(document.querySelector("nav")).display === "flex"`)
	}
	b.do(chromedp.Navigate(o.base + "/docs"))
	b.until(`document.querySelectorAll(".opblock").length === 3`)
	// React hears of a value only where it did not set it itself.
	enter := func(field, text string) {
		b.until(`(() => { const e = document.querySelector("` + field + `"); if (!e) return false;
			Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), "value").set.call(e, ` + "`" + text + "`" + `);
			e.dispatchEvent(new Event("input", { bubbles: true })); return true })()`)
	}
	click := func(at string) {
		b.until(`(() => { const e = document.querySelector("` + at + `"); e?.click(); return !!e })()`)
	}
	click(".btn.authorize")
	enter(".auth-container input", key)
	click(".auth-btn-wrapper .authorize")
	click(".btn-done")
	click("#operations-analytics-runQuery .opblock-summary-control")
	click("#operations-analytics-runQuery .try-out__btn")
	enter("#operations-analytics-runQuery textarea.body-param__text", strings.ReplaceAll(totals, "`", ""))
	click("#operations-analytics-runQuery .execute")
	b.until(`document.querySelector(".live-responses-table tbody .response-col_status")?.innerText.startsWith("200")`)
	for at, want := range map[string]string{
		".live-responses-table tbody .response-col_description": `"run_count"`,
		".request-url": o.base + "/api/v1/analytics/query",
	} {
		if got := b.text(`document.querySelector("` + at + `").innerText`); !strings.Contains(got, want) {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
	if got := b.text(`refused.join("; ")`); got != "" {
		t.Error(got)
	}
}
