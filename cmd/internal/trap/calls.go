package trap

import "strings"

// calls follows the calls of all threads up to the point.
type calls struct {
	point Point
	seen  int                  // calls that matched the first step
	at    map[string]*progress // by thread
	begun bool                 // the beginning of the line that is being read has been judged
	last  string               // the thread whose call is the point's, once there is one
	late  bool                 // the call was made although the point is before it
}

// A progress is how far a thread has come.
type progress struct {
	step int // the number of steps it made
}

// see takes note of a line of strace's, as far as it is known, and reports whether the point is there now. A call
// that another one interrupts in the output is two lines: "7 rename(… <unfinished ...>" and "7 <... rename resumed>".
func (c *calls) see(line string, whole bool) (now bool) {
	thread, text, found := strings.Cut(line, " ")
	if !found {
		return false
	}
	text = strings.TrimLeft(text, " ")
	ended := whole && !strings.HasSuffix(text, "<unfinished ...>")
	if !c.begun && !strings.HasPrefix(text, "<...") {
		c.begun, now = c.begin(thread, text)
	}
	if ended {
		now = c.end(thread, text) || now
	}
	if whole {
		c.begun = false
	}
	return now
}

// begin judges the beginning of a call. Its text may still grow while it does not match.
func (c *calls) begin(thread, text string) (matched, now bool) {
	if c.last != "" {
		return false, false
	}
	p := c.at[thread]
	if p == nil {
		p = &progress{}
		c.at[thread] = p
	}
	if !c.point.Steps[p.step].MatchString(text) {
		return false, false
	}
	if p.step == 0 {
		if c.seen++; c.seen != c.point.Nth {
			return true, false
		}
	}
	if p.step++; p.step < len(c.point.Steps) {
		return true, false
	}
	p.step = 0
	c.last = thread
	return true, !c.point.After
}

// end judges the end of a call: of the point's, it is the moment after it, or too late for the one before.
func (c *calls) end(thread, text string) (now bool) {
	if thread != c.last || !strings.Contains(text, " = ") || strings.Contains(text, " = ?") {
		return false
	}
	c.last = "-" // of no thread
	c.late = !c.point.After
	return c.point.After
}
