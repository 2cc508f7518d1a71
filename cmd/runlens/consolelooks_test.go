package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/olap/olaptest"
)

var updateLooks = flag.Bool("update-looks", false, "write the pictures of the console instead of comparing with them")

const (
	// aBlock by aBlock pixels of a screenshot are one of the picture that is kept.
	aBlock = 4
	// Pixels of the pictures may differ by unlike, of 255, and unlikeShare of them by more: fonts and lines are drawn a
	// little differently by other versions of a browser.
	unlike      = 32
	unlikeShare = 0.01
)

// The main pages look as they did, in light and dark, on a phone and on paper, and people with assistive technology can
// use them.
func consoleLooks(t *testing.T, o office) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "people.yaml")
	content := "title: People\nlast: 15d\npanels:\n- question: {metrics: [run_count], dimensions: [day]}\n" +
		"- question: {metrics: [run_count, run_success_rate], dimensions: [user_identifier], compare: previous}\n"
	must(t, os.WriteFile(file, []byte(content), 0o600))
	d := o.console(t, "looks", console.Config{Dashboards: []string{file},
		Admin: []console.Admin{{Address: strings.TrimPrefix(o.admin, "http://"), Token: adminToken(t, o.flags)}}})
	const lines = "/explore?model=agent_runs&metrics=run_count&metrics=unique_initiator_count&dimensions=user_identifier" +
		"&dimensions=day&last=15d&compare=previous"
	const bars = "/explore?model=agent_runs&metrics=run_success_rate&dimensions=user_identifier&filter=agent_id%3Dbilling"
	type look struct {
		name, path, scheme string
		width              int64
	}
	for _, look := range olaptest.Some(2, []look{
		{"light", lines, "light", 1280}, {"dark", bars, "dark", 1280}, {"phone", lines, "light", 390},
		{"dashboard", "/dashboard?file=" + file, "light", 1280}, {"print", lines, "light", 800},
		{"", "/operator", "dark", 1280},
		{"", "/explore?metrics=x", "light", 390},
	}...) {
		d.do(chromedp.EmulateViewport(look.width, 800), sent(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media:    map[bool]string{true: "print"}[look.name == "print"],
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}}))
		d.do(navigate(d.base + look.path))
		d.until(`!document.querySelector("[hx-trigger^=load]:not(:has(.asof))")`)
		d.rest()
		d.accessible(look.path)
		if look.name != "" {
			d.looksAs(look.name)
		}
	}
}

// accessible fails if axe-core finds something serious.
func (d *deskConsole) accessible(page string) {
	d.Helper()
	if refused := d.text(`refused.join("; ")`); refused != "" {
		d.Errorf("%s: %s", page, refused)
	}
	axe, err := os.ReadFile("../../deploy/console/node_modules/axe-core/axe.min.js")
	if err != nil {
		d.Fatalf("%v (are the packages of `make console` there?)", err)
	}
	d.text("{" + string(axe) + "}; 0")
	found, err := chromedp.Run(d.ctx, chromedp.Evaluate[string](`
		axe.run({resultTypes: ["violations"], preload: false}).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id + ": " +
		v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n")).join("\n\n"))`, chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		d.Errorf("%s: %v\n%s", page, err, found)
	}
}

// looksAs compares the window with a picture that is kept.
func (d *deskConsole) looksAs(name string) {
	d.Helper()
	// The time of an answer is another one every time.
	d.text(`document.querySelectorAll(".asof").forEach((e) => { e.style.visibility = "hidden" }); scrollTo(0, 0)`)
	shot, err := chromedp.Run(d.ctx, chromedp.CaptureScreenshot())
	must(d, err)
	full, err := png.Decode(bytes.NewReader(shot))
	must(d, err)
	got := reduced(full)
	file := filepath.Join("testdata", "console", name+".png")
	fonts := filepath.Join("testdata", "console", "fonts.txt")
	measured := d.text(`(() => { const g = document.createElement("canvas").getContext("2d");
		g.font = "100px system-ui"; return g.measureText("runlens 0123456789").width.toFixed(0) })()`)
	if *updateLooks {
		var b bytes.Buffer
		must(d, png.Encode(&b, got))
		for to, content := range map[string][]byte{file: b.Bytes(), fonts: []byte(measured + "\n")} {
			must(d, os.WriteFile(to, content, 0o644))
		}
		return
	}
	if kept, err := os.ReadFile(fonts); err != nil || strings.TrimSpace(string(kept)) != measured {
		d.Logf("%s is not compared: this machine has other fonts than those of the pictures (%v)", name, err)
		return
	}
	open, err := os.Open(file)
	must(d, err)
	defer open.Close()
	want, err := png.Decode(open)
	must(d, err)
	if share, err := difference(got, want); err != nil || share > unlikeShare {
		seen := filepath.Join(os.TempDir(), "runlens-console-"+name+".png")
		d.Errorf("%s looks different in %.2f %% of its picture (%v): see %s; `go test ./cmd/runlens -run TestConsole/looks "+
			"-update-looks` keeps it", name, share*100, err, seen)
		_ = os.WriteFile(seen, shot, 0o600) // for a person only
	}
}

// reduced is a picture in grey with the averages of its blocks.
func reduced(full image.Image) *image.Gray {
	grey := image.NewGray(full.Bounds())
	draw.Draw(grey, grey.Rect, full, grey.Rect.Min, draw.Src)
	small := image.NewGray(image.Rect(0, 0, full.Bounds().Dx()/aBlock, full.Bounds().Dy()/aBlock))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			sum := 0
			for i := range aBlock * aBlock {
				sum += int(grey.GrayAt(x*aBlock+i%aBlock, y*aBlock+i/aBlock).Y)
			}
			small.SetGray(x, y, color.Gray{Y: uint8(sum / aBlock / aBlock)})
		}
	}
	return small
}

// difference is the share of unlike pixels.
func difference(got *image.Gray, want image.Image) (float64, error) {
	if got.Bounds() != want.Bounds() {
		return 1, fmt.Errorf("it is %v, not %v", got.Bounds(), want.Bounds())
	}
	count := 0
	for y := range got.Rect.Dy() {
		for x := range got.Rect.Dx() {
			a, b := int(got.GrayAt(x, y).Y), int(color.GrayModel.Convert(want.At(x, y)).(color.Gray).Y)
			if a-b > unlike || b-a > unlike {
				count++
			}
		}
	}
	return float64(count) / float64(got.Rect.Dx()*got.Rect.Dy()), nil
}

// The first page is small, and asks for nothing elsewhere. A change of the question asks what it needs together, and
// has htmx do nothing for each row.
func consoleSpeed(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "speed", console.Config{})
	const entries = `["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))`
	// The page before, which asked for the browser's zone, has loaded the scripts: they are not transferred again.
	const size = `Math.max(e.transferSize, e.encodedBodySize)`
	sizes := d.text(`JSON.stringify(` + entries +
		`.map((e) => [new URL(e.name).origin === location.origin, ` + size + `]))`)
	total := d.text(entries + `.reduce((sum, e) => sum + ` + size + `, 0)`)
	var bytes int
	if _, err := fmt.Sscan(total, &bytes); err != nil || bytes < 10_000 || bytes >= 100_000 ||
		strings.Contains(sizes, "false") {
		t.Errorf("the first page takes %s bytes: %s", total, sizes)
	}
	t.Logf("%d bytes; ready after %s ms", bytes, d.text(
		`Math.round(performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd)`))

	held, asked := make(chan struct{}), d.asked.Load()
	d.hold.Store(&held)
	release := sync.OnceFunc(func() {
		d.hold.Store(nil)
		close(held)
	})
	defer release()
	d.text(`window.copied = 0; const copy = Node.prototype.cloneNode; Node.prototype.cloneNode = function (deep) {
		if (deep && this.querySelectorAll) copied = Math.max(copied, this.querySelectorAll("*").length);
		return copy.call(this, deep) }; const period = document.querySelector("#period"); period.value = "last=366d";
		period.dispatchEvent(new Event("change", {bubbles: true})); 0`)
	// The requests of the totals and of the rows are sent together.
	comesTrue(t, func() bool { return d.asked.Load() >= asked+2 })
	release()
	d.rest()
	d.shows(".tile", "Runs 9")
	if d.text("copied < document.querySelectorAll('*').length / 10") != "true" {
		t.Errorf("a tree of %s elements is copied", d.text("copied"))
	}
	// The one is for days that are dragged over.
	if got := d.text(`document.querySelectorAll("#answer [hx-get]").length`); got != "1" {
		t.Errorf("the answer has %s elements for htmx", got)
	}
	// Further rows of a long table come when the chart is drawn.
	d.choose("#over", "day")
	d.click("#more > summary")
	d.click("input[name=fill]")
	d.until(`document.querySelectorAll(".table tbody tr").length === 366 && !document.querySelector("tbody[hidden]")`)
}
