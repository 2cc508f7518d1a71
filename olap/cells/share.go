package cells

// Share is which slots of other cells give a cell its part by weight, rounded down, beside those that it has: the last
// ones of those that have the most for their weight. It is empty if the cell has its part.
func (p *Placement) Share(cell string, list []Cell) (slots []Subject) {
	all, weight, left := 0, 0, map[string][]Subject{}
	for _, c := range list {
		if all += c.Weight; c.Name == cell {
			weight = c.Weight
		}
		left[c.Name] = p.SlotsIn(c.Name)
	}
	for missing := Slots*weight/all - len(left[cell]); missing > 0; missing-- {
		var fullest Cell
		for _, c := range list {
			if c.Name != cell && len(left[c.Name])*max(fullest.Weight, 1) > len(left[fullest.Name])*c.Weight {
				fullest = c
			}
		}
		of := left[fullest.Name]
		slots, left[fullest.Name] = append(slots, of[len(of)-1]), of[:len(of)-1]
	}
	return slots
}
