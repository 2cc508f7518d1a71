package cells

import "testing"

// A new cell gets its part, from those that have the most for their weight, and nobody else gives or gets anything.
func TestShare(t *testing.T) {
	list := []Cell{{Name: "a", Weight: 1}, {Name: "b", Weight: 2}}
	p := dealt(list)
	list = append(list, Cell{Name: "c", Weight: 1})
	from := map[string]int{}
	for _, slot := range p.Share("c", list) {
		from[p.Place(slot).Cell]++
	}
	// Of 256 slots a has 86 and b 170; c gets 64, so that a is left with 64 and b with 128.
	if len(from) != 2 || from["a"] != 22 || from["b"] != 42 {
		t.Errorf("%v", from)
	}
	if slots := p.Share("a", list); len(slots) > 0 {
		t.Errorf("a has more than its part and gets %v", slots)
	}
}
