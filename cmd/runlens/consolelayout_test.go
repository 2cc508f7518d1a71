package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/runlens/runlens/cmd/internal/console"
)

// Nothing is out of reach or cut off without a sign: on the narrowest phones, with long names, names that are written
// from the right to the left and large numbers.
func consoleLayout(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "layout", console.Config{
		Admin: []console.Admin{{Address: strings.TrimPrefix(o.admin, "http://"), Token: adminToken(t, o.flags)}}})
	const lines = "/explore?model=agent_runs&metrics=run_count&dimensions=user_identifier&dimensions=day&last=15d"
	d.do(chromedp.EmulateViewport(360, 740))
	d.open(d.base + lines + "&compare=previous&filter=agent_id%3Dbilling")
	d.holds("a menu of a phone is cut off", `[...document.querySelectorAll("details.menu")].every((menu) => {
		menu.open = true;
		const box = menu.querySelector(".fields").getBoundingClientRect();
		menu.open = false;
		return box.left >= 0 && box.right <= innerWidth })`)
	d.holds("a name of a phone has no ellipsis", `[...document.querySelectorAll(".who > :not(svg)")].every((name) => {
		name.textContent = "Desk ".repeat(20);
		const style = getComputedStyle(name);
		return name.scrollWidth > name.clientWidth && style.textOverflow === "ellipsis" && style.display === "block" })`)

	d.open(d.base + "/operator")
	d.until(`!!document.querySelector("#usage table")`)
	d.holds("the operator's page is larger than what it shows",
		`document.documentElement.scrollWidth <= innerWidth &&
		document.documentElement.scrollHeight <= Math.max(innerHeight, document.querySelector("main").offsetHeight + 120)`)

	d.do(chromedp.EmulateViewport(1280, 900))
	d.open(d.base + lines)
	d.click("#rows > summary")
	d.holds("a long name moves the numbers out of sight", `(() => {
		document.querySelector(".table tbody td").textContent = "x".repeat(500);
		const table = document.querySelector(".table");
		return table.scrollWidth === table.clientWidth })()`)
	d.holds("large numbers overlap", `(() => {
		const cells = [...document.querySelectorAll(".leaders td.number:nth-child(2)")];
		for (const cell of cells) cell.textContent = "9".repeat(20);
		return cells.every((cell) => cell.scrollWidth <= cell.clientWidth) })()`)
	d.holds("a large total leaves its tile", `[...document.querySelectorAll(".tile .value")].every((value) => {
		value.classList.add("long");
		value.textContent = "9".repeat(40);
		const tile = value.closest(".tile");
		return tile.scrollWidth <= tile.clientWidth })`)
	d.holds("a name from the right to the left is shown from its end",
		`[...document.querySelectorAll(".who, .table tbody td:first-child")].every((cell) => cell.dir === "auto")`)
}

// holds fails with a complaint unless a condition of the page holds.
func (d *deskConsole) holds(complaint, condition string) {
	d.Helper()
	if d.text(condition) != "true" {
		d.Error(complaint)
	}
}
