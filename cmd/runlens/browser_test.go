package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// browserVariable names a Chromium, where none is on the path.
const browserVariable = "RUNLENS_TEST_BROWSER"

// browserFile is a Chromium to run: the one without windows if there is it, since it takes half the processor time.
// Without any the test is skipped.
func browserFile(t *testing.T) string {
	t.Helper()
	for _, name := range []string{
		os.Getenv(browserVariable), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
	} {
		if file, err := exec.LookPath(name); err == nil && name != "" {
			return file
		}
	}
	t.Skipf("the console is not tested: there is no Chromium on the path, nor named by %s", browserVariable)
	return ""
}

// A tab is a page of a browser. Its methods end the test when something does not happen in time.
type tab struct {
	*testing.T
	ctx context.Context
}

// newBrowser runs a Chromium until the test ends.
func newBrowser(t *testing.T) tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserFile(t)),
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en-US"), chromedp.WindowSize(1280, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := tab{t, ctx}
	b.do() // begins the browser, which lives as long as this context
	return b
}

// another opens a tab of the browser until a test ends.
func (b tab) another(t *testing.T) tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	b = tab{t, ctx}
	b.do(chromedp.EmulateViewport(1280, 900))
	b.ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	// What the page's policy or a script refuses would not be seen otherwise.
	b.do(sent(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		window.refused = [];
		addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective + " " + e.blockedURI));
		addEventListener("error", (e) => refused.push(e.message));`}))
	// Other tabs may be in front of it.
	b.do(sent(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	b.do(sent(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Stockholm"}))
	return b
}

// An action is something that is done to a page.
type action = chromedp.Action[chromedp.Void]

func (b tab) do(actions ...action) {
	b.Helper()
	must(b, chromedp.Do(b.ctx, actions...))
}

// sent is an action that is a command of the browser's protocol.
func sent[P, R any](command cdp.Command[P, R], parameters P) action {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, command, parameters)
		return chromedp.Void{}, err
	}
}

// open shows an address and waits until the page is at rest.
func (b tab) open(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address))
	b.rest()
}

// rest waits until nothing is asked or drawn any longer.
func (b tab) rest() {
	b.Helper()
	b.until(`document.readyState === "complete" && !!document.documentElement.dataset.shown &&
		!document.querySelector("[class*=htmx-], [hx-trigger=load]")`)
}

// until waits for a condition of the page.
func (b tab) until(condition string) {
	b.Helper()
	if harness.Poll(b.Context(), time.Minute, 25*time.Millisecond, func() bool {
		// A page that is just being replaced cannot be asked.
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
		return err == nil && holds
	}) {
		return
	}
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.Fatalf("it never held that %s:\n%s", condition, text)
}

// text is what an expression gives, as text.
func (b tab) text(expression string) string {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	if s, ok := value.(string); ok {
		return s
	}
	j, err := json.Marshal(value)
	must(b, err)
	return string(j)
}

// shows fails unless an element has this text, but for white space.
func (b tab) shows(selector, want string) {
	b.Helper()
	got := b.text(`[...document.querySelectorAll(` + quote(selector) + `)]
		.map((e) => e.innerText ?? e.textContent).join(" | ")`)
	if got = strings.Join(strings.Fields(got), " "); !strings.Contains(got, want) {
		b.Errorf("%s shows %q, want %q", selector, got, want)
	}
}

// rows fails unless the table has exactly these rows, with " | " between the cells.
func (b tab) rows(want ...string) {
	b.Helper()
	got := b.text(`[...document.querySelectorAll("#answer .table tbody tr")].map((r) =>
		[...r.cells].map((c) => c.textContent.trim()).join(" | ")).join("\n")`)
	if got != strings.Join(want, "\n") {
		b.Errorf("the table has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// click presses an element, and waits for what follows from it.
func (b tab) click(selector string) {
	b.Helper()
	b.do(clickOn(selector))
	b.rest()
}

// choose sets a field as a person does, and waits for the answer.
func (b tab) choose(selector, value string) {
	b.Helper()
	if b.text(`(() => { const e = document.querySelector(`+quote(selector)+`); if (!e) return "missing";
		e.value = `+quote(value)+`; const taken = e.value; e.dispatchEvent(new Event("change", {bubbles: true}));
		return taken })()`) != value {
		b.Fatalf("%s does not take %q", selector, value)
	}
	b.rest()
}

// mouse gives events of the mouse over an element, at a part of its width and half of its height.
func (b tab) mouse(selector string) func(kind input.DispatchMouseEventType, part float64, buttons int64) action {
	b.Helper()
	type box struct{ X, Y, Width, Height float64 }
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[box](`(() => {
		const e = document.querySelector(`+quote(selector)+`);
		e.scrollIntoView();
		const r = e.getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width, Height: r.height} })()`))
	must(b, err)
	return func(kind input.DispatchMouseEventType, part float64, buttons int64) action {
		return sent(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.X + at.Width*part,
			Y: at.Y + at.Height/2, Button: "left", Buttons: buttons, ClickCount: buttons})
	}
}

// point moves the mouse over an element.
func (b tab) point(selector string, part float64) {
	b.Helper()
	b.do(b.mouse(selector)("mouseMoved", part, 0))
}

// drag moves the pressed mouse over an element, from and to parts of its width.
func (b tab) drag(selector string, from, to float64) {
	b.Helper()
	mouse := b.mouse(selector)
	b.do(mouse("mouseMoved", from, 1), mouse("mousePressed", from, 1), mouse("mouseMoved", (from+to)/2, 1),
		mouse("mouseMoved", to, 1), mouse("mouseReleased", to, 1))
	b.rest()
}

func quote(text string) string {
	j, _ := json.Marshal(text) // a text
	return string(j)
}

func clickOn(selector string) action {
	return chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
}

func focus(selector string) action { return chromedp.Focus(chromedp.CSS(selector)) }

// typed types into an element; \r is Enter.
func typed(selector, text string) action { return chromedp.SendKeys(chromedp.CSS(selector), text) }

func navigate(address string) action { return chromedp.Navigate(address) }
